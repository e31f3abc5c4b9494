"""What every engine needs around its loop: rows, config, scoring, checkpoints, records, device, losses."""

__all__ = [
    "checkpoint",
    "config",
    "device",
    "ema",
    "loader",
    "losses",
    "recording",
    "scoring",
    "selection",
]
