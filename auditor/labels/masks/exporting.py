"""Cleaned masks in the layout that they came in, with a table of what was decided on each.

A mask is the user's own file with some pixels changed: those of the regions that a person took. All other pixels,
the file's format, its mode and its palette stay. COCO's one file is written again. What a person excluded is left
out, of VOC's lists too.
"""

from __future__ import annotations

import csv
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auditor.catalog import reading, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Review, Sample
from auditor.ground.errors import ExportRefusedError, ImportRefusedError, NotFoundError
from auditor.ground.files import folder_written_whole, new_folder_beside, open_below, written_whole
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.tables import quoted
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL
from auditor.ground.wording import plural
from auditor.labels.masks.deciding import changes, in_words, is_only_wrong
from auditor.pictures import coco, masks
from auditor.pictures.decoding import ImageError
from auditor.pictures.sources import UnreadableError, read_bytes, split_lists, split_turn
from auditor.review import decisions

TABLE = "masks.csv"
COLUMNS = (
    *("sample_id", "filepath", "mask", "action", "trust_score", "weakest_class", "changed_share"),
    *("review_decision", "regions_taken", "changed_pixels", "reviewer", "reviewed_at", "audit_id"),
)


@dataclass(frozen=True)
class Exported:
    """What was written."""

    num_masks: int
    num_changed: int
    num_excluded: int
    changed_pixels: int
    sentence: str


def export(
    name: str, out: Path, *, audit_id: int | None = None, progress: OnProgress | None = None
) -> Exported:
    """Write the folder ``out``: every mask that stays at its path below the root, and ``masks.csv``.

    Where ``out`` ends in ``.zip``, it is one file with all of these in it.
    Only what a person decided changes a mask. Trust and the doubtful share are those of the newest finished audit,
    or of ``audit_id``.

    Raises:
        ExportRefusedError: ``out`` exists.
        NotFoundError: no such dataset or audit, or a mask that cannot be read any more.
    """
    if out.exists():
        raise ExportRefusedError(f"{out} exists; name a new folder or .zip file.")
    dataset, audit = reading.newest_audited(name, audit_id)
    samples = list(reading.samples(dataset.id))
    if out.suffix.lower() != ".zip":
        with folder_written_whole(out) as folder:
            return _write_all(dataset, audit, samples, folder, progress)
    with new_folder_beside(out) as folder, written_whole(out) as beside:
        done = _write_all(dataset, audit, samples, folder, progress)
        _pack(folder, beside, progress)
    return done


def _write_all(
    dataset: Dataset, audit: Audit | None, samples: list[Sample], folder: Path, progress: OnProgress | None
) -> Exported:
    standing = decisions.outcomes(dataset.id)
    ticker = Ticker(progress, "writing masks", len(samples))
    rows = []
    for sample in samples:
        rows.append(_write(dataset, sample, standing.get(sample.sample_id), folder))
        ticker.at(len(rows))
    if (dataset.masks or {}).get("layout") == "coco":
        _write_coco(dataset, samples, standing, rows, folder)
    _write_lists(dataset, samples, standing, folder)
    _write_table(dataset, audit, samples, rows, folder / TABLE)
    return _summed(rows)


def _pack(folder: Path, out: Path, progress: OnProgress | None) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    ticker = Ticker(progress, "packing files", len(files))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for done, file in enumerate(files, start=1):
            packed.write(file, file.relative_to(folder))
            ticker.at(done)


def _write(dataset: Dataset, sample: Sample, row: Review | None, folder: Path) -> dict[str, Any]:
    """One mask into ``folder``; what the table says of its decision."""
    is_changed = row is not None and row.decision in (RELABEL, EXCLUDE) and not is_only_wrong(row)
    said = {
        "action": row.decision if row is not None and is_changed else KEEP,
        "review_decision": "" if row is None else row.decision,
        "regions_taken": "" if row is None else "|".join(in_words(dataset, row.labels or [])),
        "changed_pixels": 0,
        "reviewer": "" if row is None else row.reviewer,
        "reviewed_at": "" if row is None else row.created_at.isoformat(),
        "audit_id": "" if row is None or row.audit_id is None else row.audit_id,
    }
    if said["action"] == EXCLUDE or (dataset.masks or {}).get("layout") == "coco":
        return said
    data = original(dataset, sample)
    if row is not None and (taken := changes(dataset, row)):
        data, said["changed_pixels"] = _changed(dataset, sample, data, taken)
    target = folder / split_turn(str(sample.mask))[0]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return said


