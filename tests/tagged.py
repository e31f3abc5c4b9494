"""A home with pictures that show several shapes or none, and a few wrong sets of classes: imported, and audited."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from auditor.audits import worker
from auditor.backbones import own_features
from auditor.ground.vocabulary import MULTILABEL
from auditor.importing.imports import import_dataset
from auditor.labels.sets.kind import KIND

CLASSES = ["bar", "disc", "ring"]
NUM = 90
MISSING, EXTRA = ((7, "disc"), (30, "bar")), ((12, "ring"), (55, "disc"))
"""(picture, class) that its given set lacks, or has too many."""


def shown() -> np.ndarray:
    """(``NUM``, 3) which classes each picture shows."""
    found = np.random.default_rng(5).random((NUM, 3)) < 0.5
    for place, name in (*MISSING, *EXTRA):
        found[place, CLASSES.index(name)] = (place, name) in MISSING
    return found


def given() -> list[list[str]]:
    """The given sets."""
    sets = shown()
    for place, name in (*MISSING, *EXTRA):
        sets[place, CLASSES.index(name)] ^= True
    return [[CLASSES[label] for label in np.flatnonzero(row)] for row in sets]


def write_pictures(folder: Path, sets: Sequence[Sequence[str]]) -> list[str]:
    """One picture a set, different from all others; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for place, names in enumerate(sets):
        picture = Image.new("L", (64, 64), 235)
        draw = ImageDraw.Draw(picture)
        if "bar" in names:
            draw.rectangle((4, 4, 60, 12), fill=30 + place % 40)
        if "disc" in names:
            draw.ellipse((4, 20, 30, 46), fill=30 + place % 40)
        if "ring" in names:
            draw.ellipse((34, 20, 60, 46), outline=30, width=4)
        draw.line((place % 60, 52, 60, 52 + place // 60 * 5), fill=place, width=2)
        picture.putpixel((63, 63), place)
        picture.save(folder / f"{place}.png")
        paths.append(f"{place}.png")
    return paths


def flags(names: Sequence[str]) -> str:
    """An object of ones and zeros."""
    return json.dumps({name: int(name in names) for name in CLASSES})


def write_source(
    folder: Path, form: str, sets: Sequence[Sequence[str]], drawn: Sequence[Sequence[str]] | None = None
) -> Path:
    """A source with these sets in one of ``FORMS``, its pictures (of what is ``drawn``) beside it."""
    paths = write_pictures(folder, sets if drawn is None else drawn)
    file = folder / ("labels.csv" if form not in ("jsonl", "parquet") else f"labels.{form}")
    if form == "folder":
        for path, names in zip(paths, sets, strict=True):
            for name in names:
                (folder / "classes" / name).mkdir(parents=True, exist_ok=True)
                (folder / "classes" / name / path).write_bytes((folder / path).read_bytes())
        return folder / "classes"
    if form in OF_TOOLS:
        file = folder / f"labels.{'xml' if form == 'cvat' else 'json'}"
        file.write_text(OF_TOOLS[form](list(zip(paths, sets, strict=True))))
    elif form == "jsonl":
        lines = [json.dumps({"file_name": p, "label": list(s)}) for p, s in zip(paths, sets, strict=True)]
        file.write_text("\n".join(lines) + "\n")
    elif form == "parquet":
        images = [{"bytes": (folder / path).read_bytes(), "path": path} for path in paths]
        numbers = [[CLASSES.index(name) for name in names] for names in sets]
        names = {"_type": "ClassLabel", "names": CLASSES}
        features = {
            "info": {"features": {"image": {"_type": "Image"}, "label": {"feature": names, "_type": "List"}}}
        }
        table = pa.table({"image": images, "label": pa.array(numbers, pa.list_(pa.int64()))})
        pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(features)}), file)
    elif form == "rows":
        rows = [f"{p},{name},n" for p, s in zip(paths, sets, strict=True) for name in s or [""]]
        file.write_text("\n".join(["path,label,note", *rows]) + "\n")
    elif form == "columns":
        rows = [
            f"{p},{','.join(str(int(c in s)) for c in CLASSES)},n" for p, s in zip(paths, sets, strict=True)
        ]
        file.write_text("\n".join([f"path,{','.join(CLASSES)},note", *rows]) + "\n")
    else:
        cells = {"json": json.dumps, "python": repr, "object": flags}.get(form, form.join)
        rows = [
            '{},"{}",n'.format(p, str(cells(s)).replace('"', '""')) for p, s in zip(paths, sets, strict=True)
        ]
        file.write_text("\n".join(["path,label,note", *rows]) + "\n")
    return file


