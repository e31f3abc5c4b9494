"""Files that other tools write about images: read as rows, and written again with cleaned labels.

Each format is read for one class an image or a set of them, and is written back as it came in, with everything else
in it unchanged (``boxes``, ``labelbox`` and ``json_records`` hold more, ``formats`` chooses):

=====================  ====================================================================================
COCO                   ``images``, ``annotations``, ``categories``: the category of an image's annotations
Label Studio           a list of tasks: the choice of all who answered, or the ground truth
CVAT                   "CVAT for images": the tag of an image
ImageNet's lists       ``val.txt``: a path and a class number a line
=====================  ====================================================================================
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from auditor.ground.errors import ImportRefusedError
from auditor.ground.names import first_twice, normal
from auditor.ground.numbers import number_text, read_number
from auditor.ground.vocabulary import MULTILABEL
from auditor.ground.wording import plural
from auditor.pictures.decoding import Probe
from auditor.pictures.sources.answers import Answer, asked, marked, of_each, settled
from auditor.pictures.sources.columns import choose_column, path_on_disk
from auditor.pictures.sources.folder import has_broken_text
from auditor.pictures.sources.names_file import names_in
from auditor.pictures.sources.reading import UnreadableError, headers, is_on_stored, placed_region
from auditor.pictures.sources.roots import images_at
from auditor.pictures.sources.rows import (
    IMAGE_SUFFIXES,
    Outcomes,
    PathBook,
    Payload,
    Problem,
    Rewritable,
    Source,
    SourceInfo,
    SourceOptions,
    SourceRow,
    is_whole,
    numbered,
    printable,
)
from auditor.pictures.sources.sets import one_or_set, set_text
from auditor.pictures.sources.trees import FolderTree, Images, MissingError, PathError, ZipTree

SEVERAL_CHOICES = "has several choices"
FOLDERS_OF_IMAGES = ("data", "images")
"""Where FiftyOne and CVAT put images beside their file; its paths may start from there."""
FOLDERS_OF_FILES = ("annotations", "labels")
"""What the folder of such a file is called where its images lie beside that folder, as in COCO."""
PICTURES = ("image", "img", "picture", "photo")
"""How the image of one of Label Studio's tasks is usually called."""
Outcome = Callable[[str], str | None]
"""What an image's label is in the end, by its path as the file gives it. Empty: the entry stays as it is; None: the
image is left out."""


@dataclass(frozen=True)
class Entry:
    """One image in a file of annotations."""

    row: int
    filepath: str
    label: str | None
    split: str | None = None
    extra: Mapping[str, str] | None = None
    problem: str | None = None
    """Why it cannot be imported."""
    region: str = ""
    """The part of the image that is the sample, as ``#xywh=left,top,width,height``."""
    answers: dict[str, str] | None = None
    """As of ``SourceRow``."""
    true_label: str | None = None
    trusted: bool = False
    file: str = ""
    """The file that ``row`` counts in, where it is another one than the source's."""
    size: tuple[int, int] | None = None
    """(width, height) of the image that ``region`` was drawn on, where the file says it."""


class Format(ABC):
    """One format of annotations."""

    kind = ""
    columns: tuple[str, ...] = ()
    """The names of a line's fields, for a file that has some."""
    path_column: str | None = None
    label_column: str | None = None
    true_label_column: str | None = None
    """What names the known truth, where the format has some."""
    takes_classes = False
    """Whether classes that were renamed or came later have a place in the file."""
    annotators: tuple[str, ...] = ()
    """Whose answers are read one by one."""
    are_sets = False
    """Whether labels are sets of classes, read and written as ``sets.set_text`` does."""
    writes_sets = False
    """Whether sets have a place in the file that we know."""
    class_names: Sequence[str] = ()
    """The dataset's classes in their order, for writing a file that holds numbers."""

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Every image in the file's order."""

    def classes(self) -> tuple[str, ...] | None:
        """The class names that the file declares; None: those that occur."""
        return None

    def remarks(self) -> list[str]:
        """Return what is to be said of how labels were read."""
        return []

    @abstractmethod
    def rewritten(self, outcome: Outcome) -> str:
        """The file's text with other labels."""

    def _names_of(self, label: str) -> list[str]:
        """The classes that an outcome names."""
        return list(json.loads(label)) if self.are_sets else [label]

    def _numbered(self, label: str) -> str:
        """The class as a file with numbers has it: the name, where classes are called by their numbers."""
        return numbered(label, self.class_names)


