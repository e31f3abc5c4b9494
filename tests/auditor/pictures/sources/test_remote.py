"""Sources behind an address: a real object store (moto's S3) and a real web server, both on this machine."""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from PIL import Image

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.ground.errors import ImportRefusedError
from auditor.importing.imports import BadRowsError, import_dataset, preview_source
from auditor.outputs import export
from auditor.pictures import cache
from auditor.pictures.decoding import ORIENTATION
from auditor.pictures.sources import SourceOptions, SourceRow, addresses, open_here, read_bytes
from auditor.pictures.sources import web as web_client
from auditor.pictures.sources.remote import HEAD_BYTES, RemoteTree
from auditor.review import decisions
from tests.auditor.pictures.sources.test_containers import hugging_face, picture, write_shard
from tests.helpers import free_port

CLASSES = ("cat", "dog")
NUM = 6


def write_photos(folder: Path) -> None:
    """Class folders, and three tables that name their images in different ways."""
    for n in range(NUM):
        place = folder / "photos" / CLASSES[n % 2]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"no [{n}].png").write_bytes(picture(n))
    paths = [f"{CLASSES[n % 2]}/no [{n}].png" for n in range(NUM)]
    lines = [f"{path},{path[:3]}" for path in paths]
    (folder / "photos" / "labels.csv").write_text("\n".join(["path,label", *lines]) + "\n")
    rows = [json.dumps({"file_name": path, "label": path[:3]}) for path in paths]
    (folder / "photos" / "metadata.jsonl").write_text("\n".join(rows) + "\n")
    write_turned(folder / "turned")
    (folder / "hub").mkdir()
    hugging_face(range(NUM)).to_parquet(folder / "hub" / "train-00000-of-00001.parquet")
    (folder / "shards").mkdir()
    write_shard(folder / "shards" / "train-0.tar", range(4))
    write_shard(folder / "shards" / "train-1.tar", range(4, NUM))


