"""One self-contained HTML page about an audit: how many labels are wrong, what was done, and how that is known.

The page loads nothing: style and pictures are inline and a content policy forbids the rest. Everything that comes
from a user's files is escaped by the template engine. The caller supplies the data; nothing is read here.
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from numpy.typing import NDArray
from PIL import Image

from auditor.ground.wording import interval, percent
from auditor.results.comparison import Comparison
from auditor.results.progress import wrong_in_words
from auditor.results.statements import Move
from auditor.statistics import ClassReport, ErrorsLeft, NoiseRate, Promise, SplitReport

MAX_SUSPECTS = 60
"""Pictures on the page; more belong into the app."""
NUM_FIRST = 8
"""Of them those at the top of the page, that nobody decided on."""
PICTURE_SIZE, FIRST_SIZE = 144, 216
"""Longest side of a picture in pixels, and of those at the top; smaller ones are enlarged by whole factors."""
MAX_CORRECTIONS = 24
"""Pictures of what was found wrong."""
MAX_MOVES = 20
MAX_CONFLICTS = 60

SOURCES = (
    "Trust: a logarithmic pool of the engines' probabilities (Genest and Zidek 1986; Hinton 1999) with one matrix "
    "of what each class is given as, fitted to the given labels (Bootkrajang and Kaban 2012; Patrini 2017).",
    "Wrong-label promises: conformal p-values with Benjamini-Hochberg (Benjamini and Hochberg 1995; Bates, "
    "Candès, Lei, Romano and Sesia 2023).",
    "Intervals: Clopper and Pearson 1934; confidence sequences after Robbins 1970 and Waudby-Smith and Ramdas "
    "2020.",
    "Guessed rates without verified rows: confident joint (Northcutt, Jiang and Chuang 2021) and simpler counts.",
)
"""What the statements rest on; the engines' papers are added by the caller."""


@dataclass(frozen=True)
class EngineLine:
    """One engine as the report lists it."""

    title: str
    paper: str
    facts: str = ""
    """Preset, device, seconds, seed: whatever makes the run known."""


@dataclass(frozen=True)
class Conflict:
    """One of several samples that show the same picture, or nearly, under different labels."""

    group: int
    sample_id: int
    filepath: str
    given: str
    is_certain: bool
    """Another copy has the same pixels and another label."""


@dataclass(frozen=True, eq=False)
class Correction:
    """One label that a person found wrong."""

    sample_id: int
    filepath: str
    given: str
    right: str
    """What is right in its place, or what was decided, such as ``excluded``."""
    image: NDArray[np.uint8] | None = None
    """As that of a ``Suspect``."""


@dataclass(frozen=True, eq=False)
class Suspect:
    """One label on the page."""

    sample_id: int
    filepath: str
    given: str
    suggested: str
    trust_score: float
    odds: str
    """How likely its label is wrong, or how many engines say otherwise; empty where neither is known."""
    reason: str = ""
    decision: str = ""
    """As a person decided, ``keep`` or ``relabel → five``; empty while open."""
    image: NDArray[np.uint8] | None = None
    """(C, H, W) uint8, C in {1, 3}; None where it cannot be shown."""


@dataclass(frozen=True, eq=False)
class ReportInput:
    """Everything that the page says."""

    dataset_name: str
    created_at: str
    """Date and time as text."""
    class_names: Sequence[str]
    labels: str
    """What the labels are, such as ``10 classes``."""
    num_samples: int
    num_labeled: int
    num_verified: int
    noise_rate: NoiseRate
    promises: Sequence[Promise] = ()
    errors_left: ErrorsLeft | None = None
    num_checked: int = 0
    """Labels that a person looked at, at random or as suspects."""
    num_waiting: int = 0
    """Suspects that nobody has checked."""
    done: Mapping[str, int] = field(default_factory=dict)
    """What people did with those that they found wrong, such as ``relabeled``, and how often."""
    moves: Sequence[Move] = ()
    """Most labels first; at most ``MAX_MOVES`` are listed."""
    class_reports: Sequence[ClassReport] = ()
    splits: Sequence[SplitReport] = ()
    more_rows: str = ""
    """What checking more at random would tell, in a sentence."""
    correlations: Sequence[tuple[str, Sequence[float | None]]] = ()
    """Rank correlation of every engine, by title, with every one in the same order; None where nobody can tell."""
    annotators: Mapping[str, Any] | None = None
    """What several annotators' answers say (``annotated.answers_of_dataset``)."""
    comparison: Comparison | None = None
    """The newest one before and after cleaning, where there is any."""
    conflicts: Sequence[Conflict] = ()
    """Copies with different labels; at most ``MAX_CONFLICTS`` are listed."""
    error_probability_is_guess: bool = True
    is_of_parts: bool = False
    """Labels are of parts of the pictures, which are shown to their edges."""
    corrections: Sequence[Correction] = ()
    """At most ``MAX_CORRECTIONS`` are drawn."""
    suspects: Sequence[Suspect] = ()
    """Worst first; at most ``MAX_SUSPECTS`` are drawn."""
    engines: Sequence[EngineLine] = ()
    notes: Sequence[str] = field(default=())
    """Further sentences: weights, structured noise, disagreement, duplicates."""


@functools.cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("auditor.outputs"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["interval_in_words"] = interval
    environment.filters["percent"] = lambda share: percent(float(share))
    return environment.get_template("report.html.j2")


def report_html(report: ReportInput) -> str:
    """Return the whole page as text."""
    rate, corrections = report.noise_rate, report.corrections[:MAX_CORRECTIONS]
    above = {one.sample_id for one in corrections}
    suspects = [one for one in report.suspects if one.sample_id not in above]
    drawn = suspects[:MAX_SUSPECTS]
    first = [i for i, one in enumerate(drawn) if not one.decision and one.image is not None][:NUM_FIRST]
    top = min(1.0, max(0.01, 1.25 * rate.high))
    return _template().render(
        report=report,
        is_guess=rate.kind != "interval",
        wrong=wrong_in_words("labels", report.errors_left),
        is_unknown=rate.low <= 0 and rate.high >= 1,
        strip={"top": top} | {name: 100 * getattr(rate, name) / top for name in ("low", "point", "high")},
        first=[(drawn[i], picture_uri(drawn[i].image, FIRST_SIZE)) for i in first],
        suspects=[(one, picture_uri(one.image)) for i, one in enumerate(drawn) if i not in first],
        num_hidden=max(0, report.num_waiting - sum(not one.decision for one in drawn)),
        corrections=[(one, picture_uri(one.image)) for one in corrections],
        kept=[promise for promise in report.promises if promise.is_kept],
        moves=report.moves[:MAX_MOVES],
        conflicts=report.conflicts[:MAX_CONFLICTS],
        sources=SOURCES,
    )


def picture_uri(image: NDArray[np.uint8] | None, side: int = PICTURE_SIZE) -> str:
    """Return a picture as a PNG data URI, reduced or enlarged to about ``side``; empty without one.

    Args:
        image: (C, H, W) uint8, C in {1, 3}.
    """
    if image is None:
        return ""
    pixels = np.ascontiguousarray(image[0] if len(image) == 1 else np.moveaxis(image, 0, -1))
    picture = Image.fromarray(pixels)
    longest = max(picture.size)
    if longest > side:
        picture.thumbnail((side, side))
    else:
        factor = max(1, side // longest)
        picture = picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
