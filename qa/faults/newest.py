"""What is newest: numbers, masks, features and weights of a user, and nonsense in the environment.

Two more datasets, of masks and of numbers, each with its audit, are made once in the home of a batch of trials.
"""

from __future__ import annotations

import functools
import io
import json
import os
import pickle
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from qa.faults import generated
from qa.faults.trial import NUM, FaultError, check_home, command, no_litter, one_line, pictures
from tests.shapes import draw_shapes, write_pairs

SIDE = 16
SHAPES = draw_shapes(6, size=SIDE)


@functools.cache
def others(owner: int, folder: Path) -> None:
    """Datasets 2 (numbers) and 3 (masks), each with its audit of the same number, in the home of this process."""
    from auditor.catalog import db
    from tests import masked, numbered

    with suppress(OSError):
        folder.mkdir()
    numbered.make_home(folder / "numbered")
    masked.make_home(folder / "masked")
    db.close_all()


def _with_others() -> None:
    others(os.getpid(), Path(os.environ["AUDITOR_HOME"]).parent / "others")


# Routes and commands on masks and numbers


def routes(luck: random.Random, place: Path) -> None:
    """A body that fits its route, but names an audit or a dataset of another kind, or what is not there."""
    from tests.faults.test_bodies import post

    _with_others()
    path = luck.choice(sorted(generated.operations()))
    body = generated.example(generated.operations()[path].as_strategy(), luck).body
    for one in [body, *body.get("verdicts", [])] if isinstance(body, dict) else []:
        for key in {"audit", "dataset", "draw"} & set(one):
            one[key] = luck.choice([1, 2, 2, 3, 3, 4])
        if "sample" in one:
            one["sample"] = luck.choice([0, 1, 5, 11, 23, 39, 40, 10**6])
        if "decision" in one:
            one["decision"] = luck.choice(["keep", "exclude", "relabel", "multiple", "unsure", "label", "x"])
    answer = post(path.removeprefix("/bench/"), json.dumps(body).encode("utf-8", "surrogatepass"))
    if answer.status_code not in (200, 400, 404) or "\n" in answer.text:
        raise FaultError("traceback", f"{path}: {answer.status_code} {answer.text[:200]} {body!r:.200}")
    if luck.random() < 0.05:
        _export_all(place)


def options(luck: random.Random, place: Path) -> None:
    """A command line with generated options on a dataset of masks or numbers: exit code 0, 1 or 2, and a line."""
    from auditor.cli.commands import cli

    _with_others()
    os.chdir(place)
    known = [leaf for leaf in generated.leaves(cli) if any(one.name == "name" for one in leaf[1].params)]
    words, one = luck.choice([leaf for leaf in known if leaf[0][-1] not in ("remove", "import", "compare")])
    typed = generated.example(
        generated.arguments_of(words, one, generated.places(Path(os.environ["AUDITOR_HOME"]), place)), luck
    )
    name = luck.choice(["ages", "shapes"])
    command(*[name if text in ("first", "second") else text for text in typed])
    if luck.random() < 0.2:
        _export_all(place)


def _export_all(place: Path) -> None:
    """Whatever was decided, both can be exported."""
    for name, out in (("ages", "all.csv"), ("shapes", "all")):
        if command("export", name, "--out", str(Path(tempfile.mkdtemp(dir=place)) / out)) != 0:
            raise FaultError("lost", f"{name} cannot be exported")


# Numbers

CELLS = [
    *("3.5 kg", "nan", "NaN", "inf", "-Infinity", "2024-01-01", "1e308", "-1e308", "1e400", "1e-320", "3,5"),
    *(
        "1 000",
        "1'000",
        "0x10",
        "1_000",
        "١٢",
        "−3",
        "5%",
        "+5",
        "",
        " 5 ",
        "True",
        "None",
        "null",
        "\ufeff5",
    ),
    *(
        "9" * 4_000,
        "0." + "3" * 4_000,
        "=1+1",
        "\x1b[31m5",
        "1e5e5",
        "--5",
        ".5",
        "5.",
        "1/2",
        "½",
        "²",
        "1d3",
    ),
    *("0", "-0.0", "1", "2", "3", "4.25", "17", "1e15", "9007199254740993"),
]


