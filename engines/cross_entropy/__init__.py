"""Plain cross-entropy, the baseline and a full witness."""

from engines.cross_entropy.training import SPEC

__all__ = ["SPEC"]
