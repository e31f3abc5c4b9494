"""Files that end the library which parses them: the import says so in one line, and everything else goes on."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.ground import apart
from auditor.ground.errors import AuditorError, ImportRefusedError
from auditor.ground.tables import read_table
from auditor.importing import imports
from auditor.importing.imports import import_dataset
from auditor.pictures import cache
from auditor.pictures.sources import SourceOptions, UnreadableError, open_source, read_bytes
from auditor.statistics import read_predictions
from tests.auditor.conftest import Run
from tests.auditor.sample_pictures import write_folder, write_parquet

ROOT = Path(__file__).resolve().parents[3]
BREAKS_DOWN = 30
"""A byte of the footer of which Arrow makes an exception that nobody catches, where it is 8."""


def footer(data: bytes) -> int:
    """Where the footer of a Parquet file begins."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def damage(file: Path) -> Path:
    """A Parquet file with one byte of its footer changed."""
    data = bytearray(file.read_bytes())
    data[footer(data) + BREAKS_DOWN] = 8
    file.write_bytes(data)
    return file


def test_import__a_parquet_that_aborts_its_library_is_one_line(run: Run, home: Path, tmp_path: Path) -> None:
    source = damage(write_parquet(tmp_path / "p.parquet", 24))
    code, _, said = run("import", source, "--name", "x")
    assert code == 1
    assert said.splitlines() == [
        f"auditor: {source} is damaged so that the library which reads it breaks down (SIGABRT); write it again, "
        "or leave it out."
    ]
    with pytest.raises(ImportRefusedError, match="breaks down"):
        imports.preview_source(source)
    assert not list((home / "datasets").iterdir())


def test_pictures__of_a_parquet_that_was_damaged_since_are_one_line_each(home: Path, tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "p.parquet", 24)
    import_dataset(source, name="x")
    damage(source)
    with pytest.raises(UnreadableError, match=r"does not support FLOAT"):
        read_bytes(str(source), "#3")
    with session() as open_session:
        dataset = datasets.get(open_session, "x")
        sample = datasets.sample(open_session, dataset.id, 3)
    with pytest.raises(AuditorError, match=r"of 'x' cannot be read"):
        cache.original_bytes(dataset, sample)
    assert cache.thumbnail(dataset, sample, 32)


BREAKING = """
import ctypes
from PIL.PngImagePlugin import PngStream
real = PngStream.call
def call(self, cid, pos, length):
    return ctypes.string_at(0) if cid == b"kiLl" else real(self, cid, pos, length)
PngStream.call = call
"""
"""A Pillow that breaks down at a chunk of PNG that we made up: no file that does it is known."""


@pytest.mark.parametrize("number", [12, 1_100])
def test_import__an_image_that_ends_its_decoder_is_named_and_can_be_left_out(
    home: Path, tmp_path: Path, number: int
) -> None:
    source = write_folder(tmp_path / "set", number)
    victim = sorted(source.rglob("*.png"))[number // 2]
    data, chunk = victim.read_bytes(), b"kiLl"
    made_up = struct.pack(">I", 0) + chunk + struct.pack(">I", zlib.crc32(chunk))
    victim.write_bytes(data[:33] + made_up + data[33:])
    (tmp_path / "sitecustomize.py").write_text(BREAKING)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "auditor", "import", source, "--name", "x", "--workers", "2"]
    refused = subprocess.run(command, capture_output=True, text=True, env=environment)
    name = victim.relative_to(source)
    line = f"auditor: {name}: is damaged so that the library which reads it breaks down (SIGSEGV)."
    assert refused.stderr.splitlines()[-1].startswith(line)
    done = subprocess.run([*command, "--skip-bad"], capture_output=True, text=True, env=environment)
    assert f"x: {number - 1:,} images" in done.stdout, done.stderr


def test_open_source__changed_footers_are_read_or_refused(tmp_path: Path) -> None:
    whole = write_parquet(tmp_path / "p.parquet", 24).read_bytes()
    luck, at = random.Random(43), footer(whole)
    file, num_refused = tmp_path / "m.parquet", 0
    for _ in range(60):
        data = bytearray(whole)
        data[luck.randrange(at, len(data))] ^= 1 << luck.randrange(8)
        file.write_bytes(data)
        try:
            source = open_source(file, SourceOptions())
            rows = [row for row in source.rows() if hasattr(row, "location")]
            list(source.payloads(row.location for row in rows))
        except ImportRefusedError:
            num_refused += 1
    assert 0 < num_refused < 60


def write_swelling(file: Path) -> Path:
    """A table of a few kB that takes 160 MB of memory."""
    rows = pa.table({"sample_id": np.zeros(2_000_000, np.int64)})
    with pq.ParquetWriter(file, rows.schema) as writer:
        for _ in range(10):
            writer.write_table(rows)
    return file


def test_tables__a_parquet_that_people_hand_in_takes_its_memory_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_READERS", apart.Readers(1, most_bytes=2**27))
    file = write_swelling(tmp_path / "t.parquet")
    for read in (read_table, read_predictions):
        with pytest.raises(AuditorError, match=r"t\.parquet.*needs more than 0\.1 GB of memory") as refused:
            read(file)
        assert "\n" not in str(refused.value)
