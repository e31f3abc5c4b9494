"""ChoiceNet (Choi et al.), a mixture whose components are correlated with one target."""

from engines.choicenet.training import SPEC

__all__ = ["SPEC"]
