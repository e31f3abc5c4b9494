"""What engines for numbers share: a predicted mixture, its config, and the loop around a method's own step."""

from engines.regression.config import NumberConfig
from engines.regression.densities import DensityHead, likeliest_mean, mixture_log_density
from engines.regression.loop import NumberFold, Said, train_numbers

__all__ = [
    "DensityHead",
    "NumberConfig",
    "NumberFold",
    "Said",
    "likeliest_mean",
    "mixture_log_density",
    "train_numbers",
]
