"""Changes one small thing in an engine at a time and asks whether a test notices.

    python -m qa.mutation [--module TEXT] [--sample N --seed S] [--seconds LIMIT] [--again]

For every module that trains (``MODULES``), every mutant is one change of its syntax tree: a comparison, sign,
operator, truth value or number turned, a condition negated, a statement or an argument removed, two arguments
swapped. It runs against the tests named after the module and the literal references, until the first failure and
at most ``LIMIT`` seconds; ``--again`` runs those that survived against all tests of the package. Verdicts are
written after every mutant (results/mutation.json), a later call goes on where the last one ended;
``first`` of a verdict is what the first look said, whatever tests were written since. results/mutation.md is the
score, the first look and the survivors.

Words, type annotations, imports, the numbers of presets and the modules named config.py are left alone: they are
choices, and a test that repeats a choice guards nothing.

cosmic-ray starts a new interpreter for each mutant, and here starting one (torch, SciPy, Optuna) takes longer than
the tests. mutmut 3 forks, as this script does, and copes with the small modules (tried on l2b/weights.py, about one
change a second); it draws no sample, changes texts that only people read, and keeps no list of explained survivors.
Linux and macOS only (fork).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"

MODULES = (
    "engines/coteaching/*.py",
    "engines/cross_entropy/*.py",
    "engines/l2b/*.py",
    "engines/l2b/bases/*.py",
    "engines/meta/*.py",
    "engines/umn/*.py",
    "engines/choicenet/*.py",
    "engines/regression/*.py",
    "engines/segmentation/*.py",
    "engines/neighbours/*.py",
    "engines/backbones/*.py",
    "engines/shared/config.py",
    "engines/shared/ema.py",
    "engines/shared/folds.py",
    "engines/shared/large.py",
    "engines/shared/loader.py",
    "engines/shared/losses.py",
    "engines/shared/selection.py",
    "engines/shared/run.py",
    "engines/shared/rows.py",
    "engines/shared/scoring.py",
    "engines/shared/strong.py",
)
"""What trains or judges; patterns, so that moved and new files are found."""

NOT_KILLED = ("survived", "slow")

_ON_A_CARD = "tests/engines/shared/test_device_placement.py"
TESTS = {
    "engines/coteaching": ("tests/engines/coteaching", _ON_A_CARD),
    "engines/cross_entropy": ("tests/engines/cross_entropy", _ON_A_CARD),
    "engines/l2b": ("tests/engines/l2b", "tests/engines/meta", _ON_A_CARD),
    "engines/l2b/bases": ("tests/engines/l2b/bases", _ON_A_CARD),
    "engines/meta": ("tests/engines/meta", "tests/engines/l2b"),
    "engines/umn": ("tests/engines/umn", _ON_A_CARD),
    "engines/choicenet": ("tests/engines/choicenet", _ON_A_CARD),
    "engines/regression": ("tests/engines/regression",),
    "engines/segmentation": ("tests/engines/segmentation",),
    "engines/neighbours": ("tests/engines/neighbours",),
    "engines/backbones": ("tests/engines/backbones",),
    "engines/shared": (
        "tests/engines/shared",
        "tests/engines/cross_entropy",
        "tests/engines/l2b/test_reference_steps.py",
        "tests/engines/coteaching/test_reference_steps.py",
    ),
}
"""The tests of a package, quickest first; references first of all (they notice most)."""
TASKS = {
    "numbers": ("tests/engines/regression",),
    "masks": (
        "tests/engines/cross_entropy/test_masks.py",
        "tests/engines/segmentation",
    ),
    "folds": ("tests/engines/regression", "tests/engines/segmentation"),
}
"""What tests a module of this name, whichever package it is in: the tests of the loop that it serves."""

_CPU = "on the CPU this is the default device"
_ZIP = "both are of one length by construction; strict guards later changes of the code"
_WIDER = "float32 in both but for the last digit; memory"
_GAIN = "the default, a leaky ReLU of slope 0, is a ReLU"

EXPLAINED: dict[str, str] = {
    "engines/choicenet/signals.py fit_temperature: np.log(np.maximum((1 - rate) * p_given + rate * p_wrong,"
    " 1e-12)).mean()  ->  np.log(np.maximum((1 - rate) * p_given + rate * p_wrong, 1e-12)).sum()": (
        "the same rows at every temperature; only the order counts"
    ),
    "engines/coteaching/signals.py signals: np.errstate(invalid='ignore', divide='ignore')"
    "  ->  np.errstate(divide='ignore')": "a warning",
    "engines/cross_entropy/masks.py train: 0  ->  1": "the default seed; any will do",
    "engines/meta/fused_tangents.py forward: 0  ->  1 (no. 2)": (
        "the padding of outputs, which a convolution that is not transposed leaves alone"
    ),
    "engines/umn/model.py train_epoch: make_generator(bench.seed, 'moves', *key, device=bench.device)"
    "  ->  make_generator(bench.seed, 'moves', *key)": _CPU,
    "engines/l2b/bases/pair.py _train_on: torch.zeros((), device=self.device)  ->  torch.zeros(())": _CPU,
    "engines/meta/meta_set.py module: 50  ->  51": "a choice",
    "engines/choicenet/networks.py build_mixture_network: CholeskyBlock(size, num_classes,"
    " num_components=config.num_components, rho_ref=config.rho_ref, outer=config.outer,"
    " inverse_precision=config.inverse_precision, head_scale=HEAD_SCALE, rho_start=config.rho_start)"
    "  ->  CholeskyBlock(size, num_classes, num_components=config.num_components, rho_ref=config.rho_ref,"
    " outer=config.outer, inverse_precision=config.inverse_precision, rho_start=config.rho_start)": (
        "the block's own default is the same number"
    ),
    "engines/choicenet/signals.py _wrong_label_rate: 50  ->  51": "a choice",
    "engines/coteaching/trials.py _found: np.arange(config.epochs, dtype=np.float64)"
    "  ->  np.arange(config.epochs)": "whole numbers, exact in both",
    "engines/coteaching/trials.py forget_networks: done.pop('training', None)  ->  pass": "frees memory",
    "engines/l2b/training.py choose_meta_set: high - low  ->  high + low": (
        "a mixture of two normals divides losses alike, whatever all of them are divided by"
    ),
    "engines/meta/fused_tangents.py backward: 4  ->  5 (no. 2)": "torch takes a None too many",
    "engines/segmentation/loop.py train_masks: Run(engine, data, config, seed=seed, device=device,"
    " on_epoch=on_epoch, checkpoint=checkpoint)  ->  Run(engine, data, config, seed=seed, on_epoch=on_epoch,"
    " checkpoint=checkpoint)": _CPU,
    "engines/segmentation/network.py reduced_masks: torch.arange(new, device=masks.device)"
    "  ->  torch.arange(new)": _CPU,
    "engines/shared/large.py large_array: 0  ->  1": "the file has one byte more",
    "engines/shared/loader.py _to_device_in_chunks: reduced(torch.from_numpy(chunk).to(self.device),"
    " self.image_size)  ->  reduced(self.image_size, torch.from_numpy(chunk).to(self.device))": (
        "images that lie on a card"
    ),
    "engines/l2b/bases/pair.py _unlabeled_batches: 1  ->  2": "the labeled part has at least two samples here",
    "engines/cross_entropy/training.py state_dict: return {}  ->  return None": (
        "load_state_dict takes nothing in either form"
    ),
    "engines/shared/rows.py _pieces: 1  ->  2": "for a single sample of more than a million features",
    "engines/shared/config.py learning_rate_at: 1.0  ->  2.0 (no. 2)": "no epoch lies behind the last",
    "engines/shared/selection.py gmm_small_loss_probability: 0  ->  1 (no. 2)": (
        "numbers on a line part into the same two heaps whatever the draw"
    ),
    "engines/meta/directional.py forward_with_tangent: logits = forward_ad.unpack_dual(logits).primal  ->  pass": (
        "outside its level a dual tensor is its primal"
    ),
    "engines/meta/directional.py meta_gradient: zip(point, gradients, strict=True)"
    "  ->  zip(point, gradients)": _ZIP,
    "engines/meta/fused_tangents.py backward: zip(found, wanted, strict=True)  ->  zip(found, wanted)": _ZIP,
    "engines/meta/fused_tangents.py _batch_norm: 0.1  ->  1.1": "torch hands on a momentum in every call",
    "engines/meta/fused_tangents.py backward: True  ->  False (no. 2)": _ZIP,
    "engines/segmentation/loop.py descend: True  ->  False": (
        "set_to_none of zero_grad: gradients of zero instead of none, and every parameter has one in every step"
    ),
    "engines/coteaching/training.py _make_optimizer: optimizers.Adam(parameters, lr=0.0, eps=1e-08,"
    " weight_decay=config.weight_decay, fused=True)  ->  optimizers.Adam(parameters, lr=0.0,"
    " weight_decay=config.weight_decay, fused=True)": "1e-8 is the default",
    "engines/coteaching/training.py train: mean / mean.sum(axis=1, keepdims=True)"
    "  ->  mean * mean.sum(axis=1, keepdims=True)": "a mean of rows that sum to 1 sums to 1 but for the last digit",
    "engines/choicenet/cholesky.py __init__: rho_start > 0  ->  rho_start >= 0": (
        "from 0 the spread is 0, and so is every bias before"
    ),
    "engines/choicenet/signals.py report_notes: 1.0  ->  2.0": (
        "a mixture of two normals divides losses and losses + 1 alike"
    ),
    "engines/coteaching/s2e.py sample: np.clip(rng.dirichlet(concentration, size=count), PARAMETER_FLOOR, 1.0)"
    "  ->  np.clip(PARAMETER_FLOOR, rng.dirichlet(concentration, size=count), 1.0)": (
        "the floor, at least as large as the draw, is the larger of the two: shares lie below 1"
    ),
    "engines/coteaching/trials.py concentrated_share:"
    " np.zeros((probs.shape[1], probs.shape[1]), dtype=np.int64)"
    "  ->  np.zeros((probs.shape[1], probs.shape[1]))": "counts, exact in both",
    "engines/coteaching/training.py load_state_dict: zip(self.trackers, state['trackers'], strict=True)"
    "  ->  zip(self.trackers, state['trackers'])": _ZIP,
    "engines/cross_entropy/training.py train_epoch: optimizer.zero_grad(set_to_none=True)"
    "  ->  optimizer.zero_grad()": "True is the default",
    "engines/cross_entropy/training.py train_epoch: margin[margin.isfinite()] > 0"
    "  ->  margin[margin.isfinite()] >= 0": "whether a tie of two classes to the last bit counts as right",
    "engines/cross_entropy/training.py __init__: np.zeros((data.num_samples, data.num_classes), dtype=np.float32)"
    "  ->  np.zeros((data.num_samples, data.num_classes))": _WIDER,
    "engines/coteaching/signals.py epoch_signals: np.full(len(labeled), np.nan, dtype=np.float32)"
    "  ->  np.full(len(labeled), np.nan)": _WIDER,
    "engines/coteaching/training.py train: np.mean([normalized_probs(one) for one in log_probs], axis=0,"
    " dtype=np.float32)  ->  np.mean([normalized_probs(one) for one in log_probs], axis=0)": _WIDER,
    "engines/coteaching/training.py train: search.forget_networks()  ->  pass": "frees memory",
    "engines/coteaching/training.py _step: zip(self.trackers, logits, strict=False)"
    "  ->  zip(self.trackers, logits)": "False is the default",
    "engines/meta/fused_tangents.py setup_context: False  ->  True": (
        "zeros are made instead of a missing gradient or tangent: more work, the same numbers"
    ),
    "engines/choicenet/training.py _train_epoch: torch.zeros(4, dtype=torch.float64, device=run.device)"
    "  ->  torch.zeros(4, dtype=torch.float64)": _CPU,
    "engines/choicenet/training.py _step: training.optimizer.zero_grad(set_to_none=True)"
    "  ->  training.optimizer.zero_grad()": "True is the default",
    "engines/choicenet/cholesky.py normal: torch.randn(shape, generator=generator, device=self.target.device,"
    " dtype=self.target.dtype)  ->  torch.randn(shape, generator=generator, dtype=self.target.dtype)": _CPU,
    "engines/umn/networks.py __init__: nn.init.kaiming_uniform_(self.first.weight, nonlinearity='relu')"
    "  ->  nn.init.kaiming_uniform_(self.first.weight) (no. 2)": _GAIN,
    "engines/umn/networks.py forward: zip(self.sizes, self.blocks, strict=True)"
    "  ->  zip(self.sizes, self.blocks) (no. 2)": _ZIP,
    "engines/umn/model.py loss: uncertainty(guider, learner[front], labels)"
    "  ->  uncertainty(learner[front], guider, labels)": "an absolute difference, both detached",
    "engines/coteaching/training.py load_state_dict: True  ->  False": (
        "strict of a zip: the state was written by the same number of networks (its fingerprint is checked)"
    ),
    "engines/cross_entropy/training.py train_epoch: True  ->  False": (
        "set_to_none of zero_grad: gradients of zero instead of none, and every parameter has one in every step"
    ),
    "engines/cross_entropy/training.py __init__: np.zeros(data.num_samples, dtype=np.float32)"
    "  ->  np.zeros(data.num_samples)": (
        "small whole numbers, exact in both; memory and the last digit of float32 differ"
    ),
    "engines/l2b/bases/division.py divide_by_mixture: np.nan_to_num(clean) > inside"
    "  ->  np.nan_to_num(clean) >= inside": "a posterior that equals the threshold to the last bit",
    "engines/l2b/bases/division.py jensen_shannon: 0.0  ->  1.0": "what it makes larger is cut to log 2 again",
    "engines/l2b/bases/division.py jensen_shannon: 2  ->  3 (no. 4)": "none is above log 2 but by rounding",
    "engines/l2b/bases/semi_supervised.py balance_penalty: F.log_softmax(logits.float(), dim=1)"
    "  ->  F.log_softmax(logits.float())": "of a table, dim=1 is the default",
    "engines/shared/losses.py soft_cross_entropy: F.log_softmax(_at_least_float32(logits), dim=1)"
    "  ->  F.log_softmax(_at_least_float32(logits))": "of a table, dim=1 is the default",
    "engines/shared/losses.py contrastive_loss: torch.eye(len(views), dtype=torch.bool, device=views.device)"
    "  ->  torch.eye(len(views), dtype=torch.bool)": _CPU,
    "engines/backbones/embedding.py module: 16  ->  17": "a choice",
    "engines/backbones/embedding.py probe: 1  ->  2": "threads: only the time differs",
    "engines/backbones/embedding.py probe: embed(images, network, views=views, device=device)"
    "  ->  embed(images, network, views=views)": _CPU,
    "engines/neighbours/search.py nearest: False  ->  True": "rows have length 1 already where nobody asks",
    "engines/neighbours/search.py module: 64  ->  65": "a choice",
    "engines/neighbours/search.py module: 256  ->  257": "a choice",
    "engines/neighbours/search.py module: 65536  ->  65537": "a choice",
    "engines/shared/loader.py __init__: self.is_resident and self.device.type == 'cuda'"
    "  ->  self.is_resident or self.device.type == 'cuda'": "a copy in memory of the same images",
    "engines/coteaching/trials.py module: State = dict[str, Any]  ->  pass": "a name for types alone",
    "engines/coteaching/s2e.py move_theta: norm > MAX_STEP_NORM  ->  norm >= MAX_STEP_NORM": (
        "a norm that equals the cap is multiplied by 1"
    ),
    "engines/meta/meta_set.py draw_meta_batch: torch.arange(len(rows), device=rows.device)"
    "  ->  torch.arange(len(rows))": _CPU,
    "engines/neighbours/training.py train: nearest(rows, min(config.neighbours, data.num_samples - 1),"
    " device=place)  ->  nearest(rows, min(config.neighbours, data.num_samples - 1))": _CPU,
    "engines/neighbours/training.py train: np.take_along_axis(probs, np.maximum(data.given_labels, 0)[:,"
    " None], axis=1)  ->  np.take_along_axis(probs, np.maximum(data.given_labels, 0)[:, None])": (
        "-1 is the default, and of a table the same"
    ),
    "engines/segmentation/loop.py _at_size: F.interpolate(logits, size=size, mode='bilinear',"
    " align_corners=False)  ->  F.interpolate(logits, size=size, mode='bilinear')": ("False is the default"),
    "engines/shared/config.py LoopConfig: 128  ->  129": "a choice",
    "engines/shared/config.py LoopConfig: 20  ->  21": "a choice",
    "engines/choicenet/cholesky.py __init__: 5  ->  6": "every caller says how many",
    "engines/coteaching/rules.py choose_exchanged: taught.sum(dim=1).clamp(min=1)  ->  taught.sum(dim=1)": (
        "of every batch at least one sample is kept, and none is empty"
    ),
    "engines/shared/loader.py augment: torch.rand((num, 1), generator=generator, device=place) < 0.5"
    "  ->  torch.rand((num, 1), generator=generator, device=place) <= 0.5": (
        "whether a draw that is a half to the last bit mirrors"
    ),
    "engines/shared/loader.py augment: torch.arange(height, device=place) + move_y"
    "  ->  torch.arange(height, device=place) - move_y": ("moves are drawn evenly from both sides"),
    "engines/l2b/bases/pair.py _train_on: others = moved_together(others, self.device)  ->  pass": _CPU,
    "engines/shared/run.py heldout_accuracy: heldout_accuracy(network, *self.evaluation, self.mean_std,"
    " batch_size=self.scoring_batch, precision=precision)"
    "  ->  heldout_accuracy(network, *self.evaluation, self.mean_std, precision=precision)": (
        "images at once: memory"
    ),
    "engines/umn/model.py _network_name: 12  ->  13": "a choice",
}
"""Survivors that change nothing anyone could see: ``file: change`` -> the reason."""

TEXT_ONLY = (
    "EngineInputError",
    "EngineError",
    "ValueError",
    "SignalSpec",
    "CheckpointError",
    "filterwarnings",
)
"""Calls whose arguments are words for people."""


@dataclass(frozen=True)
class Mutant:
    """One change."""

    file: str
    line: int
    scope: str
    """The innermost function or class."""
    before: str
    after: str
    number: int
    """Which of the file's changes, in order."""
    twin: int = 0
    """Which of the equal changes of this function, in order."""

    @property
    def change(self) -> str:
        """What was changed, in one line."""
        return f"{self.before}  ->  {self.after}"

    @property
    def key(self) -> str:
        """The same for the same change of the same code, wherever its line has moved."""
        twin = f" (no. {self.twin + 1})" if self.twin else ""
        return f"{self.file} {self.scope}: {self.change}{twin}"


