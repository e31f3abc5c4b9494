"""Inputs that nobody thought of: by option of every command, by source, by route (schemathesis) and by Python call.

Each trial takes one example of a hypothesis strategy; its number alone says which.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from PIL import Image

from qa.faults.trial import NUM, FaultError, check_home, command, no_litter, one_line, pictures

TRIED = 6
"""Examples that are generated for a trial, which takes the last: the first ones are hypothesis' simplest."""


def example(strategy: st.SearchStrategy[Any], luck: random.Random) -> Any:
    """One example of the strategy, the same for the same luck."""
    found: list[Any] = []

    @seed(luck.randrange(2**32))
    @settings(
        max_examples=TRIED,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def take(value: Any) -> None:
        found.append(value)

    take()
    return found[-1]


# Text

ODD_TEXT = [
    *("", " ", "first", "second", "-", "--", "-1", "0", "1", "1.5", "1e999", "nan", "-inf", "²", "١", "1_0"),
    *("9" * 40, "x" * 5_000, "\x1b[31m", "=1+1", "\n=1", "\t", "\r\n", "../..", "/"),
    *(
        "~",
        "~nouser/x",
        "a,a",
        "None",
        "null",
        "true",
        "2026-13-01",
        "::",
        "auto",
        "#",
        "{",
        "[[",
        "%s",
        "{}",
    ),
    *(
        "é",
        "é",
        "\u202eabc",
        "\u200b",
        "\ufeff",
        "\ufffe",
        "\U000e0001",
        "\udcff",
        "caf\udce9",
        "ﷺ",
        "🏳️‍🌈",
        "ẞ",
    ),
    *(
        "' OR 1=1 --",
        '"; DROP TABLE dataset; --',
        "<script>alert(1)</script>",
        "$(id)",
        "`id`",
        "a\\b",
        "a/b",
    ),
    *(
        "fiftyone:",
        "column:",
        "column:nothing",
        "CON",
        "NUL",
        "a" * 255,
    ),
    *(
        "cross_entropy",
        "cross_entropy.epochs=1e9",
        "cross_entropy.epochs=",
        ".=",
        "=",
        "umn.x=1",
        "cat",
        "dog",
    ),
]
"""What people and programs type; no NUL: no command line carries one."""
TEXT = st.sampled_from(ODD_TEXT) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NAMES = st.sampled_from(["first"] * 3 + ["second"]) | TEXT
WHOLE = st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30]) | st.integers()


