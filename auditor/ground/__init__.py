"""What every room stands on: errors, files, processes, settings, tables, words. It imports nothing of ours."""

__all__ = [
    "errors",
    "files",
    "hosts",
    "numbers",
    "processes",
    "progress",
    "settings",
    "tables",
    "vocabulary",
    "wording",
]
