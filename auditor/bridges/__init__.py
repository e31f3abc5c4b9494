"""The only ways out of this layer: down into ``engines``, and over into FiftyOne's database."""

__all__ = [
    "backbone_bridge",
    "engine_bridge",
    "fiftyone_door",
]