def places(home_folder: Path, place: Path) -> list[str]:
    """Paths of every kind: tables, arrays, pipes, loops, holes, devices, what is not there."""
    odd = place / "odd"
    if not odd.exists():
        odd.mkdir()
        (odd / "loop").symlink_to("loop")
        (odd / "dangling.csv").symlink_to("nowhere")
        (odd / "up").symlink_to("..")
        os.mkfifo(odd / "pipe.csv")
        (odd / "empty.csv").write_bytes(b"")
        (odd / "empty.npy").write_bytes(b"")
        (odd / "bom.csv").write_bytes(b"\xff\xfe" + "sample_id,review_decision\n1,keep\n".encode("utf-16-le"))
        (odd / "good.csv").write_text("sample_id,review_decision\n1,keep\n")
        (odd / "wide.csv").write_text(",".join(f"c{i}" for i in range(3_000)) + "\n")
        (odd / "quote.csv").write_text('sample_id,review_decision\n1,"keep\n')
        (odd / "caf\udce9.csv").write_text("sample_id,review_decision\n")
        np.save(odd / "probs.npy", np.full((NUM, 2), 0.5))
        np.save(odd / "huge.npy", np.zeros((0, 10**9)))
        np.save(odd / "nan.npy", np.full((NUM, 2), np.nan))
        np.save(odd / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
        with open(odd / "hole.csv", "wb") as file:
            file.truncate(2**33)
        with open(odd / "hole.npy", "wb") as file:
            file.truncate(2**33)
        (odd / "nothing.zip").write_bytes(b"PK\x05\x06" + bytes(18))
        for name, minor in (("null.csv", 3), ("zero.csv", 5), ("full.csv", 7)) if os.geteuid() == 0 else ():
            with contextlib.suppress(OSError):  # devices of our own: a command may be told to overwrite them
                os.mknod(odd / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    named = [str(path) for path in odd.iterdir()]
    named += [
        str(home_folder),
        str(home_folder / "catalog.db"),
        str(place / "new.csv"),
        str(place / "new.tar"),
    ]
    named += [
        str(home_folder.parent / "source"),
        str(place / "no" / "such" / "out.csv"),
        str(place / "new.html"),
    ]
    named += ["/proc/self/mem", "/proc/1/mem", "/sys", "/", ".", "", "x" * 300]
    return [
        *named,
        str(place / "new.parquet"),
        str(place / "new.tsv"),
        str(place / "tree"),
        str(odd / "up" / "up"),
    ]


# Options

SERVES = {"app", "demo", "fiftyone", "get", "job"}
"""They serve, download, or do the work of a job."""
TRAINS = {"compare"}
"""They train for long once everything is right; here their dataset never is."""


def leaves(
    group: click.Group, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words before its options."""
    for name, one in sorted(group.commands.items()):
        if isinstance(one, click.Group):
            yield from leaves(one, (*above, name))
        elif name not in SERVES:
            yield (*above, name), one


def value_of(kind: click.ParamType, paths: list[str]) -> st.SearchStrategy[str]:
    """What may be typed for a parameter: right, nearly right, and wrong."""
    if isinstance(kind, click.Choice):
        return st.sampled_from(list(kind.choices)) | TEXT
    if isinstance(kind, click.types.IntParamType):
        return st.integers(1, 30).map(str) | WHOLE.map(str) | TEXT
    if isinstance(kind, click.types.FloatParamType):
        return st.floats(0, 1).map(str) | st.floats().map(str) | TEXT
    if isinstance(kind, click.Path):
        return st.sampled_from(paths) | TEXT
    return st.sampled_from(paths) | TEXT | TEXT


@st.composite
def arguments_of(draw: st.DrawFn, words: tuple[str, ...], one: click.Command, paths: list[str]) -> list[str]:
    """A command line for this command."""
    found = list(words)
    for parameter in one.params:
        is_name = parameter.name == "name"
        if isinstance(parameter, click.Argument):
            is_apart = words[-1] in TRAINS or words == ("remove",)
            names = TEXT.filter(lambda text: text not in ("first", "second")) if is_apart else NAMES
            if parameter.required or draw(st.booleans()):
                found += ["--"] if draw(st.integers(0, 9)) == 0 and not found[-1].startswith("-") else []
                found.append(draw(names if is_name else value_of(parameter.type, paths)))
            continue
        assert isinstance(parameter, click.Option)
        if not parameter.required and draw(st.integers(0, 3)) > 0:
            continue
        found.append(parameter.opts[-1])
        if not parameter.is_flag:
            found.append(draw(value_of(parameter.type, paths)))
    if words == ("audit",):  # or it would train
        found += ["--engines", "nosuch"] if "--resume" not in found else []
    if words == ("remove",):
        found.append("--yes")
    return found


def options(luck: random.Random, place: Path) -> None:
    """A command line with generated options: exit code 0, 1 or 2, and a line."""
    from auditor.cli.commands import cli

    home_folder = Path(os.environ["AUDITOR_HOME"])
    os.chdir(place)
    words, one = luck.choice(list(leaves(cli)))
    typed = example(arguments_of(words, one, places(home_folder, place)), luck)
    command(*typed)
    if luck.random() < 0.2:
        check_home()


# Sources

CELLS = TEXT | st.sampled_from(
    ["cat/1.png", "dog/0.png", "1.png", "cat", "dog", "train", "test", "1", "0", "\0"]
)
HEADERS = st.sampled_from(
    [
        *(
            "filepath",
            "path",
            "image",
            "file_name",
            "label",
            "labels",
            "class",
            "trusted",
            "split",
            "true_label",
        ),
        *("sample_id", "review_decision", "Label ", "LABEL", "filepath", "label"),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """The bytes of a table: any header, rows of any length, any encoding, any line ends."""
    header = draw(st.lists(HEADERS | CELLS, min_size=0, max_size=6))
    if draw(st.booleans()):
        header = ["filepath", "label", *header]
    rows = draw(st.lists(st.lists(CELLS, max_size=8), max_size=8))
    if draw(st.booleans()):
        rows += [["cat/1.png", "cat"], ["dog/0.png", "dog"], ["dog/2.png", draw(CELLS)]]
    delimiter = draw(st.sampled_from([",", "\t", ";", "|", ", "]))
    quote = draw(st.sampled_from(['"', "'", "", '"']))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\x85", "\u2028"]))
    lines = [delimiter.join(f"{quote}{cell}{quote}" for cell in row) for row in [header, *rows]]
    text = end.join(lines) + draw(st.sampled_from(["", end, end * 50]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-32"]))
    return text.encode(encoding, "replace" if not encoding.startswith("utf-8") else "surrogateescape")


JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=6,
)


def documents(luck: random.Random, folder: Path) -> Path:
    """A document of annotations in which some values are others."""
    kind = luck.choice(["coco", "labelstudio", "metadata", "val", "cvat", "any"])
    names = [f"cat/{i}.png" for i in (1, 3)] + [f"dog/{i}.png" for i in (0, 2)]
    if kind == "coco":
        document: Any = {
            "images": [{"id": i, "file_name": name, "width": 8, "height": 8} for i, name in enumerate(names)],
            "annotations": [{"id": i, "image_id": i, "category_id": 1 + i // 2} for i in range(4)],
            "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        }
    elif kind == "labelstudio":
        document = [
            {
                "id": i,
                "data": {"image": name},
                "annotations": [
                    {"result": [{"type": "choices", "from_name": "c", "value": {"choices": ["cat"]}}]}
                ],
            }
            for i, name in enumerate(names)
        ]
    elif kind == "metadata":
        document = [{"file_name": name, "label": name[:3]} for name in names]
    elif kind == "any":
        document = example(JSON, luck)
    else:
        return _plain_annotations(luck, folder, kind, names)
    for _ in range(luck.randrange(0, 4)):
        document = changed(document, luck)
    if kind == "metadata":
        rows = document if isinstance(document, list) else [document]
        text = "\n".join(json.dumps(row) for row in rows)
        target = folder / "metadata.jsonl"
    else:
        text = json.dumps(document, ensure_ascii=luck.random() < 0.5)
        target = folder / luck.choice(["instances.json", "export.json", "result.json"])
    target.write_bytes(text.encode("utf-8", "surrogatepass"))
    return target


def _plain_annotations(luck: random.Random, folder: Path, kind: str, names: list[str]) -> Path:
    cell = example(CELLS, luck)
    if kind == "val":
        target = folder / "val.txt"
        lines = [f"{name} {i % 2}" for i, name in enumerate(names)] + [cell]
        luck.shuffle(lines)
        target.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
        return target
    target = folder / "annotations.xml"
    inner = "".join(f'<image id="{i}" name="{n}"><tag label="cat"/></image>' for i, n in enumerate(names))
    start = luck.choice(
        [
            "<annotations>",
            f"<!DOCTYPE a [<!ENTITY x '{cell}'>]><annotations>&x;",
            "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]><annotations>&b;",
            '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotations>&x;',
            f"<annotations><image name='{cell}'/>",
        ]
    )
    target.write_bytes(
        f"<?xml version='1.0'?>{start}{inner}</annotations>".encode("utf-8", "surrogateescape")
    )
    return target


def changed(value: Any, luck: random.Random) -> Any:
    """One leaf, or one part, is another value, or missing, or there twice."""
    if isinstance(value, dict) and value and luck.random() < 0.85:
        key = luck.choice(sorted(value, key=str))
        if luck.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        return value | {key: changed(value[key], luck)}
    if isinstance(value, list) and value and luck.random() < 0.8:
        at = luck.randrange(len(value))
        if luck.random() < 0.15:
            return [*value, value[at]]
        return [*value[:at], changed(value[at], luck), *value[at + 1 :]]
    return example(JSON, luck)


PARQUET_CELLS: list[Callable[[], pa.Array]] = [
    lambda: pa.array([1, 2, 3]),
    lambda: pa.array([1.0, float("nan"), float("inf")]),
    lambda: pa.array(["cat", "dog", None]),
    lambda: pa.array(["cat", "dog\0", "=1"]),
    lambda: pa.array([b"x", b"", None]),
    lambda: pa.array([[1], [], None]),
    lambda: pa.array([{"bytes": b"x", "path": "a.png"}, None, {"bytes": None, "path": None}]),
    lambda: pa.array([True, False, None]),
    lambda: pa.array([10**18, -1, 0], pa.decimal128(30, 3)),
    lambda: pa.array([0, 1, 2], pa.timestamp("ns")),
    lambda: pa.array([0, 1, 2], pa.date32()),
    lambda: pa.array(["a", "b", "a"]).dictionary_encode(),
    lambda: pa.array([2**64 - 1, 0, 1], pa.uint64()),
    lambda: pa.nulls(3),
    lambda: pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    lambda: pa.array([0, 1, 2], pa.duration("s")),
    lambda: pa.array(["1", "--1", "9" * 4_000]),
]


def parquets(luck: random.Random, folder: Path) -> Path:
    """A Parquet file whose columns are of any type, with true images in some."""
    data = next(folder.rglob("*.png")).read_bytes()
    names = [example(HEADERS | CELLS, luck) for _ in range(luck.randrange(0, 4))]
    columns = [luck.choice(PARQUET_CELLS)() for _ in names]
    if luck.random() < 0.7:
        names.append("image")
        columns.append(luck.choice([pa.array([data] * 3), pa.array([{"bytes": data, "path": "a.png"}] * 3)]))
    if luck.random() < 0.7:
        names.append("label")
        columns.append(luck.choice(PARQUET_CELLS)())
    names = [name.encode("utf-8", "replace").decode() for name in names]
    metadata = {"huggingface": json.dumps(example(JSON, luck)).encode("utf-8", "surrogatepass")}
    table = pa.Table.from_arrays(columns, names=names)
    if luck.random() < 0.5:
        table = table.replace_schema_metadata(metadata)
    target = folder.parent / "set.parquet"
    pq.write_table(table, target)
    return target


def zips(luck: random.Random, folder: Path) -> Path:
    """A zip whose members have any name, are there twice, or are links, encrypted or empty."""
    target = folder.parent / "set.zip"
    files = sorted(folder.rglob("*.png"))
    with zipfile.ZipFile(target, "w", luck.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for file in files:
            archive.write(file, str(file.relative_to(folder)))
        for _ in range(luck.randrange(0, 4)):
            odd = example(
                CELLS | st.sampled_from(["/etc/passwd", "../../x.png", "C:\\x.png", "cat//1.png"]), luck
            )
            info = zipfile.ZipInfo(luck.choice([odd, f"cat/{odd}.png", f"{odd}/1.png"]))
            info.external_attr = luck.choice([0, 0o120777 << 16, 0o100644 << 16, 0o010644 << 16])
            info.date_time = luck.choice([(1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)])
            with contextlib.suppress(UnicodeError, ValueError), _quiet():
                archive.writestr(info, luck.choice([files[0].read_bytes(), b"", b"/etc/passwd", bytes(99)]))
    return target


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def folders(luck: random.Random, folder: Path) -> Path:
    """A folder with entries of any name and kind."""
    data = next(folder.rglob("*.png")).read_bytes()
    for _ in range(luck.randrange(1, 6)):
        odd = example(TEXT, luck).replace("/", "_")[:80]
        if odd in ("", ".", ".."):
            continue
        with contextlib.suppress(OSError, UnicodeError):
            if luck.random() < 0.5:
                (folder / odd).mkdir(exist_ok=True)
                (folder / odd / "1.png").write_bytes(data)
                (folder / unicodedata.normalize("NFD", odd)).mkdir(exist_ok=True)
                continue
            target = (
                folder / "cat" / f"{odd}.{luck.choice(['png', 'PNG', 'jpg', 'txt', 'gif', 'svg', 'heic'])}"
            )
            kind = luck.randrange(6)
            if kind == 0:
                target.symlink_to(luck.choice(["..", ".", "1.png", "/etc/passwd", "nowhere", target.name]))
            elif kind == 1:
                os.mkfifo(target)
            elif kind == 2:
                with target.open("wb") as file:
                    file.truncate(luck.choice([0, 1, 2**20, 2**34]))
            elif kind == 3:
                target.mkdir()
            else:
                target.write_bytes(data)
    return folder


def images(luck: random.Random, folder: Path) -> Path:
    """One image of any mode, format, size and orientation among the others."""
    mode = luck.choice(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I", "I;16", "F", "HSV", "LAB"])
    size = luck.choice([(1, 1), (1, 3_000), (3_000, 1), (8, 8), (17, 5), (600, 400)])
    kind = luck.choice(["png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm", "ico", "tga", "jpeg2000", "apng"])
    image = Image.new(mode, size)
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = luck.choice([0, 1, 3, 6, 8, 9, 99])
    more = {"exif": exif} if kind in ("png", "jpeg", "webp", "tiff") else {}
    try:
        image.save(buffer, "PNG" if kind == "apng" else kind.upper(), **more)
    except (OSError, KeyError, ValueError):
        image.convert("RGB").save(buffer, "PNG")
    data = bytearray(buffer.getvalue())
    if luck.random() < 0.3 and len(data) > 30:
        data[luck.randrange(8, 30)] = luck.randrange(256)
    (folder / "cat" / f"odd.{luck.choice(['png', 'jpg', 'gif', 'tiff', 'webp', 'bmp'])}").write_bytes(data)
    return folder


def sources(luck: random.Random, place: Path) -> None:
    """A generated source: shown and imported as a whole, or refused with a line; no litter."""
    from auditor.ground.settings import settings as chosen
    from auditor.importing import imports

    folder = pictures(place / "set", 6)
    kind = luck.choice(["table", "annotations", "parquet", "zip", "folder", "image"])
    if kind == "table":
        source = folder / luck.choice(["t.csv", "t.tsv", "t.txt", "T.CSV"])
        source.write_bytes(example(tables(), luck))
    else:
        makers = {"annotations": documents, "parquet": parquets, "zip": zips, "folder": folders}
        source = makers.get(kind, images)(luck, folder)
    more: dict[str, Any] = {}
    if luck.random() < 0.15:
        more["label_column"] = example(HEADERS | CELLS, luck)
    if luck.random() < 0.1:
        more["path_column"] = example(HEADERS | CELLS, luck)
    if luck.random() < 0.1:
        more["true_label_column"] = example(HEADERS, luck)
    with one_line():
        imports.preview_source(source, **more)
    with one_line():
        imports.import_dataset(source, name="x", workers=1, skip_bad=luck.random() < 0.4, **more)
        command("status", "x")
        command("export", "x", "--out", str(place / "x.csv"))
        command("remove", "x", "--yes")
    no_litter(chosen().datasets)


# Routes


@functools.cache
def document() -> dict[str, Any]:
    """The routes that take a body, described as OpenAPI: each body is what ``app.server.bodies`` says it is."""
    from app.server import bodies
    from auditor.review import schema

    verdict, blind = bodies.SeenVerdict.model_json_schema(), schema.BlindVerdict.model_json_schema()
    models: dict[str, type[bodies.Body]] = {
        "queue": bodies.Queue,
        "queue-size": bodies.Queue,
        "card": bodies.Card,
        "undo": bodies.Undo,
        "progress": bodies.Undo,
        "lease": bodies.Lease,
        "blind-undo": bodies.BlindUndo,
        "mask-card": bodies.Card,
        "mask-verdict": bodies.MaskVerdict,
        "mask-undo": bodies.Undo,
    }
    found = {name: model.model_json_schema() for name, model in models.items()}
    for name, one in (("verdicts", verdict), ("blind", blind)):
        one["properties"]["token"] = {"type": "string"}
        found[name] = {
            "type": "object",
            "properties": {"verdicts": {"type": "array", "items": one, "maxItems": 4}},
            "required": ["verdicts"],
            "$defs": one.pop("$defs", {}),
        }
    parts = {name: one for body in found.values() for name, one in body.pop("$defs", {}).items()}
    text = json.dumps({"bodies": found, "parts": parts}).replace("#/$defs/", "#/components/schemas/")
    read = json.loads(text)
    answers = {"200": {"description": "done"}, "400": {"description": "a line"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "bench", "version": "1"},
        "components": {"schemas": read["parts"]},
        "paths": {
            f"/bench/{name}": {
                "post": {
                    "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
                    "responses": answers,
                }
            }
            for name, body in read["bodies"].items()
        },
    }


@functools.cache
def operations() -> dict[str, Any]:
    """By path: the operation as schemathesis sees it."""
    import schemathesis

    described = schemathesis.openapi.from_dict(document())
    return {path: described[path]["POST"] for path in document()["paths"]}


def routes(luck: random.Random, place: Path) -> None:
    """A body that schemathesis makes from the route's description, right or wrong: 200 or 400 and a line."""
    import schemathesis

    from tests.faults.test_bodies import post

    path = luck.choice(sorted(operations()))
    modes = schemathesis.GenerationMode
    mode = luck.choice([modes.POSITIVE, modes.NEGATIVE])
    body = example(operations()[path].as_strategy(generation_mode=mode), luck).body
    if isinstance(body, dict) and luck.random() < 0.7:
        body |= {key: 1 for key in ("audit", "dataset", "draw") if key in body}
        for verdict in body.get("verdicts", []) if isinstance(body.get("verdicts"), list) else []:
            if isinstance(verdict, dict):
                verdict |= {"dataset": 1, "draw": 1, "sample": luck.randrange(3, NUM), "reviewer": "ann"}
                verdict["decision"] = luck.choice(
                    ["keep", "exclude", "relabel", "unsure", verdict.get("decision")]
                )
    content = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8", "surrogatepass")
    answer = post(path.removeprefix("/bench/"), content)
    if answer.status_code not in (200, 400) or "\n" in answer.text:
        raise FaultError("traceback", f"{path}: {answer.status_code} {answer.text[:200]} {body!r:.200}")
    if luck.random() < 0.05:
        check_home()


# Python

PYTHON_TEXT = TEXT | st.just("a\0b")
FLOATS = st.floats() | st.sampled_from([0.0, 0.5, 1.0])


def calls(place: Path) -> dict[str, Callable[[Any, st.DrawFn], object]]:
    """Calls of the Python API with values of the right types and any content."""
    file = st.sampled_from(
        ["a.csv", "a.parquet", "a.html", "b", "x" * 300 + ".csv", "no/such/a.csv", "a.tsv"]
    )
    labels = st.lists(PYTHON_TEXT | WHOLE, max_size=6)
    number = WHOLE | st.integers(0, NUM)
    decision = st.sampled_from(["keep", "exclude", "relabel", "multiple", "unsure"]) | PYTHON_TEXT
    label = st.none() | st.sampled_from(["cat", "dog"]) | PYTHON_TEXT
    return {
        "suspects": lambda one, draw: one.suspects(
            draw(st.none() | WHOLE),
            max_fdr=draw(st.none() | FLOATS),
            audit_id=draw(st.none() | WHOLE),
            split=draw(st.none() | PYTHON_TEXT),
        ),
        "scores": lambda one, draw: one.scores(draw(st.none() | WHOLE)),
        "signals": lambda one, draw: one.signals(draw(st.none() | WHOLE)),
        "pred_probs": lambda one, draw: one.pred_probs(
            draw(st.none() | PYTHON_TEXT), draw(st.none() | WHOLE)
        ),
        "embeddings": lambda one, draw: one.embeddings(draw(st.none() | PYTHON_TEXT)),
        "review": lambda one, draw: one.review(
            draw(number),
            draw(decision),
            draw(label),
            labels=draw(st.none() | st.lists(st.sampled_from(["cat", "dog"]) | PYTHON_TEXT, max_size=4)),
            reviewer=draw(st.none() | PYTHON_TEXT),
        ),
        "draw": lambda one, draw: one.draw(draw(WHOLE | st.integers(1, 3)), seed=draw(WHOLE)),
        "verify": lambda one, draw: one.verify(
            draw(number),
            draw(number),
            draw(label),
            decision=draw(decision | st.just("label")),
            reviewer="ann",
        ),
        "undo": lambda one, draw: one.undo(reviewer=draw(st.none() | PYTHON_TEXT)),
        "export": lambda one, draw: one.export(
            place / draw(file),
            policy=draw(st.sampled_from(["reviewed", "auto"]) | PYTHON_TEXT),
            max_fdr=draw(st.none() | FLOATS),
            force=draw(st.booleans()),
        ),
        "report": lambda one, draw: one.report(
            place / draw(file), audit_id=draw(st.none() | WHOLE), force=True
        ),
        "add_pred_probs": lambda one, draw: one.add_pred_probs(
            draw(arrays()), name=draw(st.none() | PYTHON_TEXT)
        ),
        "own_features": lambda _, draw: _features(draw(arrays())),
        "open": lambda _, draw: _auditor().open(draw(PYTHON_TEXT)),
        "import_dataset": lambda _, draw: _auditor().import_dataset(
            draw(PYTHON_TEXT), name=draw(PYTHON_TEXT), workers=1
        ),
        "from_arrays": lambda _, draw: _auditor().from_arrays(
            draw(pixels()), draw(labels), name=draw(PYTHON_TEXT), workers=1
        ),
        "from_dataframe": lambda _, draw: _auditor().from_dataframe(
            pd.DataFrame({draw(HEADERS): draw(labels) for _ in range(draw(st.integers(0, 1)))}),
            name=draw(PYTHON_TEXT),
            workers=1,
        ),
        "audit": lambda one, draw: one.audit(
            ["nosuch"],
            preset=draw(st.sampled_from(["quick"]) | PYTHON_TEXT),
            device=draw(st.sampled_from(["cpu", "auto", "cuda:9"]) | PYTHON_TEXT),
            seed=draw(WHOLE),
            budget=draw(st.none() | PYTHON_TEXT | FLOATS),
        ),
        "repr": lambda one, _: (repr(one), one._repr_html_(), one.reviews(), one.samples(), one.audits()),
    }


def arrays() -> st.SearchStrategy[np.ndarray]:
    """Arrays of any type and shape, most of them nearly right."""
    shapes = st.sampled_from(
        [(NUM, 2), (NUM, 2), (NUM, 3), (NUM,), (0, 2), (), (NUM, 1, 2), (2, NUM), (NUM, 2, 2, 2)]
    )
    types = st.sampled_from(
        ["float64", "float32", "float16", "int64", "bool", "complex64", "U3", "M8[s]", "uint8"]
    )
    values = st.sampled_from([0.5, 0.0, 1.0, float("nan"), float("inf"), -1.0, 1e300, 1e-300])

    def made(shape: tuple[int, ...], kind: str, value: float) -> np.ndarray:
        with np.errstate(all="ignore"):
            try:
                return np.full(shape, value).astype(kind)
            except (ValueError, TypeError):
                return np.full(shape, value)

    return st.builds(made, shapes, types, values)


def pixels() -> st.SearchStrategy[Any]:
    """Images in memory, or what is none."""
    shapes = st.sampled_from(
        [(2, 8, 8), (2, 8, 8, 3), (2, 3, 8, 8), (0, 8, 8), (2,), (2, 0, 0), (2, 8, 8, 7), ()]
    )
    types = st.sampled_from(["uint8", "float32", "float64", "int64", "bool", "complex64", "uint16"])
    return st.builds(lambda shape, kind: np.ones(shape, kind), shapes, types) | st.just(
        [Image.new("L", (8, 8))] * 2
    )


def _auditor() -> Any:
    import auditor

    return auditor


def _features(array: np.ndarray) -> object:
    from auditor import api

    return api.own_features("first", array)


def python_api(luck: random.Random, place: Path) -> None:
    """A call of the Python API with generated values: done, or refused with a line."""
    from auditor import api

    os.chdir(place)
    known = calls(place)
    name = luck.choice(sorted(known))
    one = api.Dataset("first")
    happened: list[BaseException] = []

    @st.composite
    def happening(draw: st.DrawFn) -> None:
        try:
            with one_line():
                known[name](one, draw)
        except OSError as error:
            if error.filename is None:  # one that names its file is what Python's users expect
                happened.append(error)
        except Exception as error:
            happened.append(error)
            if isinstance(error, FaultError) or type(error).__module__.startswith("hypothesis"):
                raise

    with _quiet():
        example(happening(), luck)
    wrong = [error for error in happened if not isinstance(error, MemoryError)]
    if wrong:
        raise wrong[0]
    if luck.random() < 0.1:
        check_home()
