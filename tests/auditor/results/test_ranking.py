"""The rest of a list is ranked anew while people review it."""

from __future__ import annotations

import csv
import json
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from app.server import bench
from auditor import api
from auditor.catalog import audits, reading, scores
from auditor.catalog.db import ask, session
from auditor.results import arrays, own_models, ranking, settle, statements
from auditor.review import decisions, drawing
from tests.auditor.conftest import Run
from tests.helpers import Digits, verify_truthfully


@pytest.fixture
def pooled(audited: tuple[Digits, int]) -> tuple[Digits, int]:
    """An audit with a witness that never learned from the label that it judges."""
    digits, audit_id = audited
    pixels = np.stack([_pixels(path) for path in sorted((digits.table.parent / "images").iterdir())])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # far from converged, as witnesses are
        model = LogisticRegression(max_iter=20, C=0.01)
        own_models.add(
            "digits",
            cross_val_predict(model, pixels, digits.given_labels, method="predict_proba"),
            name="mine",
        )
    settle.settle(audit_id)
    return digits, audit_id


def _pixels(path: Path) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(path), dtype=np.float64).ravel() / 16


def table_of(audit_id: int) -> pd.DataFrame:
    return ask(scores.table, audit_id).sort_values("sample_id", ignore_index=True)


def review(digits: Digits, audit_id: int, number: int) -> list[int]:
    """The most suspicious that nobody decided, by somebody who is always right."""
    table = table_of(audit_id).sort_values("rank")
    done = decisions.outcomes(1)
    ids = [int(one) for one in table.sample_id if one not in done][:number]
    for i in ids:
        label = int(digits.true_labels[i])
        decisions.decide(1, i, "relabel" if digits.is_wrong[i] else "keep", label=label, reviewer="ada")
    return ids


def test_after_verdicts__many_who_ask_at_once_rank_anew_once(pooled: tuple[Digits, int]) -> None:
    digits, audit_id = pooled
    review(digits, audit_id, 20)
    together = threading.Barrier(6)

    def ask_for_it(_: int) -> ranking.Moved | None:
        together.wait()
        return ranking.after_verdicts(audit_id)

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(ask_for_it, range(6)))
    assert sum(one is not None for one in found) == 1


def test_after_verdicts__twenty_rank_the_rest_anew_and_leave_what_is_decided(
    pooled: tuple[Digits, int],
) -> None:
    digits, audit_id = pooled
    seen = review(digits, audit_id, 19)
    assert ranking.after_verdicts(audit_id) is None
    seen += review(digits, audit_id, 1)
    before, was = table_of(audit_id), reading.audit(audit_id)
    moved = ranking.after_verdicts(audit_id)
    assert moved is not None
    assert moved.corrections == int(digits.is_wrong[seen].sum()) > 0
    assert ranking.after_verdicts(audit_id) is None  # nobody said anything since

    after, audit = table_of(audit_id), reading.audit(audit_id)
    pd.testing.assert_frame_equal(after.loc[seen], before.loc[seen])
    assert sorted(after["rank"]) == list(range(len(after)))
    rest = after.drop(index=seen).sort_values("rank")
    assert rest.trust_score.is_monotonic_increasing
    assert not before.drop(index=seen).loc[rest.index].trust_score.is_monotonic_increasing
    assert (rest.is_label_issue == (rest.trust_score < 0.5)).all()
    assert rest.error_probability.to_numpy() == pytest.approx(1 - rest.trust_score.to_numpy())
    assert audit.summary.num_label_issues == int(after.is_label_issue.sum())
    assert arrays.ranked_at(audit) != arrays.ranked_at(was)
    worst = arrays.worst_of(audit, np.arange(len(after)), most=300)
    assert worst["rank"].tolist() == after["rank"].loc[worst.sample_id].tolist()
    came = set(rest.sample_id.head(40)) - set(before.drop(index=seen).sort_values("rank").sample_id.head(40))
    assert moved.up == len(came)


