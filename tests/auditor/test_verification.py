"""Random draws, blind verdicts, and what they allow to be said."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from auditor import consensus, promises, reviewing, verification
from auditor.catalog import verifications
from auditor.catalog.db import session
from auditor.catalog.models import DrawTable
from auditor.errors import AuditorError, VerificationError
from auditor.evidence import NO_CLASS, UNSURE
from tests.helpers import Digits


def judge(digits: Digits, size: int = 100) -> verification.DrawTable:
    draw = verification.draw("digits", size, seed=0)
    for sample_id in draw.sample_ids:
        label = int(digits.true_labels[sample_id])
        verification.record(draw.id, sample_id, "label", label=label, reviewer="ada")
    return draw


def test_draw__same_seed_same_samples_and_draws_never_overlap(audited: tuple[Digits, int]) -> None:
    first = verification.draw("digits", 50, seed=0)
    second = verification.draw("digits", 50, seed=0)
    assert len(set(first.sample_ids) | set(second.sample_ids)) == 100


def test_draw__refuses_more_than_there_are(audited: tuple[Digits, int]) -> None:
    with pytest.raises(VerificationError, match="301 samples cannot be drawn; 300 labeled"):
        verification.draw("digits", 301)


def test_standing__holds_the_latest_verdict(audited: tuple[Digits, int]) -> None:
    draw = verification.draw("digits", 4, seed=0)
    a, b, c, _ = draw.sample_ids
    verification.record(draw.id, a, "label", label=2, reviewer="ada")
    verification.record(draw.id, a, "label", label=3, reviewer="ada")
    verification.record(draw.id, b, "exclude", reviewer="ada")
    verification.record(draw.id, c, "unsure", reviewer="ada")
    found = verification.standing(1)
    assert found.sample_ids.tolist() == [a, b, c]
    assert found.true_labels.tolist() == [3, NO_CLASS, UNSURE]
    assert found.calibrates.tolist() == [True, False, True]
    assert found.is_watched
    verification.undo(draw.id, a, reviewer="ada")
    assert verification.standing(1).sample_ids.tolist() == [b, c]
    assert (draw.id, a) in verification.pending(1)


def test_record__a_suspect_cannot_be_smuggled_in(audited: tuple[Digits, int]) -> None:
    draw = verification.draw("digits", 4, seed=0)
    outsider = next(i for i in range(300) if i not in draw.sample_ids)
    with pytest.raises(VerificationError, match="not part of draw"):
        verification.record(draw.id, outsider, "label", label=1, reviewer="ada")


def test_reviews_of_suspects_are_never_counted_as_random(audited: tuple[Digits, int]) -> None:
    reviewing.decide(1, 5, "exclude", reviewer="ada")
    assert verification.standing(1).size == 0


def test_promises__realised_rate_and_interval(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    judge(digits, 150)
    consensus.settle(audit_id)
    standing = promises.load(audit_id)
    rate = promises.noise_rate(standing)
    assert rate.kind == "interval"
    assert rate.low <= 0.10 <= rate.high
    at_20 = promises.promises(standing)[0.20]
    assert not at_20.flags[standing.verified.sample_ids].any()
    if at_20.is_kept:
        assert (~digits.is_wrong[at_20.flags]).mean() <= 0.5


def test_promises__without_verified_rows_nothing_is_promised(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    promise = promises.promise(audit_id, 0.1)
    assert not promise.is_kept
    assert "Nothing can be promised without verified rows" in promise.sentence
    assert promises.noise_rate(promises.load(audit_id)).kind == "guess"


def test_statements__found_errors_come_from_reviews_and_verdicts(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    draw = judge(digits, 60)
    wrong_drawn = int(digits.is_wrong[draw.sample_ids].sum())
    outside = [i for i in np.flatnonzero(digits.is_wrong) if i not in draw.sample_ids][:3]
    for sample_id in outside:
        reviewing.decide(1, int(sample_id), "exclude", reviewer="ada")
    found = promises.statements(promises.load(audit_id))
    assert found.errors_left.found == wrong_drawn + 3
    assert len(found.classes) == 10


def test_csv__round_trip(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    draw = verification.draw("digits", 30, seed=3)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"suggested_label", "trust_score"}.isdisjoint(rows[0])  # the judge stays blind
    for row in rows[:20]:
        row["verdict_label"] = str(digits.true_labels[int(row["sample_id"])])
    rows[20]["verdict_label"] = "exclude"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert verification.apply_csv("digits", path, reviewer="ada") == {"judged": 21, "not judged": 9}
    verification.apply_csv("digits", path, reviewer="ada")
    found = verification.standing(1)
    assert found.size == 21
    assert found.is_wrong(digits.given_labels).sum() == digits.is_wrong[draw.sample_ids[:20]].sum() + 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,{inside},x,0,seven", "row 2: 'seven' is none of the classes"),
        ("1,{outside},x,0,7", "was not drawn in draw 1"),
        ("one,{inside},x,0,7", "must be the numbers"),
    ],
)
def test_apply_csv__refuses_the_whole_file(
    audited: tuple[Digits, int], tmp_path: Path, row: str, message: str
) -> None:
    draw = verification.draw("digits", 5, seed=3)
    outside = next(i for i in range(300) if i not in draw.sample_ids)
    path = tmp_path / "sample.csv"
    head = "draw_id,sample_id,filepath,given_label,verdict_label\n"
    path.write_text(head + row.format(inside=draw.sample_ids[0], outside=outside) + "\n")
    with pytest.raises(AuditorError, match=message):
        verification.apply_csv("digits", path, reviewer="ada")
    assert verification.standing(1).size == 0


def test_noise_rate__rows_from_the_top_of_the_list_are_refused(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    trust = promises.load(audit_id).trust_score
    top = np.argsort(trust)[:60]
    with session() as open_session:
        drawn = verifications.add_draw(
            open_session, DrawTable(dataset_id=1, seed=0, size=60, sample_ids=[int(i) for i in top])
        )
    for sample_id in top:
        label = int(digits.true_labels[sample_id])
        verification.record(drawn, int(sample_id), "label", label=label, reviewer="ada")
    standing = promises.load(audit_id)
    rate = promises.noise_rate(standing)
    assert rate.kind == "guess"
    assert "cannot be a random sample" in rate.sentence
    assert not any(promise.is_kept for promise in promises.promises(standing).values())


def test_standing__an_enlarged_sample_is_a_watched_one(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    judge(digits, 20)
    assert not verification.standing(1).is_watched
    judge(digits, 20)
    assert verification.standing(1).is_watched
