"""Same picture, or only a similar one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from auditor.importing import duplicates
from auditor.importing.duplicates import MAX_HASH_DISTANCE, Duplicates, candidate_pairs, find_duplicates
from auditor.pictures.decoding import decode
from tests.auditor.sample_pictures import digits, encoded, photo


def found_in(files: list[bytes], labels: list[int], size: int = 48) -> Duplicates:
    decoded = [decode(data, size=size, channels=3) for data in files]
    return find_duplicates(
        np.stack([np.frombuffer(one.content_hash, np.uint8) for one in decoded]),
        np.array([one.perceptual_hash for one in decoded], np.uint64),
        np.stack([one.pixels for one in decoded]),
        np.array(labels),
    )


def test_find_duplicates__copies_of_any_format_and_quality() -> None:
    distinct = [encoded(photo(seed, 90, 90)) for seed in range(12)]
    again = [encoded(photo(2, 90, 90), "BMP"), encoded(photo(4, 90, 90), "JPEG", quality=60)]
    found = found_in([*distinct, *again], [0] * 12 + [0, 1])
    assert found.group[[2, 12]].tolist() == [0, 0]
    assert found.group[[4, 13]].tolist() == [1, 1]
    assert (np.delete(found.group, [2, 12, 4, 13]) == -1).all()
    assert np.flatnonzero(found.is_exact).tolist() == [2, 12]
    assert found.conflicts == [[4, 13]]
    assert found.certain_conflicts == []


def test_find_duplicates__certain_is_only_the_same_pixels_with_another_label() -> None:
    picture, again = photo(3, 90, 90), photo(5, 90, 90)
    same = [encoded(picture), encoded(picture, "BMP"), encoded(picture, "JPEG", quality=60)]
    other = [encoded(again), encoded(again, "BMP"), encoded(again, "JPEG", quality=60)]
    rest = [encoded(photo(seed, 90, 90)) for seed in range(6, 18)]
    found = found_in([*same, *other, *rest], [0, 0, 1] + [0, 1, 1] + [0] * 12)
    assert found.conflicts == [[0, 1, 2], [3, 4, 5]]
    assert found.certain_conflicts == [[3, 4]]
    assert found.summary()["certain_conflicts"] == 1


def test_find_duplicates__scaled_copy_of_a_photograph_is_near(shared_data: Path) -> None:
    from PIL import Image

    paths = sorted((shared_data / "clothing").rglob("*.jpg"))[:60]
    files = [path.read_bytes() for path in paths]
    smaller = Image.open(paths[7]).convert("RGB").resize((150, 200))
    files.append(encoded(np.asarray(smaller), "JPEG", quality=80))
    found = found_in(files, [0] * 61, size=64)
    assert np.flatnonzero(found.group >= 0).tolist() == [7, 60]
    assert not found.is_exact.any()


def test_find_duplicates__digits_are_not_copies_of_each_other() -> None:
    images, labels = digits(1_000)
    found = found_in([encoded(image) for image in images], [int(label) for label in labels], size=16)
    assert found.num_groups == 0


def test_find_duplicates__unlabeled_samples_conflict_with_nobody() -> None:
    same = encoded(photo(1))
    assert found_in([same, same, same], [-1, 3, 3]).conflicts == []
    assert found_in([same, same, same], [-1, 3, 4]).conflicts == [[1, 2]]


def test_find_duplicates__flat_pictures_of_different_shades_differ() -> None:
    shades = [encoded(np.full((20, 20, 3), shade, np.uint8)) for shade in (10, 60, 110, 160)]
    assert found_in(shades, [0, 1, 2, 3]).num_groups == 0


def test_find_duplicates__one_sample_and_none() -> None:
    assert found_in([encoded(photo(1))], [0]).num_groups == 0
    empty = find_duplicates(
        np.empty((0, 32), np.uint8),
        np.empty(0, np.uint64),
        np.empty((0, 1, 8, 8), np.uint8),
        np.empty(0, np.int64),
    )
    assert (empty.num_groups, empty.conflicts) == (0, [])


def test_summary__counts_samples_and_groups() -> None:
    a, b = encoded(photo(1)), encoded(photo(2))
    assert found_in([a, a, b, b, b, encoded(photo(3))], [0, 1, 2, 2, 2, 0]).summary() == {
        "groups": 2,
        "exact_samples": 5,
        "near_samples": 0,
        "conflicting_groups": 1,
        "conflicting_samples": 2,
        "certain_conflicts": 1,
    }


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=30), st.integers(0, 2**32 - 1))
def test_candidate_pairs__finds_every_pair_up_to_three_bits(hashes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    near = [value ^ sum(1 << int(bit) for bit in rng.choice(64, 3, replace=False)) for value in hashes]
    values = np.array([*hashes, *near], np.uint64)
    found = {tuple(pair) for pair in candidate_pairs(values).tolist()}
    count = len(hashes)
    assert {(i, i + count) for i in range(count)} <= found
    for i, j in found:
        assert i < j
        assert bin(int(values[i]) ^ int(values[j])).count("1") <= MAX_HASH_DISTANCE


def test_find_duplicates__mnist_pairs(shared_data: Path) -> None:
    import pyarrow.parquet as pq

    batch = next(
        pq.ParquetFile(shared_data / "mnist-train.parquet").iter_batches(2_000, columns=["image.bytes"])
    )
    files = batch.column(0).field("bytes").to_pylist()
    decoded = [decode(data, size=28, channels=1) for data in files]
    hashes = np.array([one.perceptual_hash for one in decoded], np.uint64)
    assert len(candidate_pairs(hashes)) > 500, "close hashes are common among digits"
    content = np.stack([np.frombuffer(one.content_hash, np.uint8) for one in decoded])
    pixels = np.stack([one.pixels for one in decoded])
    assert find_duplicates(content, hashes, pixels, np.zeros(2_000, int)).num_groups == 0


@pytest.mark.parametrize("channels", [1, 3])
def test_find_duplicates__sides_that_eight_does_not_divide(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, channels, 13, 13), dtype=np.uint8)
    pixels[3] = pixels[1]
    content = np.arange(128, dtype=np.uint8).reshape(4, 32)
    found = find_duplicates(content, np.zeros(4, np.uint64), pixels, np.zeros(4, int))
    assert found.group.tolist() == [-1, 0, -1, 0]


def test_candidate_pairs__a_crowd_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.importing.duplicates.MOST_PAIRS", 4_000)
    assert 999 <= len(candidate_pairs(np.zeros(1_000, np.uint64))) <= 2 * 4_000


def test_find_duplicates__hashes_that_begin_alike_are_no_copies_and_steps_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(0)
    content, pixels = (draw.integers(0, 256, shape, dtype=np.uint8) for shape in ((60, 32), (60, 1, 8, 8)))
    hashes, labels = draw.integers(0, 2**63, 60, dtype=np.uint64), np.arange(60) % 2
    content[1, :8] = content[0, :8]
    for copy, of in ((10, 3), (20, 3), (31, 30), (41, 40), (51, 50)):
        pixels[copy], hashes[copy] = pixels[of], hashes[of] ^ np.uint64(1)
        if copy < 31:
            content[copy] = content[of]
    found = find_duplicates(content, hashes, pixels, labels)
    groups = [np.flatnonzero(found.group == number).tolist() for number in range(found.num_groups)]
    assert groups == [[3, 10, 20], [30, 31], [40, 41], [50, 51]]
    assert np.flatnonzero(found.is_exact).tolist() == [3, 10, 20]
    assert (len(found.conflicts), found.certain_conflicts) == (4, [[3, 10, 20]])
    monkeypatch.setattr(duplicates, "ROWS_A_STEP", 7)
    monkeypatch.setattr(duplicates, "PAIRS_AT_ONCE", 1)
    again = find_duplicates(content, hashes, pixels, labels)
    assert again.group.tolist() == found.group.tolist()


def test_find_duplicates__memory_does_not_grow_with_samples_that_stand_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(duplicates, "ROWS_A_STEP", 5_000)
    draw, num = np.random.default_rng(0), 100_000
    content, hashes = (
        draw.integers(0, 256, (num, 32), dtype=np.uint8),
        draw.permutation(num).astype(np.uint64),
    )
    pixels, labels = np.zeros((num, 1, 1, 1), np.uint8), np.zeros(num, np.int32)
    hashes *= np.uint64(0x9E3779B97F4A7C15)  # spread over all bits
    tracemalloc.start()
    try:
        found = find_duplicates(content, hashes, pixels, labels, tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found.num_groups
    assert most < 25 * num  # what a step computes; all samples at once took 55


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_joining_pairs__joins_what_all_agreeing_pairs_join_and_asks_once(share: float) -> None:
    draw = np.random.default_rng(3)
    pairs = np.unique(np.sort(draw.integers(0, 80, (600, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    agree = dict(zip(map(tuple, pairs.tolist()), (draw.random(len(pairs)) < share).tolist(), strict=True))
    asked: list[tuple[int, ...]] = []

    def agreeing(some: NDArray[np.int64]) -> NDArray[np.bool_]:
        names = list(map(tuple, some.tolist()))
        asked.extend(names)
        return np.array([agree[name] for name in names], np.bool_)

    found = duplicates.joining_pairs(pairs, agreeing)
    assert len(asked) == len(set(asked))
    assert all(agree[tuple(pair)] for pair in found.tolist())
    assert partition(found.tolist()) == partition([pair for pair, same in agree.items() if same])


def test_joining_pairs__of_equal_pictures_asks_for_one_pair_a_picture() -> None:
    pairs = np.array([(i, j) for i in range(60) for j in range(i + 1, 60)])
    asked: list[int] = []

    def agreeing(some: NDArray[np.int64]) -> NDArray[np.bool_]:
        asked.append(len(some))
        return np.ones(len(some), np.bool_)

    assert len(duplicates.joining_pairs(pairs, agreeing)) == sum(asked) == 59


def partition(pairs: Iterable[Sequence[int]]) -> set[frozenset[int]]:
    """Literal: join pair by pair."""
    groups: list[set[int]] = []
    for pair in pairs:
        touched = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touched] + [set(pair).union(*touched)]
    return set(map(frozenset, groups))
