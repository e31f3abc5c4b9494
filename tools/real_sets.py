"""A home with audited real pictures: photos of clothes, street scenes with masks, and numbers read off them.

    python -m tools.real_sets HOME

The pictures are those of ``benchmarks.images.folder()``. Of the photos ``WRONG`` are given a class that looks like
theirs, of the masks one object is given another class, of the numbers some are far from the right one.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

PHOTOS, STREET, ROAD = "clothes", "street", "road"
WRONG = 0.114
"""Share of the photos that get a wrong label, as in ``benchmarks.backbones``."""
LOOKS_LIKE = {
    "t-shirt": "shirt", "shirt": "longsleeve", "longsleeve": "t-shirt", "pants": "shorts", "shorts": "pants",
    "dress": "skirt", "skirt": "dress", "outwear": "longsleeve", "hat": "shoes", "shoes": "hat",
}  # fmt: skip
VERIFIED = 100
"""Photos that somebody checked at random."""
LEFT_OUT = ("734353cb-1cef-4292-bf7f-06c4583216b7",)
"""Not for every reader: what is written on it."""
SCENES = 90
SWAPPED = {"car": "pedestrian", "pedestrian": "bicyclist", "tree": "building", "sky": "building"}
FAR = 25.0
"""Points by which a wrong share of road is off."""


def main() -> None:
    """Make all three in the AUDITOR_HOME that is named."""
    home = Path(sys.argv[1]).resolve()
    os.environ["AUDITOR_HOME"] = str(home)
    home.mkdir(parents=True, exist_ok=True)
    for make in (numbers, masks, photos):  # the newest dataset stands first on Home
        make(home)


def photos(home: Path) -> None:
    """The folder ``clothing`` with planted confusions, imported and audited by the defaults."""
    from auditor.audits import plan, usual_features, worker
    from auditor.catalog import reading
    from auditor.importing import imports
    from auditor.pictures import cache
    from auditor.results import settle
    from auditor.review import blind, drawing
    from benchmarks import images

    root = images.folder() / "clothing"
    files = [file for file in sorted(root.rglob("*.jpg")) if file.stem not in LEFT_OUT]
    wrong = set(np.random.default_rng(0).permutation(len(files))[: round(WRONG * len(files))].tolist())
    source = home / "sources" / PHOTOS
    (source / "photos").mkdir(parents=True)
    with (source / "clothes.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["path", "label", "true"])
        for number, file in enumerate(files):
            true, name = file.parent.name, f"photos/{number:03d}.jpg"  # a path that tells no class
            shutil.copyfile(file, source / name)
            rows.writerow([name, LOOKS_LIKE[true] if number in wrong else true, true])
    imports.import_dataset(source / "clothes.csv", name=PHOTOS, true_label_column="true")
    audit = plan.plan_audit(PHOTOS, preset="quick", features=usual_features.choose_features(PHOTOS, None)[0])
    worker.run_audit(audit)
    verified = drawing.draw(PHOTOS, VERIFIED)
    truth = cache.true_labels(reading.dataset(PHOTOS))
    for sample in verified.sample_ids:
        blind.record(verified.id, sample, "label", label=int(truth[sample]), reviewer="Ada")
    settle.settle(audit)


def scenes() -> tuple[list[str], list[bytes], list[NDArray[np.uint8]], list[str]]:
    """Names, pictures, masks (H, W) and class names of street scenes, evenly spread over all."""
    import pyarrow.parquet as pq

    from benchmarks import images

    file = images.folder() / "masks" / "camvid.parquet"
    names = (pq.read_schema(file).metadata or {})[b"classes"].decode().split(",")
    table = pd.read_parquet(file)
    table = table.iloc[np.linspace(0, len(table) - 1, SCENES).astype(int)]
    content = [(one["image"], one["mask"]) for one in table.to_dict("records")]
    seen = [np.asarray(Image.open(io.BytesIO(mask))) for _, mask in content]
    return [str(name) for name in table["name"]], [picture for picture, _ in content], seen, names


def masks(home: Path) -> None:
    """Street scenes; in every sixth one class is drawn as another."""
    from auditor.audits import worker
    from auditor.ground.vocabulary import SEGMENTATION
    from auditor.importing import imports
    from auditor.labels.masks.kind import KIND

    names, pictures, given, classes = scenes()
    source = home / "sources" / STREET
    for folder in ("images", "masks"):
        (source / folder).mkdir(parents=True)
    place = {name: number for number, name in enumerate(classes)}
    swaps = [(place[a], place[b]) for a, b in SWAPPED.items()]
    for number, (name, picture, mask) in enumerate(zip(names, pictures, given, strict=True)):
        drawn = mask.copy()
        if number % 6 == 0:
            was, becomes = max(
                swaps, key=lambda pair: (mask == pair[0]).sum() if pair[0] != number % 2 else 0
            )
            drawn[mask == was] = becomes
        stem = Path(name).stem
        (source / "images" / f"{stem}.jpg").write_bytes(picture)
        Image.fromarray(drawn).save(source / "masks" / f"{stem}.png")
    (source / "classes.txt").write_text("\n".join(classes[:11]))
    options: dict[str, Any] = {
        "task": SEGMENTATION, "class_names": source / "classes.txt", "ignore_index": 11
    }  # fmt: skip
    imports.import_dataset(source, name=STREET, **options)
    worker.run_audit(KIND.plan(STREET, device="cpu"))


def numbers(home: Path) -> None:
    """Make the share of road of each street scene, in percent; every twelfth is far off."""
    from auditor.audits import usual_features, worker
    from auditor.ground.vocabulary import REGRESSION
    from auditor.importing import imports
    from auditor.labels.numbers.kind import KIND

    names, pictures, seen, classes = scenes()
    source = home / "sources" / ROAD
    (source / "images").mkdir(parents=True)
    rows = ["path,road"]
    for number, (name, picture, mask) in enumerate(zip(names, pictures, seen, strict=True)):
        share = 100 * float((mask == classes.index("road")).mean())
        if number % 12 == 5:
            share += FAR if share < 40 else -FAR
        stem = Path(name).stem
        (source / "images" / f"{stem}.jpg").write_bytes(picture)
        rows.append(f"images/{stem}.jpg,{share:.1f}")
    (source / "road.csv").write_text("\n".join(rows) + "\n")
    imports.import_dataset(source / "road.csv", name=ROAD, task=REGRESSION, label_column="road")
    worker.run_audit(
        KIND.plan(
            ROAD, features=usual_features.choose_features(ROAD, "timm:tf_efficientnet_lite0")[0], device="cpu"
        )
    )


if __name__ == "__main__":
    main()
