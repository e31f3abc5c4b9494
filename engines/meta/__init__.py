"""Meta steps without double backward, and the meta set that they believe."""

__all__ = [
    "directional",
    "fused_tangents",
    "meta_set",
]