def numbers(luck: random.Random, place: Path) -> None:
    """A table, or folders, of numbers, some of which are none: imported, drawn, decided and written, or refused."""
    from auditor.ground.settings import settings
    from auditor.importing import imports

    folder = pictures(place / "set", 8)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png"))
    odd = luck.sample(CELLS, luck.choice([0, 1, 1, 2]))
    cells = [luck.choice([*odd, "1.5", "2", "-3e2"]) for _ in files]
    source = folder / "t.csv"
    frame = pd.DataFrame({"path": files, "age": cells})
    kind = luck.choice(["csv", "parquet", "floats", "folders"])
    if kind == "csv":
        frame.to_csv(source, index=False)
    elif kind == "folders":
        source = place / "folders"
        for file, cell in zip(files, cells, strict=True):
            below = source / (cell.replace("/", "_")[:200] or "0")
            below.mkdir(parents=True, exist_ok=True)
            (below / Path(file).name).write_bytes((folder / file).read_bytes())
    else:
        if kind == "floats":
            values = [1.0, float("nan"), float("inf"), -1e308, 1e308, 5e-324]
            frame["age"] = [luck.choice(values) for _ in files]
        source = folder / "t.parquet"
        frame.to_parquet(source)
    more: dict[str, Any] = {"task": "regression"}
    if kind != "folders":
        more["label_column"] = luck.choice(["age", "age", "age", "path", "nothing", ""])
    with one_line():
        imports.preview_source(source, **more)
    with one_line():
        imports.import_dataset(source, name="x", workers=1, skip_bad=luck.random() < 0.3, **more)
        _used(luck, place)
    no_litter(settings().datasets)


def _used(luck: random.Random, place: Path) -> None:
    """What a user does with the dataset ``x`` of numbers; then it goes."""
    tolerance = luck.choice(["1", "0", "1e308", "nan", "-1", "5e-324", "inf"])
    draw, table = place / "d.csv", place / "r.csv"
    command("status", "x", "--json")
    command("verify", "x", "--draw", "3", "--tolerance", tolerance, "--out", str(draw))
    if draw.exists():
        text = draw.read_text()
        draw.write_text(text.replace(",\n", f",{luck.choice(['2', 'nan', '1e999', 'cat', '=1', '1 kg'])}\n"))
        command("verify", "x", "--apply", str(draw), "--reviewer", "ann")
    cells = [f"{i},{luck.choice(['relabel', 'keep', 'exclude'])},{luck.choice(CELLS)}" for i in range(8)]
    table.write_text("\n".join(["sample_id,review_decision,cleaned_label", *cells]) + "\n")
    command("review", "x", "--apply", str(table), "--reviewer", "ann")
    for out in ("x.csv", "x.parquet", "x.tsv"):
        if command("export", "x", "--out", str(place / out)) != 0 and out == "x.csv":
            raise FaultError("lost", "numbers that cannot be exported")
    command("suspects", "x", "--json")
    command("remove", "x", "--yes")


# Masks

RLES: list[Any] = [
    *({"counts": [0, 256], "size": [16, 16]}, {"counts": [-5, 261], "size": [16, 16]}),
    *({"counts": [10, 20], "size": [16, 16]}, {"counts": [10, 2000], "size": [16, 16]}),
    *({"counts": [2**40], "size": [16, 16]}, {"counts": [1.5, 254.5], "size": [16, 16]}),
    *({"counts": "garbage~~~", "size": [16, 16]}, {"counts": "é€", "size": [16, 16]}),
    *({"counts": "", "size": [16, 16]}, {"counts": [0, 64], "size": [8, 8]}, {"counts": [0, 4], "size": [2]}),
    *({"counts": [0, 256], "size": [-16, -16]}, {"counts": [0, 10**10], "size": [10**5, 10**5]}),
    *({"counts": "a" * 99_999, "size": [16, 16]}, {"counts": None, "size": [16, 16]}, {"size": [16, 16]}),
    *(
        [[1, 1, 2]],
        [[1, 1, float("nan"), 2, 3, 3]],
        [[1, 1, 1e308, 2, 3, 1e308]],
        [[1, 1, 2, 2]],
        ["a"],
        None,
    ),
    *(5, [[[[1]]]], [[-900, -900, -800, -900, -800, -800]], [], [[1, 1, 6, 1, 6, 6, 1, 6]], [[]], {}, "x"),
    *([[2**63, 1, 2, 2, 3, 3]], [[True, False, True, True, False, True]], [["1", "1", "6", "1", "6", "6"]]),
]


