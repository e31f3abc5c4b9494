"""Learning to Bootstrap, meta-learned weights of the given and the pseudo-label."""

from engines.l2b.training import SPEC

__all__ = ["SPEC"]
