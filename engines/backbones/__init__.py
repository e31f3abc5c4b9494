"""Every image through a pretrained network, once: features that all engines train on."""

from engines.backbones.embedding import RowsDone, embed, embed_rows, probe, seeing
from engines.backbones.views import MOST_VIEWS, check_views, views_of

__all__ = [
    "MOST_VIEWS",
    "RowsDone",
    "check_views",
    "embed",
    "embed_rows",
    "probe",
    "seeing",
    "views_of",
]
