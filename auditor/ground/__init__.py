"""What every room stands on: errors, files, processes, settings, tables, words. It imports nothing of ours."""

__all__ = [
    "apart",
    "delimited",
    "errors",
    "files",
    "hosts",
    "names",
    "numbers",
    "paths",
    "processes",
    "progress",
    "settings",
    "spreadsheets",
    "tables",
    "vocabulary",
    "wording",
]