class AnnotationSource:
    """The images that a file of annotations names, below its folder or the root."""

    def __init__(
        self, found: Format, file: Path, options: SourceOptions, images: Images | None = None
    ) -> None:
        """``found`` is the format of ``file``; ``images`` where its paths lead, if that is known."""
        self.ignored: list[str] = []
        self._found, self._file, self._masks_on = found, file, options.masks_on
        self.tree = images or images_at(options.root, file.parent if options.root else self._beside())
        self.info = SourceInfo(
            kind="zip" if isinstance(getattr(self.tree, "tree", None), ZipTree) else found.kind,
            root=self.tree.root,
            table_file=file.name,
            class_names=found.classes(),
            takes_classes=found.takes_classes,
            user_columns=found.columns,
            columns=found.columns,
            path_column=found.path_column,
            label_column=found.label_column,
            true_label_column=found.true_label_column,
            annotators=found.annotators,
            masks_on=options.masks_on,
        )

    def _beside(self) -> Path:
        """The folder that the paths start from: the file's own, or the one in it that tools put images in."""
        first = next((one.filepath for one in self._found.entries() if one.filepath and not one.problem), "")
        around = [self._file.parent]
        if self._file.parent.name.lower() in FOLDERS_OF_FILES:
            around.append(self._file.parent.parent)
        places = [*around, *(place / name for place in around for name in FOLDERS_OF_IMAGES)]
        return next((place for place in places if first and _lies_in(first, place)), places[0])

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        book = PathBook()
        images = self._images_of_boxes()
        on_stored = self._boxes_are_on_stored(images)
        for entry in self._found.entries():
            problem = entry.problem
            is_missing, location, file = False, "", entry.file or self._file.name
            if problem is None and has_broken_text(entry.filepath):
                problem = "has a path that is not valid text; correct it"
            texts = [entry.label, entry.true_label, *(entry.extra or {}).values()]
            texts += (entry.answers or {}).values()
            if problem is None and any(has_broken_text(text) for text in texts if text):
                problem = "has a label or a column that is not valid text; correct it"
            if problem is None:
                try:
                    location = self.tree.locate(entry.filepath)
                    image = images.get(location)
                    location += placed_region(image, entry.region, entry.size, on_stored=on_stored)
                    again = book.again(file, entry.filepath, location, entry.row, entry.label)
                    if again is not None:
                        yield again
                        continue
                except (PathError, UnreadableError) as error:
                    text = f"{printable(entry.filepath)} {error}" if entry.filepath else str(error)
                    problem, is_missing = text, isinstance(error, MissingError)
            if problem is not None:
                yield Problem(file, entry.row, problem, is_missing)
                continue
            yield SourceRow(
                row=entry.row,
                filepath=entry.filepath + entry.region,
                location=location,
                label=entry.label,
                answers=entry.answers,
                true_label=entry.true_label,
                trusted=entry.trusted,
                split=entry.split,
                extra=dict(entry.extra) if entry.extra else None,
            )

    def _images_of_boxes(self) -> dict[str, Probe]:
        """Read the headers of images with boxes, by location."""
        places = []
        for entry in self._found.entries():
            if entry.region and not entry.problem:
                with suppress(PathError):
                    places.append(self.tree.locate(entry.filepath))
        return headers(self.tree.root, places)

    def _boxes_are_on_stored(self, images: Mapping[str, Probe]) -> bool:
        """Return whether boxes were drawn on the stored pixels, where the size that goes with them does not tell.

        Raises:
            ImportRefusedError: neither do the sizes of others, and nobody said it.
        """
        if self._masks_on is not None:
            return self._masks_on == "stored"
        told, doubtful = set[bool](), dict[str, None]()
        for entry in self._found.entries() if any(one.orientation > 1 for one in images.values()) else ():
            try:
                image = images.get(self.tree.locate(entry.filepath)) if entry.region else None
            except PathError:
                continue
            if image is None or image.orientation == 1:
                continue
            on_stored = is_on_stored(image, entry.size)
            if on_stored is not None:
                told.add(on_stored)
            elif entry.size in (None, (image.width, image.height)):
                doubtful[entry.filepath] = None
        if doubtful and len(told) != 1:
            raise ImportRefusedError(
                f"{plural(len(doubtful), 'picture')} such as {printable(next(iter(doubtful)), 60)}: EXIF turns "
                "them, and no size tells what their boxes were drawn on; say which: stored (the pixels as they lie "
                "in the file) or seen (the picture as it is shown).",
                field="masks_on",
            )
        return True in told

    def remarks(self) -> list[str]:
        """Return what its format says."""
        return self._found.remarks()

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``: workers read the files themselves."""
        yield from locations

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``."""
        said = {
            item.filepath: outcome
            for item, outcome in zip(self.rows(), outcomes, strict=True)
            if isinstance(item, SourceRow)
        }
        if self._found.are_sets and not self._found.writes_sets:
            raise ImportRefusedError(
                f"{self._file.name} cannot be written with sets of classes; export a table."
            )
        self._found.class_names = class_names
        text = self._found.rewritten(lambda path: said.get(path, ""))
        # Half of a pair in a row that was left out is written as JSON wrote it: \ud800.
        out.write_bytes(text.encode("utf-8", "backslashreplace"))