def write_turned(folder: Path) -> None:
    """Two photos that EXIF turns, larger than what is read of a header, and a box round a white square in each."""
    folder.mkdir()
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    for at in range(2):
        pixels = np.random.default_rng(at).integers(0, 100, (300, 400, 3), dtype=np.uint8)
        pixels[20:60, 30:110] = 255
        Image.fromarray(pixels).save(folder / f"{at}.jpg", quality=98, exif=exif)
        assert (folder / f"{at}.jpg").stat().st_size > HEAD_BYTES
    value = {
        "images": [{"id": at, "file_name": f"{at}.jpg"} for at in range(2)],
        "annotations": [
            {"id": n, "image_id": n, "category_id": n, "bbox": [38, 28, 64, 24]} for n in range(2)
        ],
        "categories": [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}],
    }
    (folder / "boxes.json").write_text(json.dumps(value))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``s3://BUCKET/set`` with the photos, on a server of our own."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    pytest.importorskip("s3fs")
    folder = tmp_path_factory.mktemp("store")
    write_photos(folder)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        system = fsspec.filesystem("s3")
        system.mkdir("bucket")
        system.put(str(folder) + "/", "bucket/set", recursive=True)
        yield "s3://bucket/set"
    server.stop()


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``gs://BUCKET/set`` with the photos, on an emulator of Google's object store."""
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    with pytest.MonkeyPatch.context() as patch:
        # Without it gcsfs asks Google itself, by gRPC, what kind of bucket this is.
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{(port := free_port())}")
        pytest.importorskip("gcsfs")
        folder = tmp_path_factory.mktemp("google")
        write_photos(folder)
        server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="bucket")
        server.start()
        system = fsspec.filesystem("gs", token="anon")
        system.put(f"{folder}/", "bucket/set", recursive=True)
        patch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
        yield "gs://bucket/set"
        server.stop()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a web server with the photos."""
    folder = tmp_path_factory.mktemp("web")
    write_photos(folder)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["store", "google", "web"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.mark.parametrize("place", ["store", "google"])
def test_walk__lists_a_folder_when_it_comes_to_it(place: str, request: pytest.FixtureRequest) -> None:
    root = f"{request.getfixturevalue(place)}-deep"
    system, base = addresses.file_system(root)
    names = ["a.png", "a/1.png", "a/b/2.png", "a/b.png", ".x/3.png", "c/[4].png", "c d/5.png"]
    for name in names:
        system.pipe(f"{base}/{name}", b"1")
    tree, listed = RemoteTree(root), []
    real = tree._system.ls

    def heard(folder: str, **options: Any) -> Any:
        listed.append(folder.removeprefix(base))
        return real(folder, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree._system, "ls", heard)
        walk = tree.walk()
        assert next(walk) == ("a/1.png", None)
        assert listed == ["", "/a"]
        rest = [name for name, _ in walk]
    assert rest == sorted(set(names) - {"a/1.png", ".x/3.png"}, key=lambda name: name.split("/"))
    assert listed == ["", "/a", "/a/b", "/c", "/c d"]
    assert not [folder for folder in tree._system.dircache if "-deep" in folder]


@pytest.mark.parametrize("source", ["photos/", "photos/labels.csv", "photos/metadata.jsonl"])
def test_address__is_imported_and_only_decoded_images_are_kept(home: Path, place: str, source: str) -> None:
    report = import_dataset(f"{place}/{source}", name="set")
    assert (report.num_samples, report.num_classes) == (NUM, 2)
    with session() as open_session:
        dataset = datasets.get(open_session, "set")
        samples = list(datasets.iterate_samples(open_session, dataset.id))
    assert dataset.root == f"{place}/photos"
    for sample in samples:
        number = int(sample.filepath[-6])
        assert cache.original_bytes(dataset, sample) == picture(number)
        pixels = np.asarray(Image.open(io.BytesIO(picture(number)))).transpose(2, 0, 1)
        assert np.array_equal(cache.image_cache(dataset)[sample.sample_id], pixels)
    kept = [file.suffix for file in cache.folder(dataset).rglob("*") if file.is_file()]
    assert not {".png", ".csv", ".jsonl"} & set(kept)


@pytest.mark.parametrize(
    "source", ["hub/train-00000-of-00001.parquet", "hub/", "shards/", "shards/train-0.tar"]
)
def test_address__parquet_and_shards_are_read_in_place(
    home: Path, tmp_path: Path, place: str, source: str
) -> None:
    (tmp_path / "names.txt").write_text("cat\ndog")
    names = tmp_path / "names.txt" if "shards" in source else None
    report = import_dataset(f"{place}/{source}", name="set", class_names=names)
    with session() as open_session:
        dataset = datasets.get(open_session, "set")
        samples = list(datasets.iterate_samples(open_session, dataset.id))
    assert report.num_samples == (4 if source.endswith(".tar") else NUM)
    assert dataset.class_names == list(CLASSES)
    assert [cache.original_bytes(dataset, sample) for sample in samples] == [
        picture(n) for n in range(report.num_samples)
    ]


def test_export__a_table_at_an_address_goes_out_in_its_form(home: Path, tmp_path: Path, store: str) -> None:
    import_dataset(f"{store}/photos/metadata.jsonl", name="set")
    with session() as open_session:
        dataset = datasets.get(open_session, "set")
    decisions.decide(dataset.id, 0, "relabel", label=1, reviewer="ada")
    export.export_table("set", tmp_path / "cleaned.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "cleaned.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == ["dog", "dog", "cat", "dog", "cat", "dog"]


def test_address__boxes_of_turned_pictures_are_asked_about_and_follow_them(place: str) -> None:
    source = f"{place}/turned/boxes.json"
    with pytest.raises(ImportRefusedError, match="2 pictures such as 0.jpg: EXIF turns them"):
        list(open_here(source, SourceOptions(boxes=True)).rows())
    opened = open_here(source, SourceOptions(boxes=True, masks_on="stored"))
    rows = [row for row in opened.rows() if isinstance(row, SourceRow)]
    assert len(rows) == 2
    for row in rows:
        cut = np.asarray(Image.open(io.BytesIO(read_bytes(opened.info.root, row.location))))
        assert cut.shape[:2] == (64, 24)
        assert cut.min() > 200


def test_root__may_be_an_address(home: Path, tmp_path: Path, place: str) -> None:
    lines = [f"{place}/photos/{CLASSES[n % 2]}/no [{n}].png,{CLASSES[n % 2]}" for n in range(NUM)]
    if place.startswith("http"):
        lines = [line.replace(" ", "%20").replace("[", "%5B") for line in lines]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label", *lines]))
    assert import_dataset(tmp_path / "labels.csv", name="set", root=f"{place}/photos").num_samples == NUM


def test_address__below_another_root_is_refused_with_its_row(home: Path, tmp_path: Path, web: str) -> None:
    (tmp_path / "labels.csv").write_text(f"path,label\ncat/no [0].png,cat\n{web}/hub/x.png,dog\n")
    with pytest.raises(BadRowsError, match=r"labels\.csv, row 3: .* is outside http"):
        import_dataset(tmp_path / "labels.csv", name="set", root=f"{web}/photos")


def test_address__an_image_that_is_gone_names_its_row(home: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "labels.csv").write_text("path,label\ncat/no [0].png,cat\ncat/none.png,dog\n")
    with pytest.raises(BadRowsError, match=r"labels\.csv, row 3: cat/none\.png does not exist in"):
        import_dataset(tmp_path / "labels.csv", name="set", root=f"{place}/photos")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("s3://bucket/none.csv", "s3://bucket/none.csv does not exist"),
        ("nonsense://bucket/none.csv", "nonsense:// is not known"),
        ("file:///etc/passwd", "is no address of another machine"),
    ],
)
def test_address__that_cannot_be_opened_is_one_line(store: str, source: str, says: str) -> None:
    with pytest.raises(ImportRefusedError, match=says) as refused:
        preview_source(source)
    assert "\n" not in str(refused.value)


class Hostile(http.server.BaseHTTPRequestHandler):
    """Sends elsewhere, endlessly, slowly, and far more than it seems."""

    elsewhere, num_asked = "", 0
    says: int | None = None
    """How long it says that a file is."""

    def do_GET(self) -> None:
        Hostile.num_asked += 1
        name = self.path.rpartition("/")[2]
        self.send_response(302 if name == "away.csv" else 200)
        if name == "away.csv":
            self.send_header("Location", self.elsewhere)
        if name == "bomb":
            self.send_header("Content-Encoding", "gzip")
        if name.startswith("x.") and self.says is not None:
            self.send_header("Content-Length", str(self.says))
        self.end_headers()
        with suppress(OSError):
            if name == "bomb":
                self.wfile.write(gzip.compress(bytes(8 << 20)))
            while name in ("endless", "slow"):
                self.wfile.write(bytes(1 if name == "slow" else 1 << 16))
                if self.server.is_over.wait(0.05 if name == "slow" else 0):  # type: ignore[attr-defined]
                    return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""


@pytest.fixture
def hostile(web: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Hostile, "elsewhere", f"{web}/photos/labels.csv?token=secret")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.is_over = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.is_over.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


def test_web__another_server_is_not_followed_to(home: Path, web: str, hostile: str) -> None:
    refused = rf"^127\.0\.0\.1 sends to another place \({web}/photos/labels\.csv\); name that address"
    with pytest.raises(ImportRefusedError, match=refused):
        preview_source(f"{hostile}/away.csv")
    (said,) = RemoteTree(hostile).read(["away.csv"])
    assert "sends to another place" in str(said)


def test_web__a_name_that_leads_to_this_machine_is_refused(web: str) -> None:
    name = socket.gethostname()
    if not any(one[4][0].startswith("127.") for one in socket.getaddrinfo(name, 80)):
        pytest.skip("this machine's name leads to its network")
    (said,) = RemoteTree(web.replace("127.0.0.1", name)).read(["photos/labels.csv"])
    assert "on this machine or beside it" in str(said)


def named(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """The name ``rebound.example`` means these addresses, one after the other, and then the last."""
    real, left = socket.getaddrinfo, list(answers)

    def look_up(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        if host == "rebound.example":
            host = left.pop(0) if len(left) > 1 else left[0]
        return real(host, port, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "169.254.169.254"])
def test_web__a_name_never_leads_to_this_machine_or_beside_it(
    hostile: str, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    named(monkeypatch, address)
    (said,) = RemoteTree(hostile.replace("127.0.0.1", "rebound.example")).read(["away.csv"])
    assert "rebound.example leads to " in str(said)


def test_web__a_name_that_changes_after_it_was_checked_reaches_nothing(
    hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.get_filesystem_class("http").clear_instance_cache()  # a session has the limits of when it was made
    monkeypatch.setattr(web_client, "SILENT_S", 0.5)
    monkeypatch.setattr(web_client, "WHOLE_S", 2.0)
    monkeypatch.setattr(Hostile, "num_asked", 0)
    named(monkeypatch, "192.0.2.1", "127.0.0.1")  # the first is of nobody
    (said,) = RemoteTree(hostile.replace("127.0.0.1", "rebound.example")).read(["away.csv"])
    fsspec.get_filesystem_class("http").clear_instance_cache()
    assert isinstance(said, str)
    assert Hostile.num_asked == 0


@pytest.mark.parametrize("kind", ["parquet", "tar", "zip"])
@pytest.mark.parametrize(("says", "told"), [(None, "comes without its length"), (9_999, "cannot be read")])
def test_web__a_file_without_its_length_or_shorter_than_it_says_is_one_line(
    home: Path, hostile: str, kind: str, says: int | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hostile, "says", says)
    with pytest.raises(ImportRefusedError, match=told) as refused:
        preview_source(f"{hostile}/x.{kind}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["endless", "bomb"])
def test_web__more_than_an_image_may_have_is_refused(
    hostile: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_client, "MAX_FILE_BYTES", 4 << 20)
    monkeypatch.setattr(web_client, "MOST_STREAMED", 4 << 20)
    (said,) = RemoteTree(hostile).read([name])
    assert "sends more than 4 MB" in str(said)
    with pytest.raises(ImportRefusedError, match=f"{hostile}/{name} sends more than 4 MB; copy it here"):
        addresses.fetch(f"{hostile}/{name}", str(tmp_path / "copy"))
    assert (tmp_path / "copy").stat().st_size <= 4 << 20


def test_web__too_slow_an_answer_is_given_up(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "FIRST_S", 0.5)
    (said,) = RemoteTree(hostile).read(["slow"])
    assert "sends less than 1,000 bytes a second" in str(said)