def _odd_mask(luck: random.Random, mask: np.ndarray) -> tuple[str, Image.Image]:
    """A mask as other tools may write it, with the end of its file's name."""
    of_shorts = mask.astype(np.uint16) * luck.choice([1, 300, 30_000])
    colours = luck.choice([0, 1, 2, 256])
    palette = Image.fromarray(mask, "P")
    palette.putpalette([0, 0, 0, 255, 0, 0][: 3 * colours] if colours < 3 else list(range(256)) * 3)
    choices: list[tuple[str, Image.Image]] = [
        *(("png", palette), ("png", Image.fromarray(mask > 0)), ("png", Image.fromarray(of_shorts))),
        *(("png", Image.fromarray(mask).convert("LA")), ("png", Image.fromarray(mask * 80).convert("RGBA"))),
        *(("png", Image.fromarray(mask[:7])), ("png", Image.fromarray(mask).resize((99, 3)))),
        ("tiff", Image.fromarray(mask.astype(np.float32) + np.float32(luck.choice([0, 0.5, np.nan, 1e30])))),
        *(("tiff", Image.fromarray(-mask.astype(np.int32))), ("jpg", Image.fromarray(mask))),
        *(
            ("gif", palette),
            ("bmp", Image.fromarray(mask)),
            ("png", Image.fromarray(np.full_like(mask, 255))),
        ),
        ("png", Image.fromarray(np.random.default_rng(1).integers(0, 255, (16, 16, 3), np.uint8))),
    ]
    return luck.choice(choices)


def masks(luck: random.Random, place: Path) -> None:
    """Masks and annotations of COCO that are nearly right: imported and written again, or refused with a line."""
    from auditor.ground.settings import settings
    from auditor.importing import imports

    source = write_pairs(place / "set", SHAPES)
    more: dict[str, Any] = {"task": "segmentation"}
    if luck.random() < 0.5:
        source = _coco(luck, source)
    else:
        for number in luck.sample(range(6), luck.choice([1, 1, 6])):
            ending, image = _odd_mask(luck, SHAPES.masks[number])
            old = source / "masks" / f"{number:03d}.png"
            buffer = io.BytesIO()
            image.save(buffer, {"jpg": "JPEG"}.get(ending, ending.upper()))
            old.unlink()
            old.with_suffix(f".{ending}").write_bytes(buffer.getvalue())
        names = ["ground\ndisc\nbar\n", "a\na\nb\n", "a\n", "256 0 0 x\n0 0 0 y\n", "0 0 0 x\n0 0 0 y\n", ""]
        if luck.random() < 0.5:
            (place / "names.txt").write_text(luck.choice(names))
            more["class_names"] = place / "names.txt"
        more["ignore_index"] = luck.choice([None, 0, 1, 255, 65_535])
    with one_line():
        imports.preview_source(source, **more)
    with one_line():
        imports.import_dataset(source, name="x", workers=1, skip_bad=luck.random() < 0.4, **more)
        command("status", "x", "--json")
        command("export", "x", "--out", str(place / "out"))
        command("remove", "x", "--yes")
    no_litter(settings().datasets)


def _coco(luck: random.Random, source: Path) -> Path:
    images: list[dict[str, Any]] = [
        {"id": n, "file_name": f"images/{n:03d}.png", "width": SIDE, "height": SIDE} for n in range(6)
    ]
    found: list[dict[str, Any]] = [
        {"id": n, "image_id": n, "category_id": 1 + n % 2, "segmentation": [[1, 1, 6, 1, 6, 6, 1, 6]]}
        for n in range(6)
    ]
    kinds: list[dict[str, Any]] = [{"id": 1, "name": "disc"}, {"id": 2, "name": "bar"}]
    found[0]["segmentation"] = luck.choice(RLES)
    found[0]["iscrowd"] = luck.choice([0, 0, 1, None, "1", 2])
    part = luck.choice([images, found, kinds, None])
    if part is not None:
        one = luck.choice(part)
        one[luck.choice(sorted(one))] = luck.choice(
            [None, -1, 0, 1, 99, "0", "../../etc/passwd", 1.5, [], "disc"]
        )
    if part is not None and luck.random() < 0.2:
        part.append(dict(part[0]))
    target = source / "coco.json"
    target.write_text(json.dumps({"images": images, "annotations": found, "categories": kinds}))
    return target


# Features, probabilities and weights of a user


