"""The consensus of several answers: against a literal version of its model, and on answers drawn from it."""

import numpy as np
import pytest

from auditor.ground.errors import AuditFailedError
from auditor.statistics.annotators import Answers, agreement, consensus, gains_of_one_more, whom_to_ask
from auditor.statistics.annotators.consensus import _posterior, _soft_counts

CLASSES = 4


def drawn(
    num_rows: int, skills: list[float], answers_a_row: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(N,) truth and (N, M) answers of annotators who are right with probability ``skills`` whatever the class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, CLASSES, num_rows)
    table = np.tile(truth[:, None], len(skills))
    wrong = rng.random(table.shape) >= np.array(skills)
    table = np.where(wrong, (table + rng.integers(1, CLASSES, table.shape)) % CLASSES, table)
    for row in table:
        row[rng.permutation(len(skills))[answers_a_row:]] = -1
    return truth, table


def test_of__takes_answers_in_any_order_and_the_last_of_an_annotator() -> None:
    columns = (np.array([2, 0, 0, 2]), np.array([1, 1, 0, 1]), np.array([3, 2, 1, 0]))
    found = Answers.of(*columns, 3, 2, CLASSES)
    assert found.rows.tolist() == [0, 0, 2]
    assert found.annotators.tolist() == [0, 1, 1]
    assert found.labels.tolist() == [1, 2, 0]
    assert found.majority().tolist() == [1, -1, 0]


def test_posterior_and_counts__are_the_literal_ones() -> None:
    _, table = drawn(30, [0.9, 0.6, 0.7], 2)
    answers = Answers.of_table(table, CLASSES)
    rng = np.random.default_rng(1)
    transitions = rng.dirichlet(np.ones(CLASSES), (3, CLASSES))
    prior = np.log(rng.dirichlet(np.ones(CLASSES), 30))
    weights = rng.random(len(answers.rows))
    shares, likelihood = _posterior(answers, prior, transitions, weights)
    counts = np.zeros((3, CLASSES, CLASSES))
    for row in range(30):
        joint = np.exp(prior[row])
        for place in np.flatnonzero(answers.rows == row):
            said = transitions[answers.annotators[place], :, answers.labels[place]]
            joint = joint * said ** weights[place]
        np.testing.assert_allclose(likelihood[row], np.log(joint.sum()))
        np.testing.assert_allclose(shares[row], joint / joint.sum())
        for place in np.flatnonzero(answers.rows == row):
            for true in range(CLASSES):
                counts[answers.annotators[place], true, answers.labels[place]] += shares[row, true]
    np.testing.assert_allclose(_soft_counts(answers, shares), counts)


def test_consensus__of_drawn_answers_finds_skills_and_is_as_sure_as_it_is_right() -> None:
    skills = [0.95, 0.9, 0.6, 0.8, 0.7]
    truth, table = drawn(2_000, skills, 3)
    answers = Answers.of_table(table, CLASSES)
    found = consensus(answers, usual=0.0)
    right = found.labels == truth
    assert right.mean() > (answers.majority() == truth).mean() + 0.02
    assert found.probability().mean() == pytest.approx(right.mean(), abs=0.015)
    assert ((found.quality_low <= skills) & (skills <= found.quality_high)).sum() >= 4
    assert np.abs(found.quality - skills).max() < 0.05
    assert np.abs(np.einsum("mkk->mk", found.transitions).mean(axis=1) - skills).max() < 0.05
    assert np.nanmax(found.dependence) < 0.1


def test_consensus__with_what_is_known_of_the_pictures_is_better() -> None:
    truth, table = drawn(1_000, [0.7, 0.7, 0.7], 2)
    rng = np.random.default_rng(3)
    seen = np.where(rng.random(1_000) < 0.8, truth, rng.integers(0, CLASSES, 1_000))
    opinion = np.full((1_000, CLASSES), 0.05) + 0.8 * np.eye(CLASSES)[seen]
    opinion[:50] = np.nan
    answers = Answers.of_table(table, CLASSES)
    alone, both = consensus(answers), consensus(answers, opinion)
    assert (both.labels == truth).mean() > (alone.labels == truth).mean() + 0.05
    assert both.weight > 0.5
    assert alone.weight == 0


def test_consensus__counts_an_annotator_and_who_copies_him_once() -> None:
    truth, table = drawn(1_500, [0.7, 0.75, 0.75, 0.75], 4)
    copied = np.column_stack([table, table[:, 0]])
    found = consensus(Answers.of_table(copied, CLASSES))
    apart = consensus(Answers.of_table(table, CLASSES))
    assert found.dependence[0, 4] > 0.6
    assert np.nanargmax(found.dependence) in (4, 20)
    majority = (Answers.of_table(copied, CLASSES).majority() == truth).mean()
    assert (found.labels == truth).mean() > majority + 0.01
    assert (found.labels == truth).mean() > (apart.labels == truth).mean() - 0.02


def test_consensus__of_a_picture_that_nobody_answered_is_none() -> None:
    _, table = drawn(50, [0.9, 0.8], 2)
    table[7] = -1
    found = consensus(Answers.of_table(table, CLASSES))
    assert found.labels[7] == -1
    assert np.isnan(found.probability()[7])


def test_consensus__says_what_is_wrong_with_its_input() -> None:
    answers = Answers.of_table(np.array([[0, 1]]), CLASSES)
    with pytest.raises(AuditFailedError, match=r"the opinion is \(2, 4\), expected \(1, 4\)"):
        consensus(answers, np.ones((2, 4)))
    with pytest.raises(AuditFailedError, match="no answers"):
        consensus(Answers.of_table(np.full((2, 2), -1), CLASSES))


def test_gains__are_those_of_asking_and_looking() -> None:
    _, table = drawn(200, [0.9, 0.6, 0.8], 2)
    answers = Answers.of_table(table, CLASSES)
    found = consensus(answers)
    gains = gains_of_one_more(found)
    usual = sum(n * t for n, t in zip(found.num_answers, found.transitions, strict=True)) / len(answers.rows)
    for row in range(0, 200, 20):
        expected = sum((found.probs[row] * usual[:, said]).max() for said in range(CLASSES))
        assert gains[row] == pytest.approx(max(expected - found.probs[row].max(), 0), abs=1e-6)
    row = int(gains.argmax())
    asked = whom_to_ask(found, answers, row)
    assert asked is not None
    assert table[row, asked[0]] == -1
    assert whom_to_ask(found, Answers.of_table(np.zeros((200, 3), int), CLASSES), row) is None


def test_agreement__is_krippendorffs_from_all_pairs() -> None:
    _, table = drawn(60, [0.9, 0.7, 0.8], 2)
    table[3, :] = [-1, 2, -1]
    found = agreement(Answers.of_table(table, CLASSES))

    def literal(values: np.ndarray) -> float:
        pairs = []
        for row in values:
            told = row[row >= 0]
            pairs += [
                (told[i] != told[j], 1 / (len(told) - 1))
                for i in range(len(told))
                for j in range(len(told))
                if i != j
            ]
        told = np.concatenate([row[row >= 0] for row in values if (row >= 0).sum() > 1])
        seen = sum(share for unlike, share in pairs if unlike) / len(told)
        chance = (told[:, None] != told[None]).sum() / (len(told) * (len(told) - 1))
        return 1 - seen / chance

    assert found.alpha == pytest.approx(literal(table))
    assert found.num_rows == 59
    for k in range(CLASSES):
        assert found.by_class[k] == pytest.approx(literal(np.where(table < 0, -1, table == k)))
