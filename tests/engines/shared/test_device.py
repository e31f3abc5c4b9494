"""Devices by name, independent random streams, restored global state, memory errors in words."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engines.contract import DeviceMemoryError, EngineInputError
from engines.shared import device
from engines.shared.device import (
    Stopwatch,
    autocast,
    computes_in_bfloat16,
    derive_seed,
    describe_device,
    fresh_memory,
    has_code_for,
    make_generator,
    memory_errors_explained,
    peak_memory_bytes,
    refused_card,
    resolve_device,
    seeded_init,
    versions,
)

CPU = torch.device("cpu")


def test_resolve_device__auto_is_what_is_there() -> None:
    able = torch.cuda.is_available() and refused_card(0) is None
    assert resolve_device("auto").type == ("cuda" if able else "cpu")
    assert resolve_device("cpu") == CPU


@pytest.mark.parametrize(
    ("capability", "built_for", "runs"),
    [
        ((8, 6), ["sm_75", "sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((6, 1), ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"], False),
        ((7, 0), ["sm_75", "compute_80"], False),
        ((9, 0), ["sm_75", "compute_80"], True),
        ((9, 0), ["sm_90a"], True),
        ((12, 0), ["sm_100"], False),
        ((8, 9), [], True),
        ((9, 4), ["gfx90a", "gfx942"], True),
        ((9, 4), ["gfx90a:sramecc+:xnack-"], True),
        ((9, 0), ["gfx942", "sm_75"], False),
    ],
)
def test_has_code_for__follows_cuda_s_rules(
    capability: tuple[int, int], built_for: list[str], runs: bool
) -> None:
    assert has_code_for(capability, built_for) is runs


@pytest.mark.parametrize("name", ["tpu", "gpu", "cuda:x", ""])
def test_resolve_device__unknown(name: str) -> None:
    with pytest.raises(EngineInputError, match=f"there is no device '{name}'; use auto, cpu"):
        resolve_device(name)


def test_resolve_device__meta_is_not_supported() -> None:
    with pytest.raises(EngineInputError, match="device 'meta' is not supported"):
        resolve_device("meta")


def test_resolve_device__absent_card() -> None:
    with pytest.raises(
        EngineInputError, match=r"device 'cuda:99' is not there \(\d+ CUDA devices\); use auto or cpu"
    ):
        resolve_device("cuda:99")


def test_derive_seed__streams_are_stable_and_apart() -> None:
    seeds = {derive_seed(0), derive_seed(1), derive_seed(0, "order", 1), derive_seed(0, "order", 11)}
    seeds |= {derive_seed(0, "augment", 1), derive_seed(0, "order", "1"), derive_seed(0, 1, "order")}
    assert len(seeds) == 7
    # Stored: a change would silently change every run's result.
    assert derive_seed(7, "order", 3) == 6409098265416878229


def test_make_generator__same_stream_same_draws() -> None:
    draws = [torch.rand(4, generator=make_generator(5, "order", 2)) for _ in range(2)]
    assert torch.equal(*draws)
    assert not torch.equal(draws[0], torch.rand(4, generator=make_generator(5, "order", 3)))


def test_seeded_init__seeds_inside_and_restores_outside() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with seeded_init(9, "network"):
        first = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    with seeded_init(9, "network"):
        assert torch.equal(torch.rand(3), first)


def test_seeded_init__restores_after_an_exception() -> None:
    before = torch.random.get_rng_state()
    with pytest.raises(RuntimeError, match="inside"), seeded_init(1):
        raise RuntimeError("inside")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_autocast__only_on_a_cpu_that_computes_in_bfloat16() -> None:
    for precision, wanted in (("bfloat16", computes_in_bfloat16(CPU)), ("float32", False)):
        with autocast(precision, CPU):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert product.dtype == (torch.bfloat16 if wanted else torch.float32)


def test_computes_in_bfloat16__on_a_cpu_asks_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    for able in ((False, False), (True, False), (False, True)):
        for name, answer in zip(names, able, strict=True):
            monkeypatch.setattr(torch.cpu, name, lambda answer=answer: answer)
        computes_in_bfloat16.cache_clear()
        assert computes_in_bfloat16(CPU) == any(able)
    computes_in_bfloat16.cache_clear()


@pytest.fixture
def old_and_new_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The answers of a driver with a Turing card 0, which is the current one, and an Ampere card 1."""
    current = [0]
    names, majors = ["GTX 1650", "RTX 3060"], [7, 8]

    @contextmanager
    def on_card(card: torch.device) -> Iterator[None]:
        before, current[0] = current[0], card.index or 0
        yield
        current[0] = before

    def number(card: torch.device | int | None) -> int:
        return (card.index if isinstance(card, torch.device) else card) or current[0]

    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device", on_card)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda card=None: names[number(card)])
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda card: SimpleNamespace(major=majors[number(card)])
    )
    device.computes_in_bfloat16.cache_clear()
    yield
    device.computes_in_bfloat16.cache_clear()


