"""The only bridge to ``engines``: names, configs, one call that trains, and what its errors mean.

``engines`` (and so torch) is imported inside the functions, so that only a process that trains pays for it.
"""

from __future__ import annotations

import ast
import dataclasses
import errno
import functools
import inspect
import json
import math
import numbers
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from auditor.ground.errors import AuditFailedError
from auditor.ground.files import written_whole
from auditor.ground.settings import number, settings
from auditor.ground.wording import did_you_mean

if TYPE_CHECKING:
    from engines.contract import (
        EngineResult,
        EngineSpec,
        EpochRecord,
        MaskResult,
        NumberResult,
        SetResult,
        SignalSpec,
    )

ENGINE_ORDER = ("noise_model", "cross_entropy", "coteaching", "umn", "l2b", "choicenet")
"""The order in which engines are offered and train: what is quick or finds most comes first. No list of what there
is: an engine of the registry that is not named here comes after these. (The registry's own order is that of an
export's columns, which must stay as in files written earlier.)"""
PRESETS = ("quick", "standard", "paper")
KINDS: dict[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    str: (str, "text"),
    type(None): (type(None), "null"),
}
"""What a field of an engine's config takes, and how a person calls it."""
OWN_NETWORKS = frozenset({"umn_mlp", "umn13", "mnist_residual"})
"""Of engines, in no list of networks for all; they are built by their engine alone."""
CPU_SIDE = 112
"""Longest side in pixels of images that engines train on on a CPU unless their configs say otherwise."""
FEATURES_EXPECTED = 256
"""Features of a sample that an estimate reckons with where nobody knows how many there will be."""
CHECKPOINT_INTERVAL_S = 10.0
"""Least time between two checkpoint files: small epochs would otherwise be spent on writing."""


@dataclass(frozen=True)
class Pretrained:
    """A pretrained network that engines train further, instead of one that they train from scratch."""

    network: str
    """``timm:NAME`` or ``torchvision:NAME``."""
    weights: str | None
    """Path of a file."""
    side: int | None
    """Pixels of the images that it gets."""


@dataclass(frozen=True)
class EngineChoice:
    """One engine as a menu shows it."""

    name: str
    title: str
    paper: str
    signals: Mapping[str, SignalSpec]
    needs_features: bool
    """Works on features of a backbone only."""


def engine_choices(*, on_features: bool = True) -> list[EngineChoice]:
    """Every engine in the order of ``ENGINE_ORDER``; without features those that do without."""
    return [
        EngineChoice(spec.name, spec.title, spec.paper, dict(spec.signals), spec.needs_features)
        for spec in _in_order()
        if on_features or not spec.needs_features
    ]


def _in_order() -> list[EngineSpec]:
    """Every engine of the registry."""
    from engines.registry import ENGINES

    first = [name for name in ENGINE_ORDER if name in ENGINES]
    return [ENGINES[name] for name in dict.fromkeys([*first, *ENGINES])]


def has_field(engine: str, field: str) -> bool:
    """Return whether the engine's config has that field."""
    from engines.registry import ENGINES

    return field in {each.name for each in dataclasses.fields(ENGINES[engine].config_type)}


def engines_on(labels: str) -> list[str]:
    """The engines that take ``masks``, ``numbers`` or ``sets``."""
    return [spec.name for spec in _in_order() if labels in spec.other_configs]


def needs_features(engine: str) -> bool:
    """Return whether the engine works on features of a backbone only."""
    from engines.registry import ENGINES

    return ENGINES[engine].needs_features


@dataclass(frozen=True)
class Setting:
    """One field of an engine's config, as a form shows it."""

    name: str
    kind: str
    """What it takes, such as ``a whole number`` or ``text or null``; empty where no word fits."""
    meaning: str
    """The text below the field in its config; may hold ``code`` in double backticks."""
    defaults: Mapping[str, Any]
    """Its plain value in each of ``PRESETS``."""


