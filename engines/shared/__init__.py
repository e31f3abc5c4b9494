"""What every engine needs around its loop: run, rows, config, scoring, checkpoints, records, device, losses."""

__all__ = [
    "averaged",
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
    "recording",
    "rows",
    "run",
    "scoring",
    "selection",
    "strong",
    "work",
]