def original(dataset: Dataset, sample: Sample) -> bytes:
    """The mask's file as the user has it.

    Raises:
        NotFoundError: it cannot be read any more.
    """
    try:
        return read_bytes(dataset.root, split_turn(str(sample.mask))[0])
    except UnreadableError as error:
        raise NotFoundError(
            f"{sample.mask} of {dataset.name!r} {error} (root: {dataset.root}); put the masks back there."
        ) from error


def _changed(dataset: Dataset, sample: Sample, data: bytes, taken: list[Any]) -> tuple[bytes, int]:
    code = masks.MaskCode.from_dict(dataset.masks or {})
    try:
        _, turn = split_turn(str(sample.mask))
        before = masks.upright(masks.decode(data, code), turn)
        wanted = np.full(before.shape, masks.IGNORED, np.uint8)
        for region in taken:
            there = masks.enlarged(region.pixels, before.shape[1], before.shape[0])
            wanted[there & (before == region.given)] = region.suggested
        count = int((wanted != masks.IGNORED).sum())
        return (masks.rewritten(data, code, masks.as_stored(wanted, turn)), count) if count else (data, 0)
    except ImageError as error:
        raise NotFoundError(f"{sample.mask} of {dataset.name!r} {error}.") from error


def _write_coco(
    dataset: Dataset,
    samples: list[Sample],
    standing: dict[int, Review],
    rows: list[dict[str, Any]],
    folder: Path,
) -> None:
    """COCO's file again, with what was taken and without what was excluded."""
    name = split_turn(str(samples[0].mask))[0].rpartition("#")[0]
    changed: dict[int, list[coco.Change]] = {}
    excluded = []
    try:
        file = coco.read(Path(dataset.root) / name, dataset.root)
        for sample, said in zip(samples, rows, strict=True):
            location, turn = split_turn(str(sample.mask))
            number = int(location.rpartition("#")[2])
            row = standing.get(sample.sample_id)
            if said["action"] == EXCLUDE:
                excluded.append(number)
            elif row is not None and (taken := changes(dataset, row)):
                before = masks.upright(coco.mask_of(file, number), turn)
                height, width = before.shape
                there = [
                    (one, masks.enlarged(one.pixels, width, height) & (before == one.given)) for one in taken
                ]
                found = [
                    coco.Change(masks.as_stored(pixels, turn), one.given, one.suggested)
                    for one, pixels in there
                ]
                changed[number] = [one for one in found if one.pixels.any()]
                said["changed_pixels"] = sum(int(one.pixels.sum()) for one in changed[number])
        text = coco.rewritten(file, changed, excluded)
    except (ImportRefusedError, OSError) as error:
        raise NotFoundError(str(error)) from error
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _write_lists(dataset: Dataset, samples: list[Sample], standing: dict[int, Review], folder: Path) -> None:
    """VOC's lists of names again, without what was excluded."""
    root = Path(dataset.root)
    gone = {
        Path(one.filepath).stem
        for one in samples
        if one.sample_id in standing and standing[one.sample_id].decision == EXCLUDE
    }
    for file in split_lists(root) if (dataset.masks or {}).get("layout") == "voc" else []:
        name = file.relative_to(root)
        with open_below(root, str(name)) as stream:
            lines = [line for line in stream.read().decode("utf-8-sig").split() if line not in gone]
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_table(
    dataset: Dataset, audit: Audit | None, samples: list[Sample], rows: list[dict[str, Any]], path: Path
) -> None:
    found: dict[str, list[Any]] = {name: [""] * len(rows) for name in COLUMNS}
    if audit is not None:
        table = ask(scores.table, audit.id)
        found["trust_score"] = [f"{value:.6f}" for value in table.trust_score]
        found["weakest_class"] = [dataset.class_names[one] for one in table.given_label]
        found["changed_share"] = [f"{value:.6f}" for value in table.suggested_probability]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for at, (sample, said) in enumerate(zip(samples, rows, strict=True)):
            known = {
                "sample_id": sample.sample_id,
                "filepath": sample.filepath,
                "mask": split_turn(str(sample.mask))[0],
                **said,
            }
            cells = [known.get(name, found[name][at]) for name in COLUMNS]
            writer.writerow([quoted(cell) if isinstance(cell, str) else cell for cell in cells])


def _summed(rows: list[dict[str, Any]]) -> Exported:
    counts = Counter(row["action"] for row in rows)
    changed = sum(1 for row in rows if row["changed_pixels"])
    num_pixels = sum(row["changed_pixels"] for row in rows)
    written = len(rows) - counts[EXCLUDE]
    sentence = (
        f"{plural(written, 'mask')}, {changed:,} of them changed ({plural(num_pixels, 'pixel')}), "
        f"{counts[EXCLUDE]:,} left out; "
        f"{TABLE} says what was decided. The images stay where they are."
    )
    return Exported(written, changed, counts[EXCLUDE], num_pixels, sentence)