# --- changes of the syntax tree ---------------------------------------------------------------------------

COMPARE: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
CALLS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "argmax": "argmin",
    "zeros_like": "ones_like", "ones_like": "zeros_like", "mean": "sum", "train": "eval", "eval": "train",
}  # fmt: skip
SYMMETRIC = ("max", "min", "maximum", "minimum", "trust_from_evidence")
"""Calls whose arguments may come in any order."""
DROPPED_METHODS = ("detach", "clone", "copy", "flip", "sort", "clamp", "exp", "log", "square", "abs")


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Every changed form of one node, the node itself untouched."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        yield _with(node, ops=[COMPARE[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        if not _is_words(node):
            yield _with(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from _changed_constants(node)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield _with(node, value=ast.Constant(None))
    if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.Raise) and not _is_docstring(node):
        yield ast.Pass()


def _changed_constants(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)


def _changed_calls(node: ast.Call) -> Iterator[ast.AST]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in CALLS:
        yield _with(node, func=ast.Name(CALLS[function.id], ast.Load()))
    if isinstance(function, ast.Attribute):
        if function.attr in CALLS:
            yield _with(node, func=_with(function, attr=CALLS[function.attr]))
        if function.attr in DROPPED_METHODS and not isinstance(function.value, ast.Name):
            yield function.value
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    has_two = len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2])
    if has_two and called not in SYMMETRIC:
        yield _with(node, args=[node.args[1], node.args[0], *node.args[2:]])
    for i in range(len(node.keywords)):
        yield _with(node, keywords=[k for j, k in enumerate(node.keywords) if j != i])


