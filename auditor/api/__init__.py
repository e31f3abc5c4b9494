"""The Python face: a dataset's handle, datasets from what is in memory, scikit-learn's form of an audit."""

from auditor.api.dataset import (
    Dataset,
    audit_steps,
    import_dataset,
    list_datasets,
    open_dataset,
    own_features,
    remove,
)

__all__ = [
    "Dataset",
    "audit_steps",
    "estimator",
    "import_dataset",
    "list_datasets",
    "memory",
    "open_dataset",
    "own_features",
    "remove",
]