def _array(luck: random.Random) -> np.ndarray:
    """An array that is nearly right for the small home's dataset."""
    right = np.random.default_rng(luck.randrange(99)).random((NUM, 2))
    with np.errstate(all="ignore"):
        odd: list[Any] = [
            *(
                right,
                right[:20],
                right[:, 0],
                right[:, :0],
                right.reshape(NUM, 2, 1, 1),
                right.astype(complex),
            ),
            *(
                right.astype("U9"),
                np.array([{}] * NUM, dtype=object),
                np.zeros((NUM, 2), "M8[s]"),
                right > 0.5,
            ),
            *(
                right * 1e300,
                (right * 1e9).astype(np.float16),
                np.zeros(NUM, [("a", "f4")]),
                right[::-1].T.copy(),
            ),
            *(
                np.where(right > 0.9, np.nan, right),
                np.where(right > 0.9, np.inf, right),
                right[:, None],
                -right,
            ),
            *(np.asfortranarray(right), right.astype(">f8"), np.array(5), right[..., [0] * 300]),
        ]
    return np.asarray(luck.choice(odd))


def _written(luck: random.Random, place: Path) -> Path:
    """A file of features or probabilities."""
    kind = luck.choice(["npy", "npy", "npz", "pickle", "torch", "csv", "parquet", "parquet", "tsv"])
    array = _array(luck)
    target = place / f"f.{luck.choice(['npy', 'pt', 'pkl']) if kind in ('pickle', 'torch') else kind}"
    if kind in ("npy", "npz"):
        (np.save if kind == "npy" else np.savez)(target, array)
    elif kind == "pickle":
        target.write_bytes(pickle.dumps(_Touches(place / "touched")))
    elif kind == "torch":
        import torch

        torch.save({"a": torch.zeros(3)}, target)
    else:
        rows = list(range(luck.choice([NUM, NUM, NUM - 1, NUM + 1])))
        frame = pd.DataFrame({luck.choice(["sample_id", "sample_id", "filepath", "id", "Sample_ID "]): rows})
        lists: list[Any] = [
            [1.0, 2.0],
            [1.0],
            None,
            [],
            [[1.0]],
            "[1,2]",
            "x",
            [float("nan"), 1.0],
            ["a", "b"],
        ]
        cells: list[Any] = [0.25, 0.75, None, float("nan"), float("inf"), -1.0, "x", "0,5", 2**70, True]
        usual = luck.choice([*lists[:1] * 2, 0.5])
        for column in luck.choice([["e"], ["cat", "dog"], ["f0", "f1"], ["cat", "cat "], ["dog"], []]):
            values = [usual] * len(rows)
            for _ in range(luck.choice([0, 1])):
                values[luck.randrange(len(rows))] = luck.choice(lists if usual == lists[0] else cells)
            frame[column] = pd.Series(values, dtype=object)
        if kind == "parquet":
            with suppress(Exception):  # of columns of two kinds; then as text
                frame.to_parquet(target)
            if not target.exists():
                frame.astype(str).to_parquet(target)
        else:
            frame.to_csv(target, index=False, sep="\t" if kind == "tsv" else ",")
    if luck.random() < 0.2:
        data = target.read_bytes()
        target.write_bytes(data[: luck.randrange(len(data))])
    return target