class Coco(Format):
    """COCO's annotations, read for one category an image or the set of them; rows are the images' places from 0.

    An image without annotations has no label: the file does not say whether anybody looked at it.
    """

    kind = "coco"
    takes_classes = writes_sets = True

    def __init__(self, file: Path, value: dict[str, Any], *, are_sets: bool = False) -> None:
        """``value`` is the whole file.

        Raises:
            ImportRefusedError: a category without a name or number.
        """
        self._file, self._value, self.are_sets = file, value, are_sets
        try:
            named = [(each["id"], each["name"]) for each in value["categories"]]
            self._ids = {id_key(number): number for number, _ in named}
            self._names = {id_key(number): "" if name is None else str(name) for number, name in named}
        except (KeyError, TypeError) as error:
            raise ImportRefusedError(f"{file}: a category lacks id or name; add them.") from error
        if len(self._names) < len(named):
            raise ImportRefusedError(f"{file}: two categories have the same id; give each its own.")
        if not all(name.strip() and not has_broken_text(name) for name in self._names.values()):
            raise ImportRefusedError(f"{file}: the name of a category is blank or no valid text; correct it.")
        twice = first_twice(self._names.values())
        if twice is not None:
            raise ImportRefusedError(
                f"{file}: two categories are called {printable(twice, 60)!r}; give each a name of its own."
            )
        self._found: dict[Any, set[Any]] = {}
        self._first: dict[Any, int] = {}
        for number, annotation in enumerate(value["annotations"]):
            try:
                key = id_key(annotation["image_id"])
                self._found.setdefault(key, set()).add(id_key(annotation.get("category_id")))
                self._first.setdefault(key, number)
            except (KeyError, TypeError) as error:
                raise ImportRefusedError(
                    f"{file}: annotation {number} (from 0) needs an image_id and a category_id, each a number; "
                    "correct it."
                ) from error
        self._has_boxes = any(one.get("bbox") for one in value["annotations"])
        self._has_scores = any(isinstance(one.get("score"), (int, float)) for one in value["annotations"])

    def classes(self) -> tuple[str, ...] | None:
        """The categories in their order."""
        return tuple(self._names.values())

    def remarks(self) -> list[str]:
        """See ``Format``: whether a model may have made the annotations."""
        said = "Its annotations have scores, as what a model says: are they the labels to audit?"
        return [said] if self._has_scores else []

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        seen: set[Any] = set()
        for row, image in enumerate(self._value["images"]):
            if not isinstance(image, dict):
                yield Entry(row, "", None, problem="is no image of COCO; correct it")
                continue
            if not _is_id(image.get("id")):
                yield Entry(row, "", None, problem="has no id, or one that is no number; correct it")
                continue
            key = id_key(image["id"])
            if key in seen:
                yield Entry(row, "", None, problem="has the id of an earlier image; give each its own")
                continue
            seen.add(key)
            numbers = self._found.get(key, set())
            problem, label = None, None
            names = [name for number, name in self._names.items() if number in numbers]
            try:
                label = one_or_set(names, "has annotations of several categories", are_sets=self.are_sets)
            except ValueError as error:
                problem = (
                    f"{error}{', or each box as a sample of its own (boxes)' if self._has_boxes else ''}"
                )
            if unknown := [number for number in numbers if number not in self._names]:
                problem = f"has the category {printable(str(unknown[0]), 40)}, which is not declared; add it"
            yield Entry(row, _file_name(image), label, problem=problem)
        yield from self._of_no_image(seen)

    def _of_no_image(self, known: set[Any]) -> Iterator[Entry]:
        """One problem for all annotations whose image is not listed."""
        lost = [key for key in self._found if key not in known]
        if lost:
            row = self._first[lost[0]]
            theirs, ours = (printable(", ".join(map(str, list(ids)[:3])), 60) for ids in (lost, known))
            text = (
                f"annotation {row} (from 0) names the image {theirs.split(',')[0]}, which is not listed "
                f"({len(lost):,} such ids: {theirs}; listed are {ours or 'none'}); correct image_id, or remove "
                "such annotations"
            )
            yield Entry(row, "", None, problem=text)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``."""
        categories = self._categories()
        numbers = {normal(str(each["name"])): each["id"] for each in categories}
        images = [image for image in self._value["images"] if outcome(_file_name(image)) is not None]
        known = [image for image in images if isinstance(image, dict) and _is_id(image.get("id"))]
        label_of: dict[Any, str | None] = {}
        for image in known:
            label_of.setdefault(id_key(image["id"]), outcome(_file_name(image)))
        ids = {id_key(image["id"]): image["id"] for image in known}
        wanted = {
            image: [numbers[name] for name in self._names_of(label)]
            for image, label in label_of.items()
            if label
        }
        annotations = []
        for annotation in self._value["annotations"]:
            image = id_key(annotation["image_id"])
            if image in wanted and not self.are_sets:
                annotations.append(annotation | {"category_id": wanted[image][0]})
            elif image in label_of and _is_kept(annotation, wanted.get(image)):
                annotations.append(annotation)
        there = {(id_key(each["image_id"]), id_key(each.get("category_id"))) for each in annotations}
        new = [
            {"image_id": ids[image], "category_id": category}
            for image, found in wanted.items()
            for category in found
            if (image, id_key(category)) not in there
        ]
        highest = max((each["id"] for each in annotations if isinstance(each.get("id"), int)), default=0)
        annotations += [{"id": number} | each for number, each in enumerate(new, start=highest + 1)]
        whole = self._value | {"images": images, "annotations": annotations, "categories": categories}
        return json.dumps(whole, ensure_ascii=False)

    def _categories(self) -> list[dict[str, Any]]:
        """Those of the file by the dataset's names, and one more for each class that came later."""
        known = self._value["categories"]
        found = [
            each if normal(str(each["name"])) == name else each | {"name": name}
            for each, name in zip(known, self.class_names, strict=False)
        ]
        highest = max((int(key) for key in self._ids if isinstance(key, int)), default=0)
        later = enumerate(self.class_names[len(known) :], start=highest + 1)
        return found + [{"id": number, "name": name} for number, name in later]


