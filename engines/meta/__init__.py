"""Meta steps without double backward, and the meta set that they believe."""

from engines.meta.directional import (
    MetaGradient,
    directional_derivative,
    forward_with_tangent,
    logits_jvp,
    meta_gradient,
    one_hot,
)
from engines.meta.meta_set import (
    MetaSet,
    draw_meta_batch,
    meta_set_of,
    mixture_meta_set,
    resolve_source,
    split_halves,
    trusted_meta_set,
)

__all__ = [
    "MetaGradient",
    "MetaSet",
    "directional_derivative",
    "draw_meta_batch",
    "forward_with_tangent",
    "logits_jvp",
    "meta_gradient",
    "meta_set_of",
    "mixture_meta_set",
    "one_hot",
    "resolve_source",
    "split_halves",
    "trusted_meta_set",
]
