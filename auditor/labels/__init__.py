"""What the labels are: classes, masks, numbers or sets of classes, each the whole answer to ``kind.Kind``."""

__all__ = ["masks", "numbers", "sets"]
