"""The Python face: a dataset's handle, datasets from what is in memory, scikit-learn's form of an audit."""

from auditor.api.dataset import (
    Dataset,
    import_dataset,
    list_datasets,
    open_dataset,
    own_features,
    remove,
)

__all__ = [
    "Dataset",
    "estimator",
    "import_dataset",
    "list_datasets",
    "memory",
    "open_dataset",
    "own_features",
    "remove",
]
