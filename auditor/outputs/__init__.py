"""What people take home: cleaned tables and folders, and a report."""

from auditor.outputs.annotated import answers_of_dataset, read_annotated, write_annotated
from auditor.outputs.export import (
    ExportSummary,
    export_table,
    export_tree,
    export_zip,
    is_one_file,
    preview_export,
    quoted,
    reopened_source,
    write_tree,
)
from auditor.outputs.found_again import check_files, find_again
from auditor.outputs.report import conflict_sentence, write_report

__all__ = [
    "ExportSummary",
    "answers_of_dataset",
    "check_files",
    "conflict_sentence",
    "export_table",
    "export_tree",
    "export_zip",
    "find_again",
    "is_one_file",
    "preview_export",
    "quoted",
    "read_annotated",
    "reopened_source",
    "write_annotated",
    "write_report",
    "write_tree",
]