def settings_of(engine: str, *, on_features: bool = False, is_finetuned: bool = False) -> list[Setting]:
    """Every field of the engine's config, in its order; the presets are those for images, for features or for
    training a backbone further (whose name and weights an audit adds)."""
    from engines.registry import ENGINES

    config_type = ENGINES[engine].config_type
    chosen = {preset: config_type.preset(preset) for preset in PRESETS}
    if is_finetuned and not ENGINES[engine].needs_features:
        chosen = {name: one.for_finetuning("auto", None) for name, one in chosen.items()}
    elif on_features or is_finetuned:
        chosen = {name: one.for_features() for name, one in chosen.items()}
    presets = {name: plain(one) for name, one in chosen.items()}
    kinds, meanings = _kinds(config_type), _meanings(config_type)
    return [
        Setting(
            field.name,
            " or ".join(word for _, word in kinds[field.name]),
            meanings.get(field.name, ""),
            {preset: values[field.name] for preset, values in presets.items()},
        )
        for field in dataclasses.fields(config_type)
    ]


def _meanings(config_type: type) -> dict[str, str]:
    """The text below each field of a dataclass and of those that it inherits from, by field."""
    found: dict[str, str] = {}
    for each in reversed(config_type.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                found[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(below.value)).split())
    return found


def typed_value(text: str) -> Any:
    """Return what a person typed as the value of a field: JSON where it can be read as that, else text."""
    try:
        found = json.loads(text, parse_constant=lambda name: name)  # no catalog stores NaN or Infinity
        return text if isinstance(found, float) and not math.isfinite(found) else found
    except (ValueError, RecursionError):
        return text