class _Touches:
    """What a pickle does when it is opened by somebody who trusts it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def own_files(luck: random.Random, place: Path) -> None:
    """Features, probabilities or weights that are nearly right: taken, or refused with a line; none runs."""
    from auditor.backbones import features, own_features
    from auditor.results import own_models

    way = luck.choice(["features", "features", "probabilities", "probabilities", "weights"])
    with one_line():
        if way == "features":
            column = luck.choice([None, None, "e", "f", "nothing", ""])
            own_features.add("first", _written(luck, place), column=column)
        elif way == "probabilities":
            own_models.add("first", _written(luck, place))
        else:
            name = luck.choice(
                ["timm:resnet18", "timm:mobilenetv3_large_100", "timm:nosuch", "nosuch", "", "timm:"]
            )
            features.choose(name, _weights(luck, place), side=luck.choice([None, 8, 64]))
    if (place / "touched").exists():
        raise FaultError("wrong", f"a pickle ran among {way}")
    if luck.random() < 0.1:
        check_home()


def _weights(luck: random.Random, place: Path) -> Path:
    import torch

    target = place / f"w.{luck.choice(['pt', 'pth', 'safetensors', 'bin'])}"
    buffer = io.BytesIO()
    torch.save(
        luck.choice([{"a": torch.zeros(3)}, [1], _Touches(place / "touched"), {"state_dict": 5}]), buffer
    )
    header = json.dumps({"a": {"dtype": "F32", "shape": [10**9], "data_offsets": [0, 4]}}).encode()
    data = luck.choice(
        [
            *(buffer.getvalue(), buffer.getvalue()[: luck.randrange(900)], b"", b"x" * 100),
            *((2**60).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"{}"),
            *(
                len(header).to_bytes(8, "little") + header + bytes(4),
                pickle.dumps(_Touches(place / "touched")),
            ),
        ]
    )
    if luck.random() < 0.9:
        target.write_bytes(data)
    return target


# The environment

NONSENSE: dict[str, list[str]] = {
    "AUDITOR_HOME": [
        "/dev/null",
        "/proc/1",
        "~nouser/x",
        "x" * 300,
        "/nonexistent\x1b[31m",
        "a\nb",
        "{}/new",
        "{}/é",
    ],
    "AUDITOR_DATABASE_URL": [
        *(
            "x",
            "postgresql+psycopg://a:secret@127.0.0.1:1/x",
            "mysql://x",
            "sqlite:////proc/x.db",
            "://",
            "sqlite://",
        ),
        *(
            "postgresql://h:port/x",
            "sqlite:///" + "x" * 400,
            "oracle://a:secret@h",
            "postgresql+psycopg://[::1",
            " ",
        ),
    ],
    "AUDITOR_CHECKPOINT_INTERVAL_S": ["x", "nan", "-1", "1e999"],
    "AUDITOR_EXECUTOR": ["nonsense", "processes:0", "processes:²", "ray://", "\x1b[31m"],
    "AUDITOR_IMPORT_ROOTS": ["::", "/nonexistent", "~nouser"],
    "AUDITOR_MAX_UPLOAD_MB": ["x", "-1", "9" * 30],
    "AUDITOR_ALLOWED_HOSTS": ["*", ",,", "http://x"],
    "FIFTYONE_CONFIG_PATH": ["/dev/null", "{}"],
    "FIFTYONE_DATABASE_DIR": ["/proc/x", "x" * 300],
    "TMPDIR": ["/nonexistent", "/proc"],
    "HOME": ["", "/nonexistent", "/dev/null", "relative"],
    "COLUMNS": ["x", "0", "1", "-5", "9" * 12],
    "LINES": ["x"],
    "TERM": ["", "nosuch"],
    "TZ": ["x/y", ":/etc/passwd", "\x1b"],
    "OMP_NUM_THREADS": ["x", "0", "-1", "9" * 12],
    "USER": ["", "\x1b[31m", "=1"],
    "LOGNAME": ["", "a" * 999],
    "HF_ENDPOINT": ["x", "file:///etc"],
    "XDG_CACHE_HOME": ["/dev/null", "relative"],
}


def environment(luck: random.Random, place: Path) -> None:
    """A variable that holds nonsense: commands work without it, or refuse with a line that hides passwords."""
    from auditor.catalog import db
    from qa.faults.trial import SAID

    name = luck.choice(sorted(NONSENSE))
    value = luck.choice(NONSENSE[name]).replace("{}", str(place))
    source = str(Path(os.environ["AUDITOR_HOME"]).parent / "source")
    os.chdir(place)
    with _set(name, value):
        db.close_all()
        for arguments in luck.sample(
            [
                *(["status"], ["status", "first", "--json"], ["suspects", "first"], ["doctor"]),
                *(
                    ["verify", "first", "--draw", "3", "--out", "v.csv"],
                    ["export", "first", "--out", "e.csv"],
                ),
                *(["import", source, "--name", "x", "--image-size", "8", "--workers", "1"],),
                *(
                    ["audit", "first", "--engines", "nosuch"],
                    ["backup", "b.tar"],
                    ["weights", "list", "--json"],
                ),
                *(["report", "first", "--out", "r.html"], ["remove", "x", "--yes"], ["status", "--json"]),
            ],
            3,
        ):
            command(*arguments)
            if "secret" in SAID[-1]:
                raise FaultError("wrong", f"{arguments} shows a password")
        db.close_all()
    if luck.random() < 0.3:
        check_home()


@contextmanager
def _set(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before
