"""From a source to a registered dataset, all of it or nothing."""

from auditor.importing.class_names import meaning_of_names
from auditor.importing.imports import BadRowsError, Preview, import_dataset, preview_source
from auditor.importing.staging import preview_folder

__all__ = [
    "BadRowsError",
    "Preview",
    "import_dataset",
    "meaning_of_names",
    "preview_folder",
    "preview_source",
]
