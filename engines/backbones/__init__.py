"""Every image through a pretrained network, once: features that all engines train on."""

from engines.backbones.embedding import ImagePlace, RowsDone, embed, embed_in_processes, probe
from engines.backbones.self_supervised import learn_features
from engines.backbones.views import MOST_VIEWS, check_views, views_of

__all__ = [
    "MOST_VIEWS",
    "ImagePlace",
    "RowsDone",
    "check_views",
    "embed",
    "embed_in_processes",
    "learn_features",
    "probe",
    "views_of",
]
