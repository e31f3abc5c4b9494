"""Work as tasks of plain values: what one is, which wait, and who does them: processes here or a Ray cluster."""

from auditor.work.embedding import UMAP_ROWS, mean_distances, nearest_neighbors, neighbour_seconds
from auditor.work.executors import Executor, ExecutorChoice, executor_for, threads_by_engine, training_cores
from auditor.work.kinds import EMBEDDING, LAYOUT, NUM_NEIGHBOURS, Embed, Layout, Train
from auditor.work.ray_pool import RayPool, open_pool
from auditor.work.tasks import PUT_IT_BACK, RESULT_FILE, Event, Outcome, store_arrays

__all__ = [
    "EMBEDDING",
    "LAYOUT",
    "NUM_NEIGHBOURS",
    "PUT_IT_BACK",
    "RESULT_FILE",
    "UMAP_ROWS",
    "Embed",
    "Event",
    "Executor",
    "ExecutorChoice",
    "Layout",
    "Outcome",
    "RayPool",
    "Train",
    "executor_for",
    "mean_distances",
    "nearest_neighbors",
    "neighbour_seconds",
    "open_pool",
    "store_arrays",
    "threads_by_engine",
    "training_cores",
]