def options_of(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """``engine.field=value`` texts as the ``options`` of ``configs``: values by field, by engine.

    Raises:
        AuditFailedError: a text is not of that form.
    """
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        engine, dot, field = key.partition(".")
        if not (equals and dot and field):
            raise AuditFailedError(
                f"The setting {text!r} is not in the form ENGINE.FIELD=VALUE, for example umn.epochs=30."
            )
        found.setdefault(engine, {})[field] = typed_value(value)
    return found


@functools.cache
def signal_columns() -> dict[str, tuple[str, str]]:
    """Columns of an export that hold published signals: (engine, signal) by column, in their order."""
    from engines.registry import ENGINES

    return {
        f"{name}_{signal}": (name, signal)
        for name, spec in ENGINES.items()
        for signal, about in spec.signals.items()
        if about.in_export
    }


@functools.cache
def trust_columns() -> dict[str, str]:
    """Columns of an export that hold each engine's trust: engine by column, in their order."""
    from engines.registry import ENGINES

    return {f"{name}_trust": name for name in ENGINES}


def column_meanings() -> dict[str, str]:
    """Return what each column of an export that an engine fills means, by its name in their order."""
    from engines.registry import ENGINES

    signals = {column: ENGINES[engine].signals[name] for column, (engine, name) in signal_columns().items()}
    return {column: f"{about.title}: {about.meaning}" for column, about in signals.items()} | {
        column: f"trust score of {ENGINES[engine].title} alone" for column, engine in trust_columns().items()
    }


def refused_cards() -> list[str]:
    """CUDA devices that are there and that this torch cannot compute on, each with the reason."""
    from engines.shared import device

    return device.refused_cards()


def is_on_cpu() -> bool:
    """Return whether ``auto`` means the CPU here."""
    from engines.shared.device import resolve_device

    return resolve_device("auto").type == "cpu"


def machine() -> tuple[dict[str, str], str]:
    """Versions of what training runs on, and the device that ``auto`` means here."""
    from engines.shared.device import describe_device, resolve_device, versions

    device = resolve_device("auto")
    return versions(), describe_device(device)


def train(
    engine: str,
    images: NDArray[np.uint8] | None,
    labels: NDArray[np.int64],
    num_classes: int,
    *,
    config: Mapping[str, Any],
    trusted: NDArray[np.bool_] | None = None,
    trusted_weight: NDArray[np.float32] | None = None,
    features: NDArray[np.floating] | None = None,
    seed: int = 0,
    device: str = "auto",
    on_epoch: Callable[[EpochRecord], None] | None = None,
    checkpoint: FileCheckpoint | None = None,
) -> EngineResult:
    """Train one engine on arrays; ``config`` holds every field that differs from the engine's defaults.

    Raises:
        EngineError: the data or config cannot be trained on, or the device ran out of memory.
        AuditFailedError: the config has a field that the engine does not know.
    """
    from engines.contract import TrainingData
    from engines.registry import ENGINES

    spec = ENGINES[engine]
    data = TrainingData(
        images=images,
        given_labels=labels,
        num_classes=num_classes,
        trusted=trusted,
        trusted_weight=trusted_weight,
        features=features,
    )
    with _ready_to_train(engine, spec.config_type, config, device, checkpoint) as planned:
        return spec.train(data, planned, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint)


def train_masks(
    engine: str,
    images: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    num_classes: int,
    *,
    config: Mapping[str, Any],
    judged: NDArray[np.uint8],
    trusted: NDArray[np.bool_],
    seed: int,
    device: str,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    checkpoint: FileCheckpoint | None = None,
) -> MaskResult:
    """Train one engine on masks; ``judged`` are those that it judges, where people corrected some.

    Raises:
        EngineError: the data or config cannot be trained on, or the device ran out of memory.
        AuditFailedError: the config has a field that the engine does not know.
    """
    from engines.contract import MaskData
    from engines.registry import ENGINES

    spec = ENGINES[engine]
    data = MaskData(images, masks, num_classes, judged=judged, trusted=trusted)
    with _ready_to_train(engine, spec.config_type_on("masks"), config, device, checkpoint) as planned:
        return spec.train_masks(
            data, planned, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint
        )


def train_numbers(
    engine: str,
    images: NDArray[np.uint8] | None,
    numbers: NDArray[np.float64],
    *,
    config: Mapping[str, Any],
    features: NDArray[np.floating] | None,
    judged: NDArray[np.float64],
    trusted: NDArray[np.bool_],
    seed: int,
    device: str,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    checkpoint: FileCheckpoint | None = None,
) -> NumberResult:
    """Train one engine on numbers; ``judged`` are those that it judges, where people corrected some.

    Raises:
        EngineError: the data or config cannot be trained on, or the device ran out of memory.
        AuditFailedError: the config has a field that the engine does not know.
    """
    from engines.contract import NumberData
    from engines.registry import ENGINES

    spec = ENGINES[engine]
    data = NumberData(images, numbers, features=features, judged=judged, trusted=trusted)
    with _ready_to_train(engine, spec.config_type_on("numbers"), config, device, checkpoint) as planned:
        return spec.train_numbers(
            data, planned, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint
        )


def train_sets(
    engine: str,
    features: NDArray[np.floating],
    sets: NDArray[np.int8],
    *,
    config: Mapping[str, Any],
    trusted: NDArray[np.bool_],
    seed: int,
    device: str,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    checkpoint: FileCheckpoint | None = None,
) -> SetResult:
    """Train one engine on sets of classes, as people corrected some.

    Raises:
        EngineError: the data or config cannot be trained on, or the device ran out of memory.
        AuditFailedError: the config has a field that the engine does not know.
    """
    from engines.contract import SetData
    from engines.registry import ENGINES

    spec = ENGINES[engine]
    data = SetData(features, sets, trusted=trusted)
    with _ready_to_train(engine, spec.config_type_on("sets"), config, device, checkpoint) as planned:
        return spec.train_sets(
            data, planned, seed=seed, device=device, on_epoch=on_epoch, checkpoint=checkpoint
        )


@contextmanager
def _ready_to_train(
    engine: str,
    config_type: type[Any],
    config: Mapping[str, Any],
    device: str,
    checkpoint: FileCheckpoint | None,
) -> Iterator[Any]:
    """Empty the device's memory, build the config, and name the file of a checkpoint that cannot be used."""
    from engines.shared import device as devices
    from engines.shared.checkpoint import CheckpointError

    devices.fresh_memory(devices.resolve_device(device))
    gone = set(config) - {field.name for field in dataclasses.fields(config_type)}
    if gone:
        raise AuditFailedError(
            f"This work was planned by another version, whose engine {engine} had the setting {min(gone)!r}; "
            "start it again."
        )
    try:
        yield config_type(**config)
    except CheckpointError as error:
        where = f" It is {checkpoint.path}." if checkpoint is not None else ""
        raise CheckpointError(f"{error}{where}") from error


@contextmanager
def threads(num: int | None) -> Iterator[None]:
    """Compute with ``num`` threads inside the block; None = with those that the process has.

    How many decides the order of sums of floats, so the same result needs the same number.
    """
    if num is None:
        yield
        return
    from engines.shared import device

    with device.threads(num), threadpool_limits(num, user_api="blas"):
        yield


def checkpoint_interval_s() -> float:
    """The shortest time in seconds between two checkpoints: ``AUDITOR_CHECKPOINT_INTERVAL_S``, default 10.

    Raises:
        AuditorError: it is no number of seconds.
    """
    return number("AUDITOR_CHECKPOINT_INTERVAL_S", CHECKPOINT_INTERVAL_S, least=0.0, most=1e6)


class FileCheckpoint:
    """An engine's state as one file, whole or absent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._min_interval_s = checkpoint_interval_s()
        self._saved_at = -float("inf")

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None."""
        from engines.shared.checkpoint import deserialize_state

        return deserialize_state(self.path.read_bytes()) if self.path.exists() else None

    def save(self, state: dict[str, Any]) -> None:
        """Keep ``state`` unless the last one is younger than the interval."""
        from engines.shared.checkpoint import serialize_state

        if time.monotonic() - self._saved_at < self._min_interval_s:
            return
        with written_whole(self.path) as beside:
            beside.write_bytes(serialize_state(state))
        self._saved_at = time.monotonic()

    def remove(self) -> None:
        """Delete the file once the result is saved."""
        self.path.unlink(missing_ok=True)


def configs(
    names: Sequence[str],
    preset: str,
    options: Mapping[str, Mapping[str, Any]],
    *,
    on_features: bool = False,
    finetuned: Mapping[str, Pretrained] | None = None,
    labels: str | None = None,
) -> dict[str, dict[str, Any]]:
    """Every field of each engine's config, as plain values: the preset with ``options`` applied.

    ``on_features``: what the preset means on features of a backbone. ``finetuned``: by engine, the network that it
    trains further on the images in place of them. ``labels``: ``masks``, ``numbers`` or ``sets``, what it means on
    these.

    Raises:
        AuditFailedError: an unknown engine, preset or field (the text names the nearest), a field of an
            engine that is not among ``names``, or a value out of range.
    """
    from engines.contract import EngineInputError
    from engines.registry import ENGINES

    unknown = [name for name in [*names, *options] if name not in ENGINES]
    if unknown:
        hint = did_you_mean(unknown[0], ENGINES, f"choose from {', '.join(ENGINES)}.")
        raise AuditFailedError(f"There is no engine {unknown[0]!r}; {hint}")
    unused = [name for name, values in options.items() if values and name not in names]
    if unused:
        raise AuditFailedError(
            f"Engine {unused[0]} has settings but is not chosen; choose it too, or remove its settings."
        )
    if preset not in PRESETS:
        raise AuditFailedError(f"There is no preset {preset!r}; choose from {', '.join(PRESETS)}.")
    if labels is not None and (lacking := [name for name in names if name not in engines_on(labels)]):
        raise AuditFailedError(
            f"Engine {lacking[0]} takes no {labels}; on {labels} there are {', '.join(engines_on(labels))}."
        )
    if not on_features and (lacking := [name for name in names if ENGINES[name].needs_features]):
        raise AuditFailedError(f"Engine {lacking[0]} needs features; name a backbone, or leave it out.")
    found = {}
    for name in names:
        given = dict(options.get(name, {}))
        config = (
            _first_config(name, preset, given)
            if labels is None
            else ENGINES[name].config_type_on(labels).preset(preset)
        )
        if finetuned and name in finetuned:
            one = finetuned[name]
            config = config.for_finetuning(one.network, one.weights, one.side)
        elif on_features:
            config = config.for_features()
        fields = {field.name for field in dataclasses.fields(config)}
        wrong = [key for key in given if key not in fields]
        if wrong:
            hint = did_you_mean(wrong[0], fields, f"it has {', '.join(sorted(fields))}.")
            raise AuditFailedError(f"Engine {name} has no setting {wrong[0]!r}; {hint}")
        _check_kinds(name, type(config), given)
        try:
            found[name] = plain(dataclasses.replace(config, **given))
        except (EngineInputError, TypeError) as error:
            raise AuditFailedError(f"Engine {name}: {error}") from error
    return found


def _first_config(name: str, preset: str, given: dict[str, Any]) -> Any:
    """The preset, or what the paper prints for the data set that ``given`` names as ``paper``, which is taken out.

    Raises:
        AuditFailedError: the paper has no such data set.
    """
    from engines.contract import EngineInputError
    from engines.registry import ENGINES

    config_type = ENGINES[name].config_type
    if "paper" not in given or not hasattr(config_type, "paper"):
        return config_type.preset(preset)
    try:
        return config_type.paper(given.pop("paper"))
    except EngineInputError as error:
        raise AuditFailedError(f"Engine {name}: {error}") from error


def _check_kinds(engine: str, config_type: type, values: Mapping[str, Any]) -> None:
    """Refuse a text where a number belongs, before the config compares it with one."""
    kinds = _kinds(config_type)
    for field, value in values.items():
        # Python counts true as 1; a person who writes it does not.
        found = bool if isinstance(value, bool) else type(value)
        if kinds[field] and not any(
            issubclass(found, kind) and (found is bool) == (kind is bool) for kind, _ in kinds[field]
        ):
            words = " or ".join(word for _, word in kinds[field])
            raise AuditFailedError(f"Setting {engine}.{field} is {value!r}, it must be {words}.")


def _kinds(config_type: type) -> dict[str, list[tuple[type, str]]]:
    """Return what each field takes, with the word for it; empty where ``KINDS`` has none and only the config
    checks.
    """
    hints = get_type_hints(config_type)
    found = {}
    for field in dataclasses.fields(config_type):
        hint = hints[field.name]
        kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
        found[field.name] = [KINDS[kind] for kind in kinds if kind in KINDS]
    return found


def estimated_seconds(
    planned: Mapping[str, Mapping[str, Any]],
    shape: tuple[int, int, int],
    num_rows: int,
    num_classes: int,
    *,
    device: str,
    devices: Mapping[str, str] | None = None,
    on_features: Collection[str] = (),
    num_features: int | None = None,
    num_threads: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Return how long each engine's training takes on this machine, which is measured for a moment.

    Args:
        planned: configs by engine, as ``configs`` returns them.
        shape: (C, H, W) of the images.
        num_rows: N.
        num_classes: K.
        device: a resolved one.
        devices: of engines that do not train there.
        on_features: engines that train on features.
        num_features: D, the values of one view; default: what the network of the first engine on images makes of
            an image, where there is one, else ``FEATURES_EXPECTED``.
        num_threads: that each engine computes with; default: those of this process.
    """
    from engines.contract import EngineInputError
    from engines.networks import is_pretrained
    from engines.registry import ENGINES
    from engines.shared.device import resolve_device as resolved
    from engines.shared.loader import reduced_size
    from engines.shared.work import num_seen, speed

    found: dict[str, float] = {}
    seen: int | None = None
    # Whose features others train on comes before them.
    for name, values in sorted(planned.items(), key=lambda each: each[0] in on_features):
        config = ENGINES[name].config_type(**values)
        place = resolved((devices or {}).get(name, device))
        is_head = name in on_features
        rows: tuple[int, ...] = (num_features or seen or FEATURES_EXPECTED,)
        if not is_head:
            side = None if is_pretrained(config.network, config.weights) else config.side_on(place)
            rows = (shape[0], *reduced_size(shape[1:], side))
        work = config.work(num_rows, num_classes, on_features=is_head)
        network, precision = (
            values.get(key, usual) for key, usual in (("network", "auto"), ("precision", "float32"))
        )
        with threads((num_threads or {}).get(name)):
            try:
                rate = speed(
                    network,
                    rows,
                    num_classes,
                    device=place,
                    precision=precision,
                    weights=values.get("weights"),
                    image_side=values.get("image_side"),
                )
                if on_features and seen is None and not is_head:
                    from_here = {"weights": values.get("weights"), "image_side": values.get("image_side")}
                    seen = num_seen(network, rows, num_classes, device=place, **from_here)
            except EngineInputError as error:
                if network not in OWN_NETWORKS:  # it would say so at its start
                    raise AuditFailedError(f"Engine {name}: {error}") from error
                rate = speed("auto", rows, num_classes, device=place, precision=precision)
        found[name] = rate.seconds(work)
    return {name: found[name] for name in planned}


def resolve_device(device: str) -> str:
    """Return what ``auto``, ``cpu`` or ``cuda`` means here.

    Raises:
        AuditFailedError: there is no such device.
    """
    from engines.contract import EngineError
    from engines.shared.device import resolve_device as resolved

    try:
        return str(resolved(device))
    except EngineError as error:
        raise AuditFailedError(str(error)) from error


def usable_cards() -> list[int]:
    """Indices of the CUDA devices that trainings can use."""
    from engines.shared import device

    return device.usable_cards()


def nearest(rows: NDArray[np.floating], k: int) -> NDArray[np.integer]:
    """The ``k`` nearest other rows of every row by cosine, nearest first: (N, D), may be a memory map -> (N, k).

    Above 20,000 rows of a backbone's features 98 or 99 of 100 are found.
    """
    from engines.neighbours import search

    return search.nearest(rows, k, scale=True)[0]


def about(name: str) -> dict[str, Any]:
    """Title, paper and the meanings of an engine's signals, as plain values."""
    from engines.registry import ENGINES

    spec: EngineSpec = ENGINES[name]
    signals = {key: dataclasses.asdict(signal) for key, signal in spec.signals.items()}
    return {"title": spec.title, "paper": spec.paper, "signals": signals}


def is_cancelled(error: BaseException) -> bool:
    """The run was stopped on request."""
    from engines.contract import TrainingCancelled

    return isinstance(error, (TrainingCancelled, KeyboardInterrupt))


def remedy(error: BaseException, *, go_on: str = "resume") -> str | None:
    """One line with the way out for errors that a user can mend; None for all others.

    ``go_on`` is what people do to go on with this work.
    """
    from engines.contract import EngineError

    if isinstance(error, (EngineError, AuditFailedError)) and str(error):
        return str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"The disk of {settings().home} is full; free some space, then {go_on}. Nothing was lost."
    if isinstance(error, MemoryError) and not str(error):
        return (
            f"Not enough memory; close other programs and {go_on}, or start again with a smaller batch_size."
        )
    return None


def plain(config: Any) -> dict[str, Any]:
    """A dataclass as plain JSON values."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config), default=_json_value))
    return values


def _json_value(value: Any) -> Any:
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
