"""What every engine needs around its loop: run, rows, config, scoring, checkpoints, records, device, losses."""

__all__ = [
    "checkpoint",
    "components",
    "config",
    "device",
    "ema",
    "folds",
    "large",
    "loader",
    "losses",
    "optimizers",
    "out_of_fold",
    "recording",
    "rows",
    "run",
    "scoring",
    "selection",
    "strong",
    "work",
]