def test_anew__what_a_random_draw_backs_does_not_move(pooled: tuple[Digits, int]) -> None:
    digits, audit_id = pooled
    verify_truthfully(digits, 80, purpose="promises")
    settle.settle(audit_id)
    standing = statements.load(audit_id)
    promised = {q: one.flags.tolist() for q, one in statements.promises(standing).items()}
    assert any(any(flags) for flags in promised.values())
    before, guess = table_of(audit_id), statements.noise_rate(standing)
    review(digits, audit_id, 20)
    assert ranking.after_verdicts(audit_id) is not None
    after, standing = table_of(audit_id), statements.load(audit_id)
    assert not after["rank"].equals(before["rank"])
    pd.testing.assert_frame_equal(after.drop(columns="rank"), before.drop(columns="rank"))
    assert {q: one.flags.tolist() for q, one in statements.promises(standing).items()} == promised
    assert statements.noise_rate(standing).point == guess.point
    head = drawing.draw("digits", 40, purpose="promises").head
    trust = after.trust_score.loc[head].to_numpy()
    assert np.all(np.diff(trust) > -1e-6)  # a further draw reads trust, not the order of the list


def test_anew__where_nothing_stands_out_the_order_moves_until_people_find_a_wrong_label(
    pooled: tuple[Digits, int],
) -> None:
    digits, audit_id = pooled
    with session() as open_session:
        summary = replace(audits.get(open_session, audit_id).summary, stands_out=False, num_label_issues=0)
        audits.change(open_session, audit_id, summary=summary)
        scores.change(open_session, audit_id, np.arange(300), {"is_label_issue": np.zeros(300, dtype=bool)})
    before = table_of(audit_id)
    right = before[~digits.is_wrong].sort_values("rank").sample_id.head(20).tolist()
    decisions.decide_many(1, [(i, "keep", None) for i in right], reviewer="ada", audit_id=audit_id)
    assert ranking.after_verdicts(audit_id) is not None
    after = table_of(audit_id)
    assert not after["rank"].equals(before["rank"])
    pd.testing.assert_frame_equal(after.drop(columns="rank"), before.drop(columns="rank"))
    review(digits, audit_id, 20)
    moved = ranking.after_verdicts(audit_id)
    with session() as open_session:
        summary = audits.get(open_session, audit_id).summary
    assert moved.corrections > 0
    assert summary.stands_out
    assert summary.num_label_issues == table_of(audit_id).is_label_issue.sum() > 0
    assert ranking.after_verdicts(audit_id) is None


def test_anew__every_surface_has_the_new_order(pooled: tuple[Digits, int], run: Run, tmp_path: Path) -> None:
    digits, audit_id = pooled
    path = tmp_path / "said.csv"
    seen = table_of(audit_id).sort_values("rank").head(25)
    rows = [(i, "relabel", int(digits.true_labels[i])) for i in seen.sample_id]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sample_id", "review_decision", "cleaned_label"])
        writer.writerows(rows)
    before = table_of(audit_id)["rank"]
    code, _, err = run("review", "digits", "--apply", path, "--reviewer", "ada")
    assert code == 0, err
    rank = table_of(audit_id)["rank"]
    assert not rank.equals(before)
    listed = json.loads(run("suspects", "digits", "--top", "60", "--json")[1])["suspects"]
    worst = rank.sort_values().index[:60].tolist()
    assert [row["sample_id"] for row in listed] == worst
    assert api.Dataset("digits").suspects(60).sample_id.tolist() == worst
    assert run("export", "digits", "--out", tmp_path / "out.csv")[0] == 0
    exported = pd.read_csv(tmp_path / "out.csv").set_index("sample_id")
    assert exported.trust_score.loc[worst].tolist() == pytest.approx(
        table_of(audit_id).trust_score.loc[worst].tolist(), abs=1e-5
    )
    queue = bench.queue({"audit": audit_id, "where": {"undecided": True}, "limit": 30})["items"]
    assert [one["sample"] for one in queue] == [i for i in worst if i not in set(seen.sample_id)][:30]


def test_progress__says_what_moved(pooled: tuple[Digits, int]) -> None:
    digits, audit_id = pooled
    asked = {"audit": audit_id, "where": {"undecided": True}, "reviewer": "ada", "since": 0}
    assert bench.progress(asked)["moved"] is None
    review(digits, audit_id, 20)
    said = bench.progress(asked)["moved"]
    assert said is not None
    assert bench.progress(asked)["moved"] is None


@pytest.mark.parametrize(
    ("corrections", "up", "sentence"),
    [
        (12, 9, "Your 12 corrections moved 9 new ones up."),
        (1, 1, "Your 1 correction moved 1 new one up."),
        (0, 2, "What you kept moved 2 new ones up."),
        (5, 0, ""),
    ],
)
def test_moved__says_it(corrections: int, up: int, sentence: str) -> None:
    assert ranking.Moved(corrections, up).sentence == sentence
