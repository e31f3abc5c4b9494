"""What others do to files, links, servers, homes and clocks: changed bytes of every format, rows that moved at the
source, links put in place of pictures, web servers that send elsewhere, and clocks that jump."""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import random
import shutil
import signal
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from auditor.ground.apart import DiedError, Readers
from auditor.ground.errors import AuditorError
from auditor.pictures.decoding import ImageError, decode
from auditor.pictures.sources import SourceOptions, SourceRow, UnreadableError, open_source, read_bytes
from qa.faults.trial import AT_END, NUM, FaultError, check_home, command, no_litter, one_line, pictures
from tests.auditor.pictures.sources import test_annotations as annotated
from tests.auditor.pictures.sources import test_containers as packed
from tests.shapes import draw_shapes, write_pairs

# Changed bytes

MOST_S = 20
"""Of computing time to read a small file that was changed; one that takes longer hangs."""
MOST_BYTES = 2**31
EDGE = 1_024
"""So many bytes at the beginning and at the end of a file are changed, and a Parquet's whole footer."""
IMAGES = ("png", "jpeg", "gif", "webp", "bmp", "tiff", "ppm", "ico", "tga")


@functools.cache
def formats(owner: int, folder: Path) -> dict[str, tuple[Path, list[Path], SourceOptions | str]]:
    """By name: what is opened, the files of it whose bytes are changed, and how it is opened, once a process."""
    assert owner == os.getpid()
    found: dict[str, tuple[Path, list[Path], SourceOptions | str]] = {}
    usual, named = SourceOptions(), folder / "names.txt"
    folder.mkdir(parents=True)
    named.write_text("cat\ndog\n")
    for write in packed.WRITERS:
        place = folder / write.__name__
        place.mkdir()
        source = write(place)
        options = usual if packed.names_for(write, named) is None else SourceOptions(class_names=str(named))
        files = [source] if source.is_file() else sorted(file for file in source.rglob("*") if file.is_file())
        found[write.__name__] = (source, files, options)
    for annotate in [*annotated.WRITERS, annotated.write_boxes]:
        place = folder / annotate.__name__
        names = [str(path.relative_to(place)) for path in sorted(pictures(place, 6).rglob("*.png"))]
        source = annotate(place, names)
        listed = place / "names.txt"
        more = SourceOptions(class_names=str(listed)) if listed.exists() else usual
        found[annotate.__name__] = (
            source,
            [source],
            SourceOptions(boxes=True) if "boxes" in source.name else more,
        )
    shapes = write_pairs(folder / "masks", draw_shapes(6, size=8))
    found["masks"] = (shapes, sorted((shapes / "masks").iterdir()), SourceOptions(task="segmentation"))
    for kind in IMAGES:
        place = pictures(folder / kind, 4)
        file = place / "cat" / f"0.{kind}"
        Image.effect_noise((40, 30), 60).convert("RGB").save(file, kind)
        found[kind] = (place, [file], usual)
    for mode in ("P", "L", "1", "RGBA", "I;16"):
        place = pictures(folder / mode, 4)
        Image.new("L", (40, 30), 9).convert(mode).save(place / "cat" / "0.png")
        found[f"png {mode}"] = (place, [place / "cat" / "0.png"], usual)
    place = pictures(folder / "tables", 6)
    rows = [(str(path.relative_to(place)), path.parent.name) for path in sorted(place.rglob("*.png"))]
    table = pd.DataFrame(rows, columns=["filepath", "label"])
    table.to_csv(place / "t.csv", index=False)
    table.to_csv(place / "t.tsv", index=False, sep="\t")
    table.to_parquet(place / "t.parquet")
    for kind in ("csv", "tsv", "parquet"):
        found[f"table {kind}"] = (place / f"t.{kind}", [place / f"t.{kind}"], usual)
    with zipfile.ZipFile(folder / "set.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(place.rglob("*.png")):
            archive.write(path, str(path.relative_to(place)))
    found["zip"] = (folder / "set.zip", [folder / "set.zip"], usual)
    np.save(folder / "f.npy", np.random.default_rng(0).random((NUM, 8), dtype=np.float32))
    found["npy"] = (folder / "f.npy", [folder / "f.npy"], "npy")
    found["safetensors"] = (_weights(folder / "w.safetensors"), [folder / "w.safetensors"], "safetensors")
    return found


def _weights(file: Path) -> Path:
    import timm
    from safetensors.torch import save_file

    save_file(timm.create_model("test_vit").state_dict(), file)
    return file


_readers = Readers(1, most_s=MOST_S, most_bytes=MOST_BYTES)


def mutations(luck: random.Random, place: Path) -> None:
    """A byte or a few of a foreign file are others: it is read, or refused with a line; nothing else ends."""
    known = formats(os.getpid(), Path(os.environ["AUDITOR_HOME"]).parent / "formats")
    name = luck.choice(sorted(known))
    source, files, how = known[name]
    victim = luck.choice(files)
    whole = victim.read_bytes()
    data = bytearray(whole)
    starts, ends = range(min(EDGE, len(data))), range(max(0, len(data) - EDGE), len(data))
    if whole[-4:] == b"PAR1":
        ends = range(max(0, len(data) - 8 - int.from_bytes(whole[-8:-4], "little")), len(data))
    for _ in range(luck.choice([1, 1, 1, 2, 4])):
        at = luck.choice(luck.choice([starts, ends]))
        data[at] = luck.choice([data[at] ^ 1 << luck.randrange(8), luck.randrange(256), 0, 255])
    try:
        victim.write_bytes(data)
        if isinstance(how, SourceOptions) and luck.random() < 0.03:
            _import_changed(source, how)
        with one_line(), suppress(DiedError, ImageError, UnreadableError):
            try:
                _readers.call(_look, source, how)
            except DiedError as died:
                if "computing time" in str(died):
                    raise FaultError("hang", f"{name}: {died}") from died
    except FaultError as error:
        raise FaultError(error.kind, f"{name}, {victim.name}: {error}") from error
    except Exception as error:
        raise FaultError("traceback", f"{name}, {victim.name}: {type(error).__name__}: {error}") from error
    finally:
        victim.write_bytes(whole)


def _look(source: Path, how: SourceOptions | str) -> None:
    """What an import does with a source, in a process apart."""
    if how == "npy":
        from auditor.ground.files import read_npy

        with suppress(ValueError):
            np.isfinite(read_npy(source)).all()
        return
    if how == "safetensors":
        from auditor.bridges import backbone_bridge

        backbone_bridge.size("timm:test_vit", source, side=None)
        return
    assert isinstance(how, SourceOptions)
    opened = open_source(source, how)
    rows = [row for row in opened.rows() if isinstance(row, SourceRow)]
    for payload in opened.payloads(row.location for row in rows):
        with suppress(UnreadableError, ImageError):
            decode(
                payload if isinstance(payload, bytes) else read_bytes(opened.info.root, payload),
                size=8,
                channels=3,
            )
    for row in rows[:2]:
        with suppress(UnreadableError):
            read_bytes(opened.info.root, row.location)


def _import_changed(source: Path, how: SourceOptions) -> None:
    """The whole way, in a trial process of its own that forks."""
    from auditor.ground.settings import settings

    words = ["import", str(source), "--name", "x", "--workers", "1", "--skip-bad"]
    words += ["--class-names", str(how.class_names)] if how.class_names else []
    words += ["--boxes"] if how.boxes else []
    words += [f"--task={how.task}"] if how.task else []
    if command(*words) == 0:
        command("remove", "x", "--yes")
    no_litter(settings().datasets)


# Rows that moved


def _picture(shade: int) -> Image.Image:
    return Image.new("RGB", (8, 8), (shade, 255 - shade, shade // 2))


def _write(kind: str, folder: Path, rows: list[tuple[str, bytes, str]]) -> Path:
    """A source of (name, encoded picture, label) in this order."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if kind == "parquet":
        cells = [{"bytes": data, "path": name} for name, data, _ in rows]
        pd.DataFrame({"image": cells, "label": [label for *_, label in rows]}).to_parquet(
            folder / "t.parquet"
        )
        return folder / "t.parquet"
    if kind == "zip":
        with zipfile.ZipFile(folder / "set.zip", "w") as archive:
            for name, data, label in rows:
                archive.writestr(f"{label}/{name}", data)
        return folder / "set.zip"
    for name, data, label in rows:
        place = folder / label if kind == "folder" else folder
        place.mkdir(exist_ok=True)
        (place / name).write_bytes(data)
    if kind == "folder":
        return folder
    table = [{"file_name": name, "label": label} for name, _, label in rows]
    if kind == "csv":
        pd.DataFrame(table).to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    return folder / "metadata.jsonl"


def moved(luck: random.Random, place: Path) -> None:
    """Rows change places, come or go at the source after the import: no label is written on another picture."""
    from auditor.catalog import datasets, db
    from auditor.importing.imports import import_dataset
    from auditor.outputs import export
    from auditor.pictures import cache
    from auditor.review import decisions

    kind = luck.choice(["parquet", "parquet", "csv", "jsonl", "zip", "folder"])
    rows = [(f"{n}.png", _png(20 * n), luck.choice(["cat", "dog"])) for n in range(9)]
    rows += [("a.png", _png(195), "cat"), ("b.png", _png(215), "dog")]
    source = _write(kind, place / "set", rows)
    name = f"m{luck.randrange(10**9)}"
    number = import_dataset(source, name=name, image_size=8, workers=1).dataset_id
    with db.session() as session:
        dataset = datasets.get(session, name)
        samples = list(datasets.iterate_samples(session, number))
    wanted = {sample.sample_id: cache.original_bytes(dataset, sample) for sample in samples}
    right = {data: label for _, data, label in rows}
    decided: dict[bytes, str | None] = {}
    for sample in luck.sample(samples, 3):
        picture = wanted[sample.sample_id]
        label = 1 - dataset.class_names.index(right[picture])
        decided[picture] = None if len(decided) == 2 else dataset.class_names[label]
        decision = ("exclude", None) if len(decided) == 3 else ("relabel", label)
        decisions.decide(number, sample.sample_id, decision[0], label=decision[1], reviewer="ann")
    _write(kind, place / "set", _rearranged(luck, rows))
    for sample in samples:
        with suppress(AuditorError):
            if cache.original_bytes(dataset, sample) != wanted[sample.sample_id]:
                raise FaultError("wrong", f"{kind}: {sample.filepath} shows another picture")
    out = place / f"out{source.suffix}"
    with one_line():
        told = export.export_table(name, out, as_source=True).sentence
        root = None if kind == "parquet" else str(place / "set")
        opened = open_source(out, SourceOptions(root=root))
        found = [row for row in opened.rows() if isinstance(row, SourceRow)]
        payloads = opened.payloads(row.location for row in found)
        for row, payload in zip(found, payloads, strict=True):
            picture = payload if isinstance(payload, bytes) else read_bytes(opened.info.root, payload)
            is_kept = row.label == right.get(picture, row.label)
            is_applied = row.label == decided.get(picture, right.get(picture, row.label))
            # Where a name has another label than at the import, the decision on it waits, and this is said.
            if not is_applied and not (is_kept and "changed" in told):
                raise FaultError("wrong", f"{kind}: {row.filepath} is {row.label}, which nobody said; {told}")
    command("remove", name, "--yes")


def _rearranged(luck: random.Random, rows: list[tuple[str, bytes, str]]) -> list[tuple[str, bytes, str]]:
    """The same pictures with their labels in another order or under other names; some new, some gone."""
    found = list(rows)
    way = luck.choice(["order", "names", "first", "new", "gone"])
    if way == "order":
        luck.shuffle(found)
    elif way == "names":
        names = [name for name, *_ in found]
        luck.shuffle(names)
        found = [(name, data, label) for name, (_, data, label) in zip(names, found, strict=True)]
    elif way == "first":
        found = found[1:] + found[:1]
    elif way == "new":
        found.insert(luck.randrange(len(found)), ("new.png", _png(251), "cat"))
    else:
        del found[luck.randrange(len(found))]
    return found


@functools.cache
def _png(shade: int) -> bytes:
    import io

    buffer = io.BytesIO()
    _picture(shade).save(buffer, "PNG")
    return buffer.getvalue()


# Links

TRIES = 100
"""Reads of a trial while an attacker puts a link there and takes it away again."""


@contextmanager
def _swapping(victim: Path, secret: Path) -> Iterator[None]:
    """Another process that puts a link to the secret in the place of the file and back, as fast as it can."""
    kept = victim.with_name(f"{victim.name}.kept")
    link = victim.with_name(f"{victim.name}.link")
    shutil.copy(victim, kept)
    attacker = os.fork()
    if attacker == 0:
        while True:
            with suppress(OSError):
                os.symlink(secret, link)
                os.replace(link, victim)
                os.link(kept, link)
                os.replace(link, victim)
    try:
        yield
    finally:
        os.kill(attacker, signal.SIGKILL)
        os.waitpid(attacker, 0)
        with suppress(OSError):
            link.unlink()
        os.replace(kept, victim)


def links(luck: random.Random, place: Path) -> None:
    """A file of a source is a link to a private one, every other moment: of ``TRIES`` reads none shows it."""
    kind = luck.choice(["picture", "parquet", "arrow", "tar", "masks"])
    root, secret = place / "root", place / "private"
    root.mkdir()
    secret.mkdir()
    wanted: list[bytes] = []
    if kind == "masks":
        _swapped_masks(root, secret)
        return
    if kind == "picture":
        victim, private = root / "a.png", secret / "a.png"
        victim.write_bytes(_png(10))
        private.write_bytes(_png(200))
        locations, wanted = ["a.png"], [_png(200)]
    else:
        write = {
            "parquet": packed.write_hub,
            "arrow": packed.write_saved,
            "tar": packed.write_shards,
        }[kind]
        source, other = write(root), write(secret)
        opened = open_source(source, SourceOptions())
        rows = [row for row in opened.rows() if isinstance(row, SourceRow)]
        locations, root = [row.location for row in rows][:2], Path(opened.info.root)
        inner = locations[0].partition("#")[0].partition(".tar/")[0]
        inner += ".tar" if kind == "tar" else ""
        victim = root / inner
        private = other.parent / victim.relative_to(source.parent)
        _made_private(kind, private)
        opened = open_source(other, SourceOptions())
        wanted = [read_bytes(opened.info.root, one) for one in locations]
    shown = 0
    with _swapping(victim, private):
        for number in range(TRIES):
            with suppress(UnreadableError):
                if read_bytes(str(root), luck.choice(locations)) in wanted:
                    raise FaultError("wrong", f"{kind}: read {number} shows a private picture")
                shown += 1
    if not shown and kind == "picture":
        raise FaultError("lost", f"{kind}: none of {TRIES} reads found the picture")


def _made_private(kind: str, file: Path) -> None:
    """Other pictures in place of those in a file, of the same length, so that nothing else differs."""
    data = file.read_bytes()
    ours = {packed.picture(number) for number in range(6)}
    for picture in ours:
        at = data.find(picture)
        while at >= 0:
            data = data[:at] + picture[:-1] + b"!" + data[at + len(picture) :]
            at = data.find(picture)
    file.write_bytes(data)


def _swapped_masks(root: Path, secret: Path) -> None:
    from auditor.pictures.sources import read_mask
    from auditor.pictures.sources.segmentation import MaskSource, open_masks
    from qa.faults.layouts import coco

    source, other = coco(root) / "coco.json", coco(secret) / "coco.json"
    other_value = json.loads(other.read_text())
    for one in other_value["annotations"]:
        one["segmentation"] = [[0, 0, 7, 0, 7, 7, 0, 7]]
    other.write_text(json.dumps(other_value))
    opened = open_masks(source, SourceOptions(task="segmentation"))
    private = open_masks(other, SourceOptions(task="segmentation"))
    assert isinstance(opened, MaskSource)
    rows = [row for row in opened.rows() if isinstance(row, SourceRow)]
    location, code = str(rows[0].mask), opened.info.masks
    assert code is not None
    hidden = read_mask(private.info.root, location, code)
    with _swapping(source, other):
        for number in range(TRIES):
            with suppress(UnreadableError):
                if np.array_equal(read_mask(opened.info.root, location, code), hidden):
                    raise FaultError("wrong", f"masks: read {number} shows a private mask")


# Web servers

SECRET = "a-secret-of-an-inner-service"


class _Server(http.server.BaseHTTPRequestHandler):
    """Sends elsewhere, endlessly, slowly, or far more than it seems; what it does is in the path."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        way, _, name = self.path.strip("/").partition("/")
        if way == "inner":
            self._send(f"path,label\n{SECRET}.png,{SECRET}\n".encode())
        elif way.startswith("to"):
            self.send_response(int(way[2:5]))
            elsewhere = _place(self.server.server_address[1]).read_text()  # type: ignore[index, arg-type]
            self.send_header("Location", elsewhere.replace("NAME", name or "t.csv"))
            self.end_headers()
        elif way == "bomb":
            self._send(gzip.compress(bytes(8 << 20)), {"Content-Encoding": "gzip"})
        elif way in ("endless", "slow"):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(bytes(1 if way == "slow" else 1 << 16))
                    time.sleep(0.02 if way == "slow" else 0)
        elif way == "short":
            self._send(b"path,label\n", {"Content-Length": "99999"})
        elif way == "long":
            self._send(b"path,label\n", {"Content-Length": "9" * 18})
        elif way == "code":
            self.send_response(int(name[:3]) if name[:3].isdigit() else 418)
            self.end_headers()
        else:
            self.wfile.write(b"\x00nonsense\r\n\r\n" * 9)

    def _send(self, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(200)
        for name, value in ({"Content-Length": str(len(data))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with suppress(OSError):
                self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@functools.cache
def _served(owner: int) -> tuple[int, int]:
    """The ports of a hostile server and of an inner one, in a process of their own."""
    assert owner == os.getpid()
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) for _ in range(2)]
    ports = [server.server_address[1] for server in servers]
    child = os.fork()
    if child == 0:
        for server in servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        while os.getppid() == owner:
            time.sleep(1)
        os._exit(0)
    for server in servers:
        server.socket.close()
    AT_END.append(lambda: os.kill(child, signal.SIGKILL))
    return ports[0], ports[1]


def web(luck: random.Random, place: Path) -> None:
    """An address whose server is hostile: refused with a line in a short time, nothing of another server in it."""
    from auditor.ground.settings import settings
    from auditor.pictures.sources import web as client
    from qa.faults.trial import SAID

    client.MAX_FILE_BYTES, client.MOST_STREAMED = 2 << 20, 4 << 20
    client.FIRST_S, client.SILENT_S, client.WHOLE_S = 0.5, 2.0, 5.0
    hostile, inner = _served(os.getpid())
    elsewhere = luck.choice(
        [f"http://127.0.0.1:{inner}", f"http://localhost:{inner}", f"http://[::1]:{inner}"]
    )
    elsewhere = luck.choice([elsewhere, f"http://127.1:{inner}", f"http://2130706433:{inner}", "file:///etc"])
    way = luck.choice(
        ["to301", "to302", "to303", "to307", "to308", "bomb", "endless", "slow", "short", "long"]
    )
    way = luck.choice([way, way, "nonsense", f"code/{luck.choice([204, 206, 401, 403, 404, 416, 500, 503])}"])
    name = luck.choice(["t.csv", "t.parquet", "s.tar", "s.zip", "metadata.jsonl", "a/", "t.tsv", "x.json"])
    _place(hostile).write_text(f"{elsewhere}/inner/NAME")
    address = f"http://127.0.0.1:{hostile}/{way}/{name}"
    begun = time.monotonic()
    if luck.random() < 0.3:  # a table of ours whose pictures lie there
        (place / "t.csv").write_text("path,label\na.png,cat\nb.png,dog\nc.png,cat\n")
        words = [str(place / "t.csv"), "--root", f"http://127.0.0.1:{hostile}/{way}"]
    else:
        words = [address]
    command("import", *words, "--name", "x", "--workers", "1")
    if SECRET in SAID[-1] or any(
        SECRET in file.read_text("latin1") for file in settings().home.glob("catalog.db*")
    ):
        raise FaultError("wrong", f"{address}: what an inner service says is told")
    if time.monotonic() - begun > 100:
        raise FaultError("hang", f"{address}: {time.monotonic() - begun:.0f} s")
    no_litter(settings().datasets)
    if luck.random() < 0.1:
        check_home()


def _place(port: int) -> Path:
    """Where a server, which is another process, reads where it sends to."""
    return Path(os.environ["AUDITOR_HOME"]).parent / f"sends-to-{port}"


# Homes and clocks

HOMES = [
    "a%20b",
    "a b",
    "a%",
    "%41",
    "?",
    "x?mode=memory",
    "#",
    "a#b",
    "&x=1",
    "é",
    "名",
    "a\\b",
    "a'b",
    'a"b',
    "+",
    "~",
]
HOMES += [
    "x" * 200,
    ";",
    "a:b",
    "@",
    "[1]",
    "{}",
    "%s",
    "$HOME",
    "a;b?c%d",
    "-",
    "a=b",
    " ",
    "x" * 100 + "/" + "y" * 100,
]


def homes(luck: random.Random, place: Path) -> None:
    """Two homes of odd names beside each other: each keeps its own, nothing lies outside them."""
    from auditor.catalog import db

    here = place / "homes"
    here.mkdir()
    first, second = luck.sample(HOMES, 2)
    if luck.random() < 0.4:
        first, second = luck.choice(
            [("a%20b", "a b"), ("x", "x?mode=memory"), ("x", "x#y"), ("A", "%41"), ("x", "x?")]
        )
    before = os.environ["AUDITOR_HOME"]
    try:
        for number, name in enumerate((first, second)):
            db.close_all()
            shutil.copytree(before, here / name)
            os.environ["AUDITOR_HOME"] = str(here / name)
            source = pictures(place / f"s{number}", 4, shade=90 + number)
            words = ["import", str(source), "--name", f"of{number}", "--image-size", "8", "--workers", "1"]
            if command(*words) != 0:
                raise FaultError("lost", f"{name!r}: nothing can be imported")
        for number, name in enumerate((first, second)):
            db.close_all()
            os.environ["AUDITOR_HOME"] = str(here / name)
            check_home()
            if command("status", f"of{number}") != 0 or command("status", f"of{1 - number}") == 0:
                raise FaultError("wrong", f"{first!r} and {second!r} share a catalog")
        tops = {(Path(first).parts or (first,))[0], (Path(second).parts or (second,))[0]}
        if left := {entry.name for entry in here.iterdir()} - tops:
            raise FaultError("wrong", f"{first!r}, {second!r}: {left} beside them")
    finally:
        db.close_all()
        os.environ["AUDITOR_HOME"] = before


def _now(ahead: timedelta) -> datetime:
    return datetime.now(tz=UTC) + ahead


def clocks(luck: random.Random, place: Path) -> None:
    """The clock jumps between decisions, by hand and from files: what was said last stands."""
    from auditor.catalog import db, reviews
    from auditor.review import decisions

    ahead = timedelta()
    real = decisions.now
    last: dict[int, str] = {}
    try:
        for step in range(luck.randrange(4, 12)):
            if luck.random() < 0.6:
                ahead = timedelta(seconds=luck.choice([-1, 1]) * 10 ** luck.uniform(0, 8))
            decisions.now = functools.partial(_now, ahead)
            sample, decision = luck.randrange(3, NUM), luck.choice(["exclude", "keep"])
            if luck.random() < 0.7:
                decisions.decide(1, sample, decision, reviewer="ann")
                last[sample] = decision
                continue
            file = place / f"f{step}.csv"
            if command("export", "first", "--out", str(file)) != 0:
                raise FaultError("lost", "no export")
            table = pd.read_csv(file, dtype=str, keep_default_na=False)
            is_edited = luck.random() < 0.5
            if is_edited:
                table.loc[table["sample_id"] == str(sample), "review_decision"] = decision
            table.to_csv(file, index=False)
            meanwhile = luck.randrange(3, NUM)
            said = luck.choice(["exclude", "keep"])
            decisions.decide(1, meanwhile, said, reviewer="ann")
            last[meanwhile] = said
            if command("review", "first", "--apply", str(file), "--reviewer", "ann") == 0 and is_edited:
                with db.session() as session:
                    counts = reviews.outcomes(session, 1).get(sample)
                if counts is not None:
                    last[sample] = counts.decision
        with db.session() as session:
            stands = {number: row.decision for number, row in reviews.outcomes(session, 1).items()}
        for sample, decision in last.items():
            if stands.get(sample) != decision:
                raise FaultError("lost", f"{sample}: {decision} was said last, {stands.get(sample)} stands")
    finally:
        decisions.now = real
    check_home({1, 2} | set(last))
