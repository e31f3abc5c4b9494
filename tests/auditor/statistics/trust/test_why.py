"""Sentences that a reviewer reads, word for word."""

import pytest

from auditor.statistics.trust.why import engine_sentence, headline

NAMES = ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("given", "votes", "sentence"),
    [
        (0, [1, 1, 1], "All 3 engines see 'dog' where the label says 'cat'."),
        (0, [1, 1, 0], "2 of 3 engines see 'dog' where the label says 'cat'; 1 agrees with the label."),
        (0, [0, 0, 1], "2 of 3 engines see 'cat' as labeled, 1 something else."),
        (0, [1, 1], "Both engines see 'dog' where the label says 'cat'."),
        (0, [0, 0, -1], "Both engines see 'cat' as labeled."),
        (-1, [2, 2, 2], "All 3 engines see 'owl'; the sample has no label."),
        (1, [-1], "No engine predicts a class for this sample."),
        (1, [2], "w0 sees 'owl' where the label says 'dog'."),
    ],
)
def test_headline__says_who_sees_what(given, votes, sentence):
    assert headline(given, [(f"w{i}", vote) for i, vote in enumerate(votes)], NAMES) == sentence


def test_headline__says_why_another_class_than_the_seen_one_is_suggested():
    both = [("one", 1), ("two", 1)]
    plain = "Both engines see 'dog' where the label says 'cat'."
    assert headline(0, both, NAMES, 1) == headline(0, both, NAMES, -1) == plain
    assert headline(0, both, NAMES, 2) == (
        f"{plain} 'owl' is suggested by all probabilities and by how often each class is labeled 'cat'."
    )
    assert headline(1, both, NAMES, 2) == "Both engines see 'dog' as labeled."


def test_headline__a_class_name_is_only_text():
    names = ["<b>cat</b>", "{dog}", "%s"]
    assert "'{dog}' where the label says '<b>cat</b>'" in headline(0, [("one", 1), ("two", 1)], names)


def test_engine_sentence__counts_the_epochs_that_dropped_it():
    sentence = engine_sentence(
        given="cat",
        predicted="dog",
        probability=0.83,
        history={"selected": [1.0, 0.0, float("nan"), 0.0]},
    )
    assert sentence == "prefers 'dog' to 'cat' (strong evidence); dropped it in 2 of 3 recorded epochs."
    assert (
        engine_sentence(given=None, predicted="dog", probability=0.5, history={})
        == "sees 'dog' (some evidence); there is no label to judge."
    )
    assert (
        engine_sentence(given="cat", predicted="cat", probability=0.3, history={})
        == "agrees with 'cat' (weak evidence)."
    )
