"""Pictures: sources that hold them, one way to decode them, the cache that keeps them."""

__all__ = [
    "cache",
    "coco",
    "decoding",
    "masks",
    "plain",
    "sources",
]
