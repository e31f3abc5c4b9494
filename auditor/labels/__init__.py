"""What the labels are: classes, masks or numbers, each the whole answer to ``auditor.kind.Kind``."""

__all__ = ["masks", "numbers"]
