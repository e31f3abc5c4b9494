"""FiftyOne: audits are pushed there, decisions are brought back, its App is opened on them."""

__all__ = [
    "own_features",
    "sync",
]