@pytest.mark.usefixtures("old_and_new_card")
def test_computes_in_bfloat16__is_asked_of_the_card_that_is_used() -> None:
    cards = ("cuda", "cuda:0", "cuda:1")
    found = [device.computes_in_bfloat16(torch.device(card)) for card in cards]
    assert found == [False, False, True]


@pytest.mark.usefixtures("old_and_new_card")
def test_provenance__names_no_card_but_the_one_of_the_run() -> None:
    assert describe_device(torch.device("cuda:1")) == "cuda:1 (RTX 3060)"
    assert "GTX 1650" not in str(versions())


def test_memory_errors_explained__cpu_allocation() -> None:
    remedy = r"ran out of memory; use a smaller batch_size.*resident='no'"
    with pytest.raises(DeviceMemoryError, match=remedy), memory_errors_explained():
        torch.empty(1 << 56)


def test_memory_errors_explained__numpy_and_decorator() -> None:
    @memory_errors_explained()
    def allocate(power: int) -> int:
        return np.empty(1 << power, dtype=np.uint8).size

    assert allocate(3) == 8
    with pytest.raises(DeviceMemoryError, match="ran out of memory"):
        allocate(60)


def test_memory_errors_explained__leaves_other_errors_alone() -> None:
    with pytest.raises(RuntimeError, match="another"), memory_errors_explained():
        raise RuntimeError("another")


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
    ],
)
def test_memory_errors_explained__cards_say_it_in_several_ways(text: str) -> None:
    with pytest.raises(DeviceMemoryError, match="the device ran out of memory"), memory_errors_explained():
        raise RuntimeError(text)


def test_fresh_memory__frees_what_stands_in_a_reference_cycle() -> None:
    class Run:
        def __init__(self) -> None:
            self.save = lambda: self

    left = weakref.ref(Run())
    assert left() is not None
    fresh_memory(CPU)
    assert left() is None


def test_stopwatch__laps_add_up() -> None:
    watch = Stopwatch()
    laps = watch.lap() + watch.lap()
    assert 0 < laps <= watch.seconds


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_bytes__is_of_this_process_and_not_of_the_one_that_started_it() -> None:
    large = np.ones(60_000_000)  # 480 MB here
    code = "import torch; from engines.shared import device; print(device.peak_memory_bytes(torch.device('cpu')))"
    mine = peak_memory_bytes(CPU)
    childs = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert large[-1] == 1
    assert 10_000_000 < childs < mine - 200_000_000


def test_facts_about_the_machine() -> None:
    assert peak_memory_bytes(CPU) > 10_000_000
    assert {"python", "torch", "torchvision", "numpy"} <= set(versions())
    assert describe_device(CPU) == "cpu"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_memory_errors_explained__cuda() -> None:
    with pytest.raises(DeviceMemoryError, match="ran out of memory"), memory_errors_explained():
        torch.empty(1 << 46, device="cuda")
