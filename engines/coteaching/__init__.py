"""Co-teaching with a keep rate searched by S2E."""

from engines.coteaching.training import SPEC

__all__ = ["SPEC"]
