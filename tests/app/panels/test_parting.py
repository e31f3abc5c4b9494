"""What each engine says of a picture, in words and squares."""

from __future__ import annotations

from app.panels import parting

NAMES = ["cat", "dog", "a*b"]


def test_vote_in_words__counts_who_contradicts_and_names_everybody_by_class() -> None:
    votes = [("A", 0), ("B", 1), ("C", 1), ("D", 2), ("E", 0)]
    count, *lines = parting.vote_in_words(votes, 0, 1, NAMES).split("  \n")
    assert count == "**3 of 5 say wrong** :blue[■■]:violet[■]:orange[■■]", "those that say right come last"
    assert lines == [":blue[**dog**] B · C", ":violet[**a\\*b**] D", ":orange[**cat**] A · E"]
    assert parting.vote_in_words(votes[:2], 0, 1, NAMES).startswith("**1 of 2 says wrong**")
