"""The Python face: a dataset's handle, datasets from what is in memory, scikit-learn's form of an audit."""

from auditor.api.dataset import (
    Dataset,
    import_dataset,
    list_datasets,
    open_dataset,
    own_features,
    remove,
)
from auditor.api.memory import (
    from_arrays,
    from_dataframe,
    from_huggingface,
    from_torch,
    import_in_memory,
)

__all__ = [
    "Dataset",
    "estimator",
    "from_arrays",
    "from_dataframe",
    "from_huggingface",
    "from_torch",
    "import_dataset",
    "import_in_memory",
    "list_datasets",
    "open_dataset",
    "own_features",
    "remove",
]
