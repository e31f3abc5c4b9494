"""Device, precision, compilation, random streams, timers and memory: what surrounds a training loop."""

from __future__ import annotations

import functools
import gc
import hashlib
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from engines.contract import DeviceMemoryError, EngineInputError

MEMORY_REMEDY = (
    "use a smaller batch_size, a smaller network or image size, or resident='no' (streamed images)"
)

PROCESS_STATUS = Path("/proc/self/status")
"""Where Linux tells about this process."""

OUT_OF_MEMORY = ("DefaultCPUAllocator", "CUDA error: out of memory", "_ALLOC_FAILED")
"""In the text of errors that have no class of their own: torch's CPU allocator, a card that others fill, cuBLAS."""


def usable_cards() -> list[int]:
    """Indices of the CUDA devices that this torch computes on."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [card for card in range(cards) if refused_card(card) is None]


def resolve_device(name: str) -> torch.device:
    """The device called ``name``; ``"auto"`` is the first CUDA device that this torch computes on, else the CPU.

    Raises:
        EngineInputError: the device is unknown, absent on this machine, or a card that this torch has no code for.
    """
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        able = next(iter(usable_cards()), None)
        return torch.device("cpu" if able is None else f"cuda:{able}" if able else "cuda")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise EngineInputError(f"there is no device {name!r}; use auto, cpu, cuda or cuda:<n>.") from error
    if device.type not in ("cpu", "cuda"):
        raise EngineInputError(f"device {name!r} is not supported; use auto, cpu, cuda or cuda:<n>.")
    if device.type == "cuda":
        if (device.index or 0) >= cards:
            raise EngineInputError(f"device {name!r} is not there ({cards} CUDA devices); use auto or cpu.")
        if refused := refused_card(device.index or 0):
            raise EngineInputError(f"{refused}; use auto or cpu, or another build of torch.")
    return device


def refused_card(card: int) -> str | None:
    """Return why this torch cannot compute on the CUDA device number ``card``; None where it can.

    The wheels on PyPI leave older cards out: a GTX 1080 is seen as a CUDA device and fails at its first kernel.
    """
    capability, built_for = torch.cuda.get_device_capability(card), torch.cuda.get_arch_list()
    if has_code_for(capability, built_for):
        return None
    name, major, minor = torch.cuda.get_device_name(card), *capability
    return f"{name} (sm_{major}{minor}) is none of the cards that torch {torch.__version__} was built for"


def refused_cards() -> list[str]:
    """Return why, for every CUDA device that is there and that this torch cannot compute on."""
    cards = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return [why for card in cards if (why := refused_card(card))]


def has_code_for(capability: tuple[int, int], built_for: Sequence[str]) -> bool:
    """Return whether code for one of these architectures runs on a card of that compute capability.

    Args:
        capability: (major, minor).
        built_for: of ``torch.cuda.get_arch_list``: ``sm_86`` runs on cards of the same major version from 8.6 on,
            ``compute_80`` is compiled for every later card. Without such names (none at all, or ROCm's ``gfx942``,
            which have no compute capability) nothing is known: True.
    """
    named = [one.partition("_") for one in built_for if one.startswith(("sm_", "compute_"))]
    if not named:
        return True
    major, minor = capability
    for kind, _, digits in named:
        number = int(digits.rstrip("af"))
        same_kind = kind == "compute" or number // 10 == major
        if same_kind and number <= 10 * major + minor:
            return True
    return False


@contextmanager
def threads(num: int) -> Iterator[None]:
    """Let torch compute with ``num`` threads on the CPU inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(num)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def derive_seed(seed: int, *stream: int | str) -> int:
    """A 63-bit seed for the named stream of ``seed``; different streams are independent."""
    digest = hashlib.blake2b(repr((int(seed), *stream)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def make_generator(seed: int, *stream: int | str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for the named stream of ``seed``, for example ``make_generator(seed, "order", epoch)``.

    Streams named by epoch make a resumed run draw what an uninterrupted run draws, with nothing to save.
    """
    generator = torch.Generator(device=device)
    generator.manual_seed(derive_seed(seed, *stream))
    return generator


@contextmanager
def seeded_init(seed: int, *stream: int | str) -> Iterator[None]:
    """Seed torch's global generators inside the block and restore them after.

    For what torch draws from its global generator: parameter initialisation, and dropout (wrap each epoch in
    ``seeded_init(seed, "dropout", epoch)``).
    """
    cuda = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=cuda):
        value = derive_seed(seed, *stream)
        torch.default_generator.manual_seed(value)
        if cuda:
            torch.cuda.manual_seed_all(value)
        yield


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Mixed precision for ``precision == "bfloat16"`` on devices that compute in it.

    Does nothing anywhere else: others only emulate it, which is slower than float32.
    """
    enabled = precision == "bfloat16" and computes_in_bfloat16(device)
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled)


@functools.cache
def computes_in_bfloat16(device: torch.device) -> bool:
    """Return whether the device multiplies in bfloat16: CUDA cards from Ampere on, CPUs with AVX512-BF16 or AMX.

    Asked for each card: torch answers for the current one, and an old card may stand beside a new one.
    """
    if device.type == "cpu":
        checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        return any(bool(getattr(torch.cpu, name, lambda: False)()) for name in checks)
    if not torch.cuda.is_available():
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_bf16_supported(including_emulation=False)


class Stopwatch:
    """Wall time since construction or the last ``lap``."""

    def __init__(self) -> None:
        self._start = self._lap = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since construction."""
        return time.perf_counter() - self._start

    def lap(self) -> float:
        """Seconds since the last lap (or construction); starts the next lap."""
        now = time.perf_counter()
        seconds, self._lap = now - self._lap, now
        return seconds


def fresh_memory(device: torch.device) -> None:
    """Free what the run before this one left, and begin a new peak; the CPU's peak cannot begin anew.

    Networks and images in reference cycles keep their CUDA memory until Python looks for such cycles,
    and torch keeps what it once took from the card: both are missing to the next engine.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.init()  # a device with an index does not do so by itself
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_bytes(device: torch.device) -> int:
    """Largest memory so far: allocated by torch on CUDA, resident of this process on the CPU.

    Call ``fresh_memory`` first to measure one run on CUDA; the CPU's number is of the whole process and cannot be
    reset. 0 where the system does not tell.
    """
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if PROCESS_STATUS.exists():
        # getrusage would begin with the size of the process that started this one.
        status = PROCESS_STATUS.read_text(encoding="ascii", errors="replace")
        return next(
            (int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0
        )
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def versions() -> dict[str, str]:
    """Versions that decide numbers: Python, torch, torchvision, NumPy, and CUDA where there is one.

    The card is not among them: ``describe_device`` names the one that a run was on.
    """
    found = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torchvision": version("torchvision"),
        "numpy": np.__version__,
    }
    if torch.cuda.is_available():
        found["cuda"] = str(torch.version.cuda)
    return found


def describe_device(device: torch.device) -> str:
    """Name for the provenance: ``"cpu"``, or the CUDA device with the name of the card."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


@contextmanager
def memory_errors_explained() -> Iterator[None]:
    """Turn running out of memory into one line with the remedy. Works as a decorator too.

    Raises:
        DeviceMemoryError: torch or NumPy could not allocate inside the block.
    """
    try:
        yield
    except DeviceMemoryError:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise DeviceMemoryError(f"the device ran out of memory; {MEMORY_REMEDY}.") from error
    except RuntimeError as error:
        if not any(sign in str(error) for sign in OUT_OF_MEMORY):
            raise
        where = "machine" if "CPU" in str(error) else "device"
        raise DeviceMemoryError(f"the {where} ran out of memory; {MEMORY_REMEDY}.") from error