def _is_kept(annotation: dict[str, Any], wanted: list[Any] | None) -> bool:
    """Return whether a set still has the category of an annotation; None: the set stays as it is."""
    return wanted is None or id_key(annotation.get("category_id")) in map(id_key, wanted)


def id_key(value: Any) -> Any:
    """Equal for ids that are one, whether a tool writes a number or its text: 1, "1" and 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and is_whole(value.strip()) and len(value) < 19 else value


def _is_id(value: Any) -> bool:
    return isinstance(value, (int, float, str))


def _file_name(image: Any) -> str:
    return str(image.get("file_name") or "") if isinstance(image, dict) else ""


class LabelStudio(Format):
    """Label Studio's export as JSON; rows are the tasks' places from 0."""

    kind = "label_studio"
    writes_sets = True

    def __init__(self, file: Path, tasks: list[Any], options: SourceOptions) -> None:
        """``tasks`` is the whole file; ``options.label_column`` names the question, where there are several.

        Raises:
            ImportRefusedError: there are several questions and none is named, or none has that name.
        """
        self._tasks, self.are_sets = tasks, options.task == MULTILABEL
        self._question = one_question(file, map(_questions, tasks), options)
        self.label_column = self._question
        controls = (_controls(result) for task in tasks for _, result in _results(task))
        of_this = (found for found in controls if self._question in (None, found["from_name"]))
        self._controls = next(of_this, {"from_name": "label", "to_name": "image"})
        found = (self._answers(task) for task in tasks if self._is_task(task)) if options.annotators else ()
        self.annotators = asked(file.name, options.annotators, found)

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        for row, task in enumerate(self._tasks):
            if not self._is_task(task):
                yield Entry(row, "", None, problem="is no task of Label Studio; export them as JSON")
                continue
            label, problem, answers = None, None, None
            try:
                _refuse_several(task["data"])
                given = self._answers(task)
                if self.annotators:
                    label, answers = marked(given), of_each(given, self.annotators)
                else:
                    said = settled(given)
                    label = one_or_set(said.names, SEVERAL_CHOICES, are_sets=self.are_sets) if said else None
                    if said and self.are_sets and not said.names:
                        label = set_text(())
            except ValueError as error:
                problem = str(error)
            yield Entry(row, _picture_of(task["data"]), label, answers=answers, problem=problem)

    def remarks(self) -> list[str]:
        """See ``Format``: how many answers a reviewer refused."""
        refused = sum(_is_refused(one) for task in self._tasks for one in _annotations_of(task))
        return [f"{plural(refused, 'answer')} that a reviewer refused left out."] if refused else []

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``: the answer changes; what several people answered stays, beside a truth of ours."""
        kept = []
        for task in self._tasks:
            label = outcome(_picture_of(task["data"])) if self._is_task(task) else ""
            if label is None:
                continue
            if label:
                self._answer(task, label)
            kept.append(task)
        return json.dumps(kept, ensure_ascii=False)

    def _answer(self, task: dict[str, Any], label: str) -> None:
        answers = self._answers(task)
        truth = [answer for answer in answers if answer.is_truth] or answers
        if not self.annotators and len({answer.by for answer in answers if answer.by}) < 2 and truth:
            place = truth[-1].place
            place["result"]["value"] = place["result"]["value"] | {"choices": self._names_of(label)}
            if self.are_sets:  # one result says the whole set
                others = set(map(id, place["earlier"]))
                kept = [one for one in place["annotation"]["result"] if id(one) not in others]
                place["annotation"]["result"] = kept
            return
        result = {"type": "choices", **self._controls, "value": {"choices": self._names_of(label)}}
        key = _annotations_key(task)
        earlier = task.get(key)
        earlier = earlier if isinstance(earlier, list) else []
        for answer in answers:
            if answer.is_truth:
                answer.place["annotation"]["ground_truth"] = False
        mark = {"ground_truth": True} if answers else {}
        task[key] = [*earlier, {"result": [result]} | mark]

    @staticmethod
    def _is_task(task: Any) -> bool:
        return isinstance(task, dict) and isinstance(task.get("data"), dict)

    def _answers(self, task: dict[str, Any]) -> list[Answer[dict[str, Any]]]:
        """Return what people chose, one answer an annotation.

        Raises:
            ValueError: choices that are no list of names.
        """
        own = self._question
        found: dict[int, Answer[dict[str, Any]]] = {}
        for annotation, result in _results(task, with_empty=self.are_sets):
            if own is not None and result.get("from_name", own) != own:
                continue
            if "x" in result["value"] or "start" in result["value"]:
                raise ValueError("has a choice about a region; classes of whole images can be audited")
            choices = result["value"]["choices"]
            if not isinstance(choices, list) or not all(isinstance(one, str) for one in choices):
                raise ValueError("has choices that are no list of names; export the tasks again")
            by = annotation.get("completed_by")
            by = by.get("id", by.get("email")) if isinstance(by, dict) else by
            is_truth = bool(annotation.get("ground_truth") or annotation.get("honeypot"))
            before = found.get(id(annotation))
            names = (*(before.names if before else ()), *choices)
            earlier = [*before.place["earlier"], before.place["result"]] if before else []
            place = {"annotation": annotation, "result": result, "earlier": earlier}
            found[id(annotation)] = Answer("" if by is None else str(by), names, is_truth, place)
        return list(found.values())


