"""What holds of many rows read at once, on whichever database the catalog is."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.catalog import audits, bulk, datasets, scores
from auditor.catalog.db import session
from auditor.catalog.records import Audit, NewAudit, NewDataset
from auditor.catalog.scores import SuspectFilter
from auditor.review import decisions

NUM = 23
LABELS = [-1 if i == 5 else i % 3 for i in range(NUM)]
NUMBERS = [None if i % 4 == 0 else i / 7 for i in range(NUM)]
SPLITS = [None if i % 5 == 0 else ("train", "te'st")[i % 2] for i in range(NUM)]
GROUPS = [{2: 2, 5: 2, 8: 2, 3: 3, 7: 3, 6: 6, 9: 6}.get(i) for i in range(NUM)]
"""Of samples that show one picture: labels 2, none, 2; 0, 1; 0, 0."""


def fill() -> int:
    """A dataset of ``NUM`` samples behind one of two; its number."""
    rows = [
        {
            "sample_id": i,
            "filepath": f"{i}.png",
            "location": f"{i}.png",
            "given_label": LABELS[i],
            "number": NUMBERS[i],
            "trusted": i % 6 == 0,
            "split": SPLITS[i],
            "duplicate_group": GROUPS[i],
        }
        for i in range(NUM)
    ]
    with session() as open_session:
        for name, part in (("other", rows[:2]), ("many", rows)):
            dataset = NewDataset(
                name=name, source="s", source_kind="folder", root="/", num_samples=len(part), channels=1, height=8,
                width=8, class_names=["a", "b", "c"],
            )  # fmt: skip
            dataset_id = datasets.create(open_session, dataset, part)
    return dataset_id


def rank_them(dataset_id: int) -> Audit:
    """An audit of it whose ranking runs from the last sample to the first; sample 5 is judged by nobody."""
    trust = np.arange(NUM)[::-1] / NUM
    trust[5] = np.nan
    columns = {
        "rank": np.r_[np.arange(NUM - 1, 17, -1), np.arange(16, -1, -1), 22][np.r_[:5, 22, 5:22]],
        "given_label": np.array(LABELS),
        "trust_score": trust,
        "error_probability": 1 - trust,
        "is_label_issue": np.arange(NUM) > 15,
        "suggested_label": np.zeros(NUM, int),
        "suggested_probability": np.full(NUM, 0.25),
        "agreement": np.arange(NUM) % 3,
        "disagreement": np.arange(NUM) / NUM,
    }
    with session() as open_session:
        audit = NewAudit(
            dataset_id=dataset_id, status="finished", preset="quick", device="cpu", seed=0, engines=[]
        )
        audit_id = audits.create(open_session, audit, [])
        scores.store(open_session, audit_id, columns)
        return audits.get(open_session, audit_id)


def check_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are whole and in order, whatever the size of the parts that they are read in."""
    dataset_id = fill()
    for rows_a_part in (4, 50_000):
        monkeypatch.setattr(bulk, "ROWS_A_PART", rows_a_part)
        with session() as open_session:
            given = datasets.given_labels(open_session, dataset_id)
            assert (given.dtype, given.tolist()) == (np.int64, LABELS)
            expected = [np.nan if one is None else one for one in NUMBERS]
            np.testing.assert_array_equal(datasets.given_numbers(open_session, dataset_id), expected)
            trusted = datasets.trusted_in_source(open_session, dataset_id)
            assert (trusted.dtype, trusted.tolist()) == (np.bool_, [i % 6 == 0 for i in range(NUM)])
            assert datasets.splits(open_session, dataset_id).tolist() == SPLITS
            assert datasets.given_numbers(open_session, dataset_id + 1).shape == (0,)
            assert datasets.in_question(open_session, dataset_id, [0, 1, 5, 6, 7, 99]) == {1, 7}


def check_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a ranking are what the whole table holds; a count from what is kept is that of all rows."""
    dataset_id = fill()
    audit = rank_them(dataset_id)
    monkeypatch.setattr(bulk, "ROWS_A_PART", 4)
    monkeypatch.setattr(scores, "RANKS_A_STEP", 5)
    ids = np.array([1, 3, 5, 8, 13, 21])
    with session() as open_session:
        table = scores.table(open_session, audit.id)
        assert table.sample_id.tolist() == list(range(NUM))
        assert table.trust_score.isna().tolist() == [i == 5 for i in range(NUM)]
        assert scores.spread(open_session, audit.id, NUM, most=8).equals(table[::3].reset_index(drop=True))
        trust = scores.columns(open_session, audit.id, ["trust_score"])["trust_score"]
        np.testing.assert_array_equal(trust, table.trust_score.astype(np.float32))
        by_rank = table[table.sample_id.isin(ids)].sort_values("rank")[["sample_id", "rank"]].head(4)
        for keys in (300_000, 0):
            monkeypatch.setattr(scores, "KEYS_RATHER_THAN_RANKS", keys)
            found = scores.in_order(open_session, audit.id, ids, most=4)
            assert found.to_numpy().tolist() == by_rank.to_numpy().tolist()
        parted = table[table.agreement == 1].sort_values("disagreement", ascending=False).sample_id.head(3)
        assert scores.most_parted(open_session, audit.id, 2, 3).sample_id.tolist() == parted.tolist()
        halved = scores.most_parted(open_session, audit.id, 4, NUM).agreement.tolist()
        assert halved == sorted(halved, key=lambda votes: abs(2 * votes - 4))
    for sample_id in (5, 7, 21):
        decisions.decide(dataset_id, sample_id, "exclude", reviewer="ada")
    with session() as open_session:
        for where in (SuspectFilter(), SuspectFilter(given_label=1), SuspectFilter(sample_ids=(5, 7, 8))):
            whole = scores.count(open_session, audit, where)
            left = scores.count_undecided(open_session, audit, where, whole)
            assert left == scores.count(
                open_session, audit, SuspectFilter(**vars(where) | {"only_undecided": True})
            )
        by_rank = table.sort_values("rank").sample_id
        for where, expected in {
            SuspectFilter(only_decided=True): [one for one in by_rank if one in (5, 7, 21)],
            SuspectFilter(decided_by="ada"): [one for one in by_rank if one in (7, 21)],
            SuspectFilter(decided_by="bob"): [],
        }.items():
            found = scores.page(open_session, audit, where)
            assert found.sample_id.tolist() == expected
            assert scores.count(open_session, audit, where) == len(expected)
            rest = SuspectFilter(**vars(where) | {"after": int(table["rank"][7])})
            later = [one for one in expected if table["rank"][one] > table["rank"][7]]
            assert scores.page(open_session, audit, rest).sample_id.tolist() == later


def check_copies() -> None:
    """Only groups with several values are named, with all of their members."""
    dataset_id = fill()
    with session() as open_session:
        by_label = datasets.duplicates(open_session, dataset_id, differ_in="given_label")
        assert by_label.sample_id.tolist() == [3, 7]
        by_split = datasets.duplicates(open_session, dataset_id, differ_in="split")
        assert by_split.sample_id.tolist() == [6, 9]
