"""COCO's boxes as samples of their own: what is inside a box is the image that is audited."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from auditor.pictures.sources.annotations import Coco, Entry, Outcome, id_key
from auditor.pictures.sources.rows import printable


class CocoBoxes(Coco):
    """One sample a box: the part of the image inside it; rows are the annotations' places from 0."""

    kind = "coco_boxes"
    columns = ("annotation_id",)

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        sizes = {
            str(image.get("file_name") or ""): _size(image)
            for image in self._value["images"]
            if isinstance(image, dict)
        }
        for row, (annotation, file, box) in enumerate(self._boxes()):
            if file is None or box is None:
                what = "names no image of this file" if file is None else "has no box of four numbers"
                yield Entry(row, "", None, problem=f"{what}; correct or remove it")
                continue
            label = self._names.get(id_key(annotation.get("category_id")))
            problem = None
            if label is None:
                number = printable(str(annotation.get("category_id")), 40)
                problem = f"has the category {number}, which is not declared; add it"
            extra = {"annotation_id": str(annotation.get("id", ""))}
            yield Entry(row, file, label, extra=extra, problem=problem, region=box, size=sizes.get(file))

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``: boxes that are excluded go, every image stays."""
        numbers = {name: self._ids[key] for key, name in self._names.items()}
        kept = []
        for annotation, file, box in self._boxes():
            label = outcome(f"{file}{box}") if file is not None and box is not None else ""
            if label is not None:
                kept.append(annotation | ({"category_id": numbers[label]} if label else {}))
        return json.dumps(self._value | {"annotations": kept}, ensure_ascii=False)

    def _boxes(self) -> Iterator[tuple[dict[str, Any], str | None, str | None]]:
        """(annotation, its image's file or None, its box as a media fragment or None)."""
        files = {
            id_key(image.get("id")): str(image.get("file_name") or "")
            for image in self._value["images"]
            if isinstance(image, dict)
        }
        for annotation in self._value["annotations"]:
            found = annotation if isinstance(annotation, dict) else {}
            yield found, files.get(id_key(found.get("image_id"))), _fragment(found.get("bbox"))


def _size(image: dict[str, Any]) -> tuple[int, int] | None:
    width, height = image.get("width"), image.get("height")
    return (width, height) if isinstance(width, int) and isinstance(height, int) and width * height else None


def _fragment(box: Any) -> str | None:
    """``#xywh=left,top,width,height``; None where the box is none."""
    if not isinstance(box, list) or len(box) != 4 or any(isinstance(n, bool) for n in box):
        return None
    if not all(isinstance(n, (int, float)) and math.isfinite(n) and abs(n) < 1e9 for n in box):
        return None
    return "#xywh=" + ",".join(f"{n:.6f}".rstrip("0").rstrip(".") for n in box)
