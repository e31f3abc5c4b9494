"""Files that FiftyOne's own exporters write come in, and FiftyOne's importers read what goes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.importing.imports import BadRowsError, import_dataset
from auditor.outputs import export
from auditor.review import decisions
from tests.auditor.pictures.sources.test_containers import picture

NAMES = ("elk", "fox", "owl")
NUM = 6


@pytest.fixture
def animals(database: Any, tmp_path: Path) -> Any:
    """Six images with one box or two each (of one class), and a tag with an attribute."""
    samples = []
    for n in range(NUM):
        file = tmp_path / "pictures" / f"im {n}.png"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(picture(n))
        sample = database.Sample(filepath=str(file))
        boxes = [
            database.Detection(label=NAMES[n % 3], bounding_box=[0.25 * k, 0.0, 0.5, 0.5], note=f"n{n}{k}")
            for k in range(1 + n % 2)
        ]
        sample["boxes"] = database.Detections(detections=boxes)
        tag = database.Classification(label=NAMES[n % 3], mood="calm")
        sample["kinds"] = database.Classifications(classifications=[tag])
        samples.append(sample)
    made = database.Dataset("animals")
    made.add_samples(samples, progress=False)
    return made


@pytest.mark.parametrize(("kind", "boxes"), [("coco", False), ("coco", True), ("cvat", False)])
def test_export__is_read_by_fiftyone_with_all_that_it_wrote(
    database: Any, home: Path, tmp_path: Path, animals: Any, kind: str, boxes: bool
) -> None:
    is_coco = kind == "coco"
    form = database.types.COCODetectionDataset if is_coco else database.types.CVATImageDataset
    more: dict[str, Any] = {"extra_attrs": True} if is_coco else {}
    animals.export(
        export_dir=str(tmp_path / kind),
        dataset_type=form,
        label_field="boxes" if is_coco else "kinds",
        progress=False,
        **more,
    )
    source = tmp_path / kind / ("labels.json" if is_coco else "labels.xml")
    import_dataset(source, name="set", boxes=boxes)
    with session() as open_session:
        dataset = datasets.get(open_session, "set")
    assert dataset.class_names == list(NAMES)
    decisions.decide(dataset.id, 1, "relabel", label=NAMES.index("owl"), reviewer="ada")
    decisions.decide(dataset.id, 3, "exclude", reviewer="ada")
    out = source.with_stem("out")
    export.export_table("set", out)

    read = database.Dataset.from_dir(
        dataset_type=form, data_path=str(source.parent / "data"), labels_path=str(out), progress=False, **more
    )
    field, note = ("detections", "note") if is_coco else ("classifications", "mood")
    found = {
        Path(sample.filepath).stem: [(one.label, one[note]) for one in sample[field][field]]
        for sample in read.exists(field)
    }
    wanted = {
        f"im {n}": [(NAMES[n % 3], f"n{n}{k}") for k in range(1 + n % 2)]
        if is_coco
        else [(NAMES[n % 3], "calm")]
        for n in range(NUM)
    }
    if boxes:  # sample 1 is the first box of the second image, sample 3 the box of the third
        wanted["im 1"][0] = ("owl", "n10")
        del wanted["im 2"]
    else:
        wanted["im 1"] = [("owl", text) for _, text in wanted["im 1"]]
        del wanted["im 3"]
    assert found == wanted


def test_import__of_boxes_of_several_classes_says_what_to_do(
    database: Any, home: Path, tmp_path: Path, animals: Any
) -> None:
    first = animals.first()
    first["boxes"].detections.append(database.Detection(label="owl", bounding_box=[0.5, 0.5, 0.5, 0.5]))
    first.save()
    animals.export(
        export_dir=str(tmp_path / "coco"),
        dataset_type=database.types.COCODetectionDataset,
        label_field="boxes",
        progress=False,
    )
    with pytest.raises(BadRowsError, match="row 0: has annotations of several .* or each box as a sample"):
        import_dataset(tmp_path / "coco" / "labels.json", name="set")