def coco(pictures: Sequence[tuple[str, Sequence[str]]]) -> str:
    """COCO with two annotations of each class that a picture has."""
    found = [(place, name) for place, (_, names) in enumerate(pictures) for name in names for _ in range(2)]
    return json.dumps(
        {
            "images": [{"id": place, "file_name": path} for place, (path, _) in enumerate(pictures)],
            "annotations": [
                {"id": at, "image_id": place, "category_id": 10 + CLASSES.index(name), "bbox": [at, 0, 9, 9]}
                for at, (place, name) in enumerate(found, start=1)
            ],
            "categories": [{"id": 10 + at, "name": name} for at, name in enumerate(CLASSES)],
        }
    )


def cvat(pictures: Sequence[tuple[str, Sequence[str]]]) -> str:
    """CVAT for images with a tag a class."""
    labels = "".join(f"<label><name>{name}</name></label>" for name in CLASSES)
    tags = ["".join(f'<tag label="{name}" source="manual"/>' for name in names) for _, names in pictures]
    images = (f'<image id="{i}" name="{path}">{tags[i]}</image>' for i, (path, _) in enumerate(pictures))
    task = f"<meta><task><labels>{labels}</labels></task></meta>"
    return f"<annotations><version>1.1</version>{task}{''.join(images)}</annotations>"


def label_studio(pictures: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Label Studio's tasks with several choices."""
    return json.dumps(
        [
            {
                "id": at,
                "data": {"image": path},
                "annotations": [
                    {
                        "completed_by": 1,
                        "result": [
                            {
                                "type": "choices",
                                "from_name": "shows",
                                "to_name": "image",
                                "value": {"choices": list(names)},
                            }
                        ],
                    }
                ],
            }
            for at, (path, names) in enumerate(pictures)
        ]
    )


def labels_by_name(pictures: Sequence[tuple[str, Sequence[str]]]) -> str:
    """FiftyOne's ``labels.json`` with lists of numbers."""
    numbers = {path: [CLASSES.index(name) for name in names] for path, names in pictures}
    return json.dumps({"classes": CLASSES, "labels": numbers})


OF_TOOLS = {"coco": coco, "cvat": cvat, "label_studio": label_studio, "labels_by_name": labels_by_name}
FORMS = (
    "|",
    "; ",
    ", ",
    "rows",
    "json",
    "python",
    "object",
    "columns",
    "jsonl",
    "parquet",
    "folder",
    *OF_TOOLS,
)
JOINED = (*FORMS[:4], "coco", "cvat")
"""Those that do not tell a set without classes from no label."""


def make_home(folder: Path) -> None:
    """Import and audit ``NUM`` pictures into the AUDITOR_HOME of this moment; the source lies in ``folder``."""
    drawn = [[CLASSES[label] for label in np.flatnonzero(row)] for row in shown()]
    source = write_source(folder / "source", "columns", given(), drawn)
    import_dataset(source, name="shapes", task=MULTILABEL, workers=1)
    noise = np.random.default_rng(1).normal(0, 0.1, (NUM, 3))
    features = own_features.add("shapes", (shown() + noise).astype(np.float32), name="seen")
    worker.run_audit(KIND.plan("shapes", features=features, device="cpu"))