def one_question(file: Path, asked: Iterable[Iterable[str]], options: SourceOptions) -> str | None:
    """The question whose answers are the labels: the one that is named, or the only one; None: nothing is asked.

    Raises:
        ImportRefusedError: there are several and none is named, or none has that name.
    """
    questions = tuple(dict.fromkeys(name for names in asked for name in names))
    if options.label_column is not None:
        return choose_column(file.name, questions, "label", options.label_column, ())
    if len(questions) > 1:
        raise ImportRefusedError(
            f"{file.name} has answers to several questions ({printable(', '.join(questions))}); name the one whose "
            "answers are the labels.",
            field="label_column",
        )
    return questions[0] if questions else None


def _refuse_several(data: dict[str, Any]) -> None:
    pictures = [name for name, value in data.items() if is_image(value)]
    if len(pictures) > 1 and not any(data.get(name) for name in PICTURES):
        shown = printable(", ".join(pictures), 60)
        raise ValueError(f"has several pictures ({shown}); call the one that is labeled image in data")


def _picture_of(data: dict[str, Any]) -> str:
    """The image's path as the server stores it: ``?d=`` of local files, or what follows ``/data/upload/``."""
    text = next(
        (str(data[name]) for name in PICTURES if data.get(name)),
        next((value for value in data.values() if is_image(value)), ""),
    )
    return path_on_disk(text)