def _with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_words(node: ast.AST) -> bool:
    parts = ast.walk(node)
    return any(
        isinstance(p, ast.JoinedStr) or (isinstance(p, ast.Constant) and isinstance(p.value, str))
        for p in parts
    )


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """(parent, field, place in it, node) of everything that may be changed: code, not words and not types."""

    def walk(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST) or _is_no_code(node):
                    continue
                yield parent, field, place, node
                yield from walk(node)

    yield from walk(tree)


def _is_no_code(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert | ast.Raise):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name in ("preset", "code")
    if isinstance(node, ast.ClassDef):
        return "Protocol" in map(ast.unparse, node.bases)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in ("__all__", "SPEC", "SIGNALS")
    called = node.func if isinstance(node, ast.Call) else None
    name = (
        called.id
        if isinstance(called, ast.Name)
        else called.attr
        if isinstance(called, ast.Attribute)
        else ""
    )
    return name in TEXT_ONLY


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of one file, in a fixed order."""
    return [mutant for mutant, _ in _mutated(path)]


def _mutated(path: Path, number: int | None = None) -> Iterator[tuple[Mutant, ast.Module | None]]:
    file = path.relative_to(ROOT).as_posix()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    scopes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    seen: Counter[tuple[str, str, str]] = Counter()
    count = 0
    for parent, field, place, node in list(sites(tree)):
        for changed in changes_of(node):
            before, after = _short(node, changed)
            line = getattr(node, "lineno", getattr(parent, "lineno", 0))
            around = [n for n in scopes if n.lineno <= line <= (n.end_lineno or 0)]
            scope = max(around, key=lambda n: n.lineno).name if around else "module"
            twin = seen[scope, before, after]
            seen[scope, before, after] += 1
            mutant = Mutant(file, line, scope, before, after, count, twin)
            if number is None:
                yield mutant, None
            elif number == count:
                _put(parent, field, place, changed)
                yield mutant, ast.fix_missing_locations(tree)
                return
            count += 1


def _put(parent: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def _short(node: ast.AST, changed: ast.AST) -> tuple[str, str]:
    texts = []
    for each in (node, changed):
        if isinstance(each, ast.If | ast.While):
            texts.append(f"{type(each).__name__.lower()} {ast.unparse(each.test)}")
        else:
            texts.append(" ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(each))).split()))
    return texts[0], texts[1]


# --- running ----------------------------------------------------------------------------------------------


class MutatedLoader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed syntax tree, everything else as ever."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The changed module's spec."""
        del path, target
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def create_module(self, spec: Any) -> Any:
        """The usual module."""
        del spec

    def exec_module(self, module: Any) -> None:
        """Run the changed code."""
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def tests_of(file: str, *, every: bool) -> list[str]:
    """Test files of a module: those named after it and the references; or ``every`` one of its package's."""
    name = Path(file).stem
    served = TASKS.get(name, ())
    found = _test_files((*served, *(() if served and not every else TESTS[file.rsplit("/", 1)[0]])))
    reference = "reference_rules" if name == "s2e" else "reference_steps"
    found.sort(key=lambda p: (reference not in p.stem, name not in p.stem))
    near = found if served else [p for p in found if name in p.stem or reference in p.stem]
    return [str(p) for p in (found if every or not near else near)]


