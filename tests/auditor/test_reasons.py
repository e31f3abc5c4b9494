"""Sentences that a reviewer reads, word for word."""

import numpy as np
import pytest

from auditor.estimates import ClassPair, ClassReport
from auditor.evidence import Witness
from auditor.reasons import engine_sentence, explain, headline
from auditor.trust import combine

NAMES = ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("given", "votes", "sentence"),
    [
        (0, [1, 1, 1], "All 3 witnesses see 'dog' where the label says 'cat'."),
        (0, [1, 1, 0], "2 of 3 witnesses see 'dog' where the label says 'cat'; 1 agrees with the label."),
        (0, [0, 0, 1], "2 of 3 witnesses see 'cat' as labeled, 1 something else."),
        (0, [0, 0, -1], "All 2 witnesses see 'cat' as labeled."),
        (-1, [2, 2, 2], "All 3 witnesses see 'owl'; the sample has no label."),
        (1, [-1], "No witness predicts a class for this sample."),
        (1, [2], "w0 sees 'owl' where the label says 'dog'."),
    ],
)
def test_headline__says_who_sees_what(given, votes, sentence):
    assert headline(given, [(f"w{i}", vote) for i, vote in enumerate(votes)], NAMES) == sentence


def tiny_audit():
    """Ten samples; number 3 says cat and both witnesses see a dog, number 9 has no label."""
    given = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, -1])
    seen = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    probs = np.full((10, 3), 0.1, dtype=np.float32)
    probs[np.arange(10), seen] = 0.8
    trust = np.where(given < 0, np.nan, probs[np.arange(10), np.maximum(given, 0)] + np.arange(10) / 100)
    opposed = np.where(np.arange(10) == 3, 1.0, trust)
    witnesses = [Witness("one", trust, probs), Witness("two", opposed, probs)]
    return witnesses, given, combine(witnesses, given, 3)


def test_explain__a_doubted_label():
    witnesses, given, consensus = tiny_audit()
    pair = ClassPair(0, 1, 5, 6, 0.1, 0.2, False)
    report = ClassReport(0, 4, 1, 1.0, None, True, "only 4 samples carry this label; at least 20 are needed")
    (reason,) = explain(
        consensus,
        witnesses,
        given,
        NAMES,
        [3],
        neighbors=np.array([[4, 5, 6, 0, 9]]),
        pairs=[pair],
        reports=[report],
        notes={3: "A duplicate carries another label."},
    )
    assert reason.sample_id == 3
    assert reason.headline == "All 2 witnesses see 'dog' where the label says 'cat'."
    text = reason.text
    assert "3 of its 4 most similar labeled samples are labeled 'dog'." in text
    assert "The witnesses part: two ranks it above 94 % of all labels, one above only 5.6 %." in text
    assert "'cat' and 'dog' are often exchanged here (11 doubtful labels)." in text
    assert "Beware: 'cat' cannot be judged from the labels (only 4 samples" in text
    assert "(a guess, nothing is verified)" in text
    assert text.endswith("A duplicate carries another label.")


def test_explain__keeps_the_order_asked_for_and_stays_short():
    witnesses, given, consensus = tiny_audit()
    last, first = explain(consensus, witnesses, given, NAMES, [9, 0])
    assert (last.sample_id, first.sample_id) == (9, 0)
    assert last.text == "All 2 witnesses see 'owl'; the sample has no label."
    assert first.headline == "All 2 witnesses see 'cat' as labeled."


def test_explain__a_class_name_is_only_text():
    witnesses, given, consensus = tiny_audit()
    names = ["<b>cat</b>", "{dog}", "%s"]
    (reason,) = explain(consensus, witnesses, given, names, [3])
    assert "'{dog}' where the label says '<b>cat</b>'" in reason.headline


def test_engine_sentence__counts_the_epochs_that_dropped_it():
    sentence = engine_sentence(
        given="cat",
        predicted="dog",
        probability=0.83,
        given_probability=0.04,
        history={"selected": [1.0, 0.0, float("nan"), 0.0]},
    )
    assert sentence == "prefers 'dog' (83 %) to 'cat' (4 %); dropped it in 2 of 3 recorded epochs."
    assert (
        engine_sentence(given=None, predicted="dog", probability=0.5, given_probability=None, history={})
        == "sees 'dog' (50 %); there is no label to judge."
    )