class Cvat(Format):
    """The XML of "CVAT for images"; rows are the images' places from 0."""

    kind = "cvat"
    takes_classes = writes_sets = True

    def __init__(self, file: Path, *, are_sets: bool = False) -> None:
        """Parse the file.

        Raises:
            ImportRefusedError: no XML, or not of CVAT.
        """
        self.are_sets = are_sets
        try:
            self._root = ElementTree.parse(file).getroot()
        except (ElementTree.ParseError, UnicodeDecodeError) as error:
            raise ImportRefusedError(f"{file} is no XML ({error}); export it again.") from error
        if self._root.tag != "annotations":
            raise ImportRefusedError(f"{file} is no XML of CVAT; export it as 'CVAT for images'.")

    def classes(self) -> tuple[str, ...] | None:
        """The labels of the task, in their order."""
        names = [name.text or "" for name in self._root.iterfind("meta//labels/label/name")]
        return tuple(dict.fromkeys(names)) or None

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        for row, image in enumerate(self._root.iterfind("image")):
            label, problem = None, None
            try:
                names = [tag.get("label", "") for tag in image.iterfind("tag")]
                label = one_or_set(names, "has several tags", are_sets=self.are_sets)
            except ValueError as error:
                problem = str(error)
            yield Entry(row, image.get("name", ""), label, image.get("subset"), problem=problem)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``."""
        self._name_labels()
        for image in list(self._root.iterfind("image")):
            label = outcome(image.get("name", ""))
            if label is None:
                self._root.remove(image)
                continue
            tags = list(image.iterfind("tag"))
            names = self._names_of(label) if label else []
            for tag in tags if label else ():
                if not self.are_sets:
                    tag.set("label", label)
                elif tag.get("label", "") not in names:
                    image.remove(tag)
            there = {tag.get("label", "") for tag in image.iterfind("tag")}
            for name in names:
                if name not in there:
                    ElementTree.SubElement(image, "tag", {"source": "manual", "label": name})
        return ElementTree.tostring(self._root, encoding="unicode", xml_declaration=True)

    def _name_labels(self) -> None:
        """Declare the dataset's names, and those that came later."""
        places = [
            place for place in self._root.iterfind("meta//labels") if place.find("label/name") is not None
        ]
        if not places:
            return
        known = self.classes() or ()
        called = dict(zip(known, self.class_names, strict=False))
        for name in self._root.iterfind("meta//labels/label/name"):
            if normal(name.text or "") != called.get(name.text or "", ""):
                name.text = called.get(name.text or "", name.text)
        for later in self.class_names[len(known) :]:
            ElementTree.SubElement(ElementTree.SubElement(places[0], "label"), "name").text = later