def _test_files(places: tuple[str, ...]) -> list[Path]:
    found: list[Path] = []
    for path in dict.fromkeys(places):
        found += sorted((ROOT / path).glob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path]
    return list(dict.fromkeys(found))


def run_mutant(mutant: Mutant | None, tests: list[str], limit: float) -> str:
    """``killed``, ``slow`` or ``survived``, from a forked process that imports the changed module."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 3
        with contextlib.suppress(BaseException):
            code = _in_child(mutant, tests)
        os._exit(code)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "slow"


def _in_child(mutant: Mutant | None, tests: list[str]) -> int:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    if mutant is not None:
        path = ROOT / mutant.file
        _, tree = next(_mutated(path, mutant.number))
        assert tree is not None
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        sys.meta_path.insert(0, MutatedLoader(name, path, tree))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--noconftest"]
    options += ["--rootdir", str(ROOT), "-W", "ignore"]
    return int(pytest.main([*options, *tests]))


def preload() -> None:
    """Import what is heavy and never mutated, once, so that forks start at once."""
    for name in (
        "torch",
        "torch.func",
        "numpy",
        "pandas",
        "scipy.stats",
        "scipy.integrate",
        "sklearn.mixture",
    ):
        importlib.import_module(name)
    for name in (
        "sklearn.datasets",
        "optuna",
        "cmaes",
        "hypothesis",
        "pytest",
        "torch._dynamo",
        "torchvision",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import torch

    torch.set_num_threads(1)


def main() -> None:
    """Run what has no verdict yet, then write the page."""
    options = _options()
    place = RESULTS / f"mutation{options.part}.json"
    mutants = all_mutants()
    keys = {m.key for m in mutants}
    known: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    known = {key: verdict for key, verdict in known.items() if key in keys}
    todo = [m for m in mutants if re.search(options.module, m.file)]
    if options.again:
        todo = [
            m for m in todo if m.key not in EXPLAINED and known.get(m.key, {}).get("verdict") in NOT_KILLED
        ]
    else:
        if options.sample:
            random.Random(options.seed).shuffle(todo)
            todo = todo[: options.sample]
        todo = [m for m in todo if m.key not in known]
    if not options.page:
        _run(todo, known, place, every=options.again, limit=options.seconds)
    (RESULTS / "mutation.md").write_text(page(known), encoding="utf-8")


def _run(todo: list[Mutant], known: dict[str, Any], place: Path, *, every: bool, limit: float) -> None:
    preload()
    sound: set[tuple[str, ...]] = set()
    for done, mutant in enumerate(todo, start=1):
        tests = tests_of(mutant.file, every=every)
        if tuple(tests) not in sound:
            if run_mutant(None, tests, 10 * limit) != "survived":
                raise SystemExit(f"These fail without any change: {' '.join(tests)}")
            sound.add(tuple(tests))
        began = time.monotonic()
        verdict = "survived" if mutant.key in EXPLAINED else run_mutant(mutant, tests, limit)
        known[mutant.key] = known.get(mutant.key, {"first": verdict}) | {"verdict": verdict}
        place.write_text(json.dumps(known, indent=0, sort_keys=True, ensure_ascii=False) + "\n")
        print(f"{done}/{len(todo)} {time.monotonic() - began:5.1f} s {verdict:9} {mutant.key}", flush=True)


def all_mutants() -> list[Mutant]:
    """Of every module that trains."""
    files = sorted({path for pattern in MODULES for path in ROOT.glob(pattern)})
    left_alone = ("__init__", "config", "regression_config")
    files = [path for path in files if path.stem not in left_alone or path.match("engines/shared/*")]
    return [mutant for path in files for mutant in mutants_of(path)]


def page(known: dict[str, Any]) -> str:
    """Score and first look by package, and every survivor."""
    mutants = {m.key: m for m in all_mutants()}
    lines = [
        "# Mutation score of what trains",
        "",
        "One small change of the code at a time (`make mutate`, qa/mutation.py), drawn at random, all changes",
        "alike; a score of few says little about the rest. Killed: a test fails. Slow: the tests did not end in",
        "time, which counts as not killed.",
        "",
        "First look: by the literal references and the tests named after its module, as they were when the change",
        "was drawn. By now: by all tests of its package (`--again`), also those written since for what survived.",
        "",
        "| package | changes | tried | killed at first look | killed by now | change nothing | survive |",
        "|---|---|---|---|---|---|---|",
    ]
    packages = sorted({m.file.rsplit("/", 1)[0] for m in mutants.values()})
    for package in [*packages, ""]:
        inside = {key for key, m in mutants.items() if package in ("", m.file.rsplit("/", 1)[0])}
        counts = (len(inside), *counted(inside, known, EXPLAINED.keys()))
        lines.append(f"| {package or 'all'} | {' | '.join(map(str, counts))} |")
    lines += ["", "## Survivors", ""]
    for key in sorted(known.keys() - EXPLAINED.keys(), key=lambda k: (mutants[k].file, mutants[k].line)):
        if known[key]["verdict"] in NOT_KILLED:
            slow = " (slow)" if known[key]["verdict"] == "slow" else ""
            lines.append(f"- {mutants[key].file}:{mutants[key].line} `{mutants[key].change}`{slow}")
    lines += ["", "## Change nothing", ""]
    lines += [f"- `{key}`: {EXPLAINED[key]}" for key in mutants if key in EXPLAINED]
    return "\n".join(lines) + "\n"


def counted(inside: Set[str], known: dict[str, Any], explained: Set[str]) -> tuple[int, int, int, int, int]:
    """Of the mutants ``inside``: tried, killed at first look, killed by now, without any effect, surviving."""
    tried = {key: verdict for key, verdict in known.items() if key in inside}
    first, now = (
        {key for key, verdict in tried.items() if verdict[when] == "killed"} for when in ("first", "verdict")
    )
    nothing = tried.keys() & explained - now
    return len(tried), len(first), len(now), len(nothing), len(tried) - len(now) - len(nothing)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--module", default="", help="only modules whose path matches this")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn at random; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--seconds", type=float, default=180.0, help="limit of one mutant")
    parser.add_argument(
        "--again", action="store_true", help="only (all) survivors, against all tests of their package"
    )
    parser.add_argument("--part", default="", help="a name for a results file of its own, to run two at once")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    return parser.parse_args()


if __name__ == "__main__":
    main()
