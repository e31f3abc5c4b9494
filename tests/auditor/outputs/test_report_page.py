"""The report on real digits: one page, no network, everything from a user's files is text."""

import base64
import io
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from auditor.ground.wording import interval, percent
from auditor.outputs.report_page import (
    MAX_CONFLICTS,
    MAX_MOVES,
    MAX_SUSPECTS,
    Conflict,
    Correction,
    EngineLine,
    ReportInput,
    Suspect,
    picture_uri,
    report_html,
)
from auditor.results.statements import Move
from auditor.statistics import NoiseRate, combine, part_intervals, trust_sentence
from auditor.statistics.rates.noise import (
    class_reports,
    errors_left,
    noise_rate_from_verified,
)
from auditor.statistics.rates.promises import promises
from auditor.statistics.rates.splits import SplitReport
from tests.auditor.statistics.worlds import World, make_witness

VOID = {"meta", "br", "img", "link", "hr", "input"}
NASTY = '<script>alert(1)</script>"&{{ 7 * 7 }}'


class Page(HTMLParser):
    """Checks that tags close in order and keeps attributes and text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def digits_report():
    images, true = load_digits(return_X_y=True)
    images = (images.reshape(-1, 1, 8, 8) * 15).astype(np.uint8)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(true)) < 0.1
    world = World(true, np.where(wrong, (true + 1) % 10, true), 10)
    verified = world.verify(300)
    found = combine([make_witness(world, n, 5.0) for n in "ab"], world.given_labels, 10, verified=verified)
    names = [f"digit {k}" for k in range(9)] + [NASTY]
    trust, suggested, shown = found.reading.trust_score, found.reading.other_label, found.calibrated
    rate = noise_rate_from_verified(world.given_labels, verified, found.guess)
    intervals = part_intervals(world.given_labels, verified, verified.is_wrong(world.given_labels), 10)
    worst = np.argsort(trust)[:12]
    return ReportInput(
        dataset_name=NASTY,
        created_at="2026-01-02 03:04",
        class_names=names,
        labels="10 classes",
        num_samples=len(true),
        num_labeled=len(true),
        num_verified=300,
        noise_rate=rate,
        promises=list(promises(trust, world.given_labels, verified).values()),
        errors_left=errors_left(rate, len(true), num_found_wrong=31, num_found_right=269),
        num_checked=300,
        done={"relabeled": 30, "excluded": 1},
        moves=[Move(9, 0, 3, 5, (4, 12)), Move(0, 1, 0, 2)],
        class_reports=class_reports(
            world.given_labels,
            shown.error_probability,
            shown.is_label_issue,
            10,
            intervals=intervals,
        ),
        suspects=[
            Suspect(
                sample_id=int(i),
                filepath=f"../{NASTY}/{i}.png",
                given=names[world.given_labels[i]],
                suggested=names[suggested[i]],
                trust_score=float(trust[i]),
                odds=f"{percent(float(shown.error_probability[i]))} likely wrong",
                reason="Both engines see something else.",
                image=images[i],
            )
            for i in worst
        ],
        engines=[EngineLine("Cross-entropy", "Plain training.", "quick, cpu, 12 s")],
        notes=[trust_sentence(found.weights, [])],
    )


def test_report_html__says_what_was_found(digits_report):
    html = report_html(digits_report)
    words = Page(html).words()
    for sentence in (
        digits_report.noise_rate.sentence,
        digits_report.errors_left.sentence,
        *(promise.sentence for promise in digits_report.promises if promise.is_kept),
        "Plain training.",
        "Clopper and Pearson 1934",
        "1,797 pictures",
        "Of those found 30 are relabeled, 1 excluded.",
    ):
        assert " ".join(sentence.split()) in words
    assert len(html) < 500_000


def test_report_html__loads_nothing_and_runs_nothing(digits_report):
    page = Page(report_html(digits_report))
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "base", "form"}
    for _, attrs in page.tags:
        assert not any(name.startswith("on") for name in attrs)
        assert attrs.get("src", "data:").startswith("data:image/png;base64,") or "src" not in attrs
        assert "href" not in attrs
        assert "url(" not in (attrs.get("style") or "")
    policy = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


def test_report_html__names_are_text(digits_report):
    html = report_html(digits_report)
    assert "<script>" not in html
    assert "49" not in Page(html).words().split("Label audit of")[1][:60]
    assert NASTY in Page(html).words()


def test_report_html__draws_the_real_pictures(digits_report):
    page = Page(report_html(digits_report))
    sources = [attrs["src"] for tag, attrs in page.tags if tag == "img"]
    assert len(sources) == 12
    picture = Image.open(io.BytesIO(base64.b64decode(sources[0].split(",")[1])))
    assert picture.size == (216, 216)
    small = np.asarray(picture)[::27, ::27]
    np.testing.assert_array_equal(small, digits_report.suspects[0].image[0])
    assert Image.open(io.BytesIO(base64.b64decode(sources[8].split(",")[1]))).size == (144, 144)


def test_report_html__the_share_and_what_waits_stand_first(digits_report):
    rate, (decided, *others) = digits_report.noise_rate, digits_report.suspects
    words = Page(
        report_html(replace(digits_report, suspects=[replace(decided, decision="keep"), *others]))
    ).words()
    head, rest = words.split("least trusted labels")
    assert rest.strip().startswith(f"{len(digits_report.suspects) - 8} pictures, 1 checked")
    assert f"{interval(rate.low, rate.high)} of the labels were wrong as given" in head
    assert f"#{decided.sample_id} " not in head
    assert f"#{decided.sample_id} " in rest
    assert f"#{others[0].sample_id} " in head
    assert f"#{others[0].sample_id} " not in rest


def test_report_html__what_was_found_wrong_comes_first_and_each_picture_once(digits_report):
    seen = digits_report.suspects
    found = [Correction(one.sample_id, NASTY, NASTY, "digit 3", one.image) for one in seen[:2]]
    page = Page(report_html(replace(digits_report, corrections=found)))
    assert sum(tag == "img" for tag, _ in page.tags) == len(seen)
    head, rest = page.words().split("The most suspicious that nobody checked")
    assert head.count(f"{NASTY} → digit 3") == 2
    assert "29 more were found wrong." in head
    assert f"#{seen[0].sample_id} " not in rest
    assert f"#{seen[2].sample_id} " in rest


def test_report_html__proofs_are_folded_and_what_they_prove_is_not(digits_report):
    html = report_html(digits_report)
    opened, folded = html.split('<div class="folds">')
    seen, proofs = (
        Page(f"<body>{one}</body>").words()
        for one in (opened.split("<body>")[1], folded.split("</div>\n</body>")[0])
    )
    assert digits_report.errors_left.sentence in seen
    assert "300 were drawn at random, and people checked each of them" in seen
    kept = [promise.sentence for promise in digits_report.promises if promise.is_kept]
    for said in [digits_report.noise_rate.sentence, *kept]:
        assert " ".join(said.split()) in proofs
        assert " ".join(said.split()) not in seen
    assert "Clopper and Pearson 1934" in proofs
    assert "<details open" not in folded
    assert ".fold::details-content" in opened.split("@media print")[1], "paper has no folds"


def test_report_html__what_nobody_knows_has_no_interval(digits_report):
    nothing = NoiseRate(0.0, 0.5, 1.0, "guess", "Judge a random sample to know.")
    words = Page(report_html(replace(digits_report, noise_rate=nothing))).words()
    assert "How many labels are wrong is not known yet" in words
    assert "Perhaps" not in words
    assert "Judge a random sample to know." in words


def test_report_html__a_guess_is_marked(digits_report):
    guess = replace(digits_report.noise_rate, kind="guess", sentence="A guess.")
    bare = replace(
        digits_report,
        noise_rate=guess,
        promises=(),
        errors_left=None,
        moves=(),
        class_reports=(),
        engines=(),
    )
    words = Page(report_html(bare)).words()
    assert "A guess." in words
    assert "Classes" not in words


def test_report_html__many_suspects_and_classes_stay_bounded(digits_report):
    many = replace(digits_report, suspects=list(digits_report.suspects) * 10, num_waiting=120)
    page = Page(report_html(many))
    assert sum(tag == "img" for tag, _ in page.tags) == MAX_SUSPECTS
    assert "120 suspects are not checked yet. Check them in the app" in page.words()
    assert "60 more to check are not drawn here." in page.words()
    words = Page(report_html(replace(digits_report, moves=list(digits_report.moves) * 20))).words()
    assert words.count(f"{NASTY} → digit 0 3 5 4 to 12") == MAX_MOVES / 2


def test_picture_uri__colour_large_and_none():
    colour = np.zeros((3, 300, 200), dtype=np.uint8)
    colour[0] = 250
    picture = Image.open(io.BytesIO(base64.b64decode(picture_uri(colour).split(",")[1])))
    assert (picture.mode, picture.size) == ("RGB", (96, 144))
    assert np.asarray(picture)[5, 5].tolist() == [250, 0, 0]
    assert picture_uri(None) == ""


def test_report_html__copies_correlations_and_splits_are_listed_and_escaped(digits_report):
    copies = [Conflict(1, i, NASTY, NASTY, is_certain=i == 0) for i in range(MAX_CONFLICTS + 1)]
    split = SplitReport(NASTY, 100, 12, 9.5, 3, None, 2, 1)
    told = replace(
        digits_report,
        conflicts=copies,
        correlations=[(NASTY, [1.0, None]), ("b", [None, 1.0])],
        splits=[split],
        more_rows="50 more rows",
    )
    page = Page(report_html(told))
    words = page.words()
    assert f"The first {MAX_CONFLICTS} of {MAX_CONFLICTS + 1}." in words
    assert words.count("yes: one label is wrong") == 1
    assert "How alike the engines rank: rank correlation" in words
    assert "2 (and 1 near copies)" in words
    assert "50 more rows" in words
    assert not any(tag == "script" for tag, _ in page.tags)