class ImageList(Format):
    """``path number`` or ``path name`` a line, as ImageNet's ``val.txt``; rows are counted from 1."""

    kind = "image_list"

    def __init__(self, file: Path) -> None:
        """Nothing is read yet."""
        self._file = file

    def entries(self) -> Iterator[Entry]:
        """See ``Format``."""
        are_numbers = None
        for row, head, said in self._lines():
            are_numbers = is_whole(said) if are_numbers is None else are_numbers
            problem = (
                f"ends in {printable(said, 40)!r}, not in a class number; correct it"
                if are_numbers and not is_whole(said)
                else None
            )
            yield Entry(row, head.strip(), said, problem=problem)

    def rewritten(self, outcome: Outcome) -> str:
        """See ``Format``: numbers where there were numbers."""
        kept = []
        for _, head, said in self._lines():
            label = outcome(head.strip())
            if label is not None:
                new = self._numbered(label) if label and is_whole(said) else label
                kept.append(f"{head}{new or said}\n")
        return "".join(kept)

    def _lines(self) -> Iterator[tuple[int, str, str]]:
        """Row, the path with what parts it from the label, and the label."""
        try:
            with self._file.open(encoding="utf-8-sig") as lines:
                for row, line in enumerate(lines, start=1):
                    if line.strip():
                        said = line.split()[-1]
                        yield row, line.rstrip()[: -len(said)], said
        except UnicodeDecodeError as error:
            raise ImportRefusedError(
                f"{self._file.name} is not UTF-8 text ({error.reason}); save it so."
            ) from error


def _annotations_key(task: dict[str, Any]) -> str:
    return "completions" if "completions" in task and "annotations" not in task else "annotations"


def _annotations_of(task: Any) -> Iterator[dict[str, Any]]:
    annotations = task.get(_annotations_key(task)) if isinstance(task, dict) else None
    for annotation in annotations if isinstance(annotations, list) else []:
        if isinstance(annotation, dict):
            yield annotation


def _is_refused(annotation: dict[str, Any]) -> bool:
    """Return whether the last review of Label Studio Enterprise refused it."""
    reviews = annotation.get("reviews")
    last = reviews[-1] if isinstance(reviews, list) and reviews else None
    return isinstance(last, dict) and last.get("accepted") is False


def _results(task: Any, *, with_empty: bool = False) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(annotation, choice) of a task, the oldest annotation first; cancelled and refused ones say nothing.

    ``with_empty``: so do lists of no choice, as we write a set without classes.
    """
    for annotation in _annotations_of(task):
        if not annotation.get("was_cancelled") and not _is_refused(annotation):
            results = annotation.get("result")
            for result in results if isinstance(results, list) else []:
                value = result.get("value") if isinstance(result, dict) else None
                if not isinstance(value, dict):
                    continue
                if value.get("choices") or (with_empty and value.get("choices") == []):
                    yield annotation, result


def _questions(task: Any) -> list[str]:
    return [str(result["from_name"]) for _, result in _results(task) if result.get("from_name")]


def _controls(result: dict[str, Any]) -> dict[str, str]:
    """Return what ties a choice to the project's labeling interface."""
    return {
        name: str(result.get(name) or usual) for name, usual in (("from_name", "label"), ("to_name", "image"))
    }


