"""UMN, an uncertainty for every given label from a learner and its moving average."""

from engines.umn.training import SPEC

__all__ = ["SPEC"]