def _lies_in(path: str, folder: Path) -> bool:
    try:
        FolderTree(folder).locate(path)
    except PathError:
        return False
    return True


def is_image(value: Any) -> bool:
    return isinstance(value, str) and urlsplit(value).path.lower().endswith(IMAGE_SUFFIXES)


class RenamedSource:
    """A source whose labels are written in another way; everything else in it is as it was."""

    def __init__(self, source: Source, info: SourceInfo, rename: Callable[[str], str | None]) -> None:
        """``rename`` returns None for no label, and raises ``ValueError`` with what is wrong about a label."""
        self._source, self.info, self._rename = source, info, rename
        self.tree = getattr(source, "tree", None)
        self.ignored = source.ignored

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``."""
        for row in self._source.rows():
            if isinstance(row, Problem):
                yield row
                continue
            try:
                row.label = None if row.label is None else self._rename(row.label)
                row.true_label = None if row.true_label is None else self._rename(row.true_label)
                if row.answers is not None:
                    said = {who: self._rename(one) for who, one in row.answers.items()}
                    row.answers = {who: one for who, one in said.items() if one is not None}
                if row.review is not None and self.info.is_numeric and row.review["cleaned_label"]:
                    row.review["cleaned_label"] = self._rename(row.review["cleaned_label"]) or ""
            except ValueError as error:
                yield Problem(
                    self.info.table_file if row.row is not None else row.filepath, row.row, str(error)
                )
                continue
            yield row
        self.ignored = self._source.ignored

    def remarks(self) -> list[str]:
        """Return what the source below says."""
        own: Callable[[], list[str]] = getattr(self._source, "remarks", list)
        return own()

    def payloads(self, locations: Iterable[str]) -> Iterator[Payload]:
        """See ``Source``."""
        yield from self._source.payloads(locations)

    def write_again(self, out: Path, outcomes: Outcomes, class_names: Sequence[str]) -> None:
        """See ``sources.Rewritable``.

        Raises:
            ImportRefusedError: the source below cannot be written again.
        """
        if not isinstance(self._source, Rewritable):
            raise ImportRefusedError(f"{self.info.table_file} cannot be written in its own form.")
        self._source.write_again(out, outcomes, class_names)


def numbers_of(source: Source) -> RenamedSource:
    """A source whose labels are numbers.

    Raises:
        ImportRefusedError: it names classes itself.
    """
    if source.info.class_names is not None:
        raise ImportRefusedError(
            f"{source.info.table_file or source.info.root} names its classes, so its labels are no numbers; "
            "leave the task out.",
            field="task",
        )

    def rename(text: str) -> str:
        try:
            return number_text(read_number(text))
        except ValueError as error:
            raise ValueError(f"has a label that {error}") from None

    return RenamedSource(source, replace(source.info, is_numeric=True), rename)


class NamedSource(RenamedSource):
    """A source whose class numbers are named by a file, one name a line, class 0 first."""

    def __init__(self, source: Source, file: Path) -> None:
        """Read the names.

        Raises:
            ImportRefusedError: the file cannot be read, is empty or has a name twice, or the source has names.
        """
        names = names_in(file)
        if source.info.class_names is not None:
            raise ImportRefusedError(
                f"{source.info.table_file} names its classes itself; leave the class names out.",
                field="class_names",
            )
        self._names, self._known = tuple(names), frozenset(names)
        super().__init__(source, replace(source.info, class_names=self._names), self._name)

    def _name(self, label: str) -> str | None:
        if label in self._known:
            return label
        label = label.removesuffix(".0")  # as pandas writes numbers beside empty cells
        if label == "-1":
            return None
        if not is_whole(label) or not 0 <= int(label) < len(self._names):
            raise ValueError(
                f"has the class {printable(label, 60)!r}, which is none of the {len(self._names):,} class names "
                "and no number of one; correct it"
            )
        return self._names[int(label)]
