"""The benchmark of promises on a world whose answer is known."""

import numpy as np


def test_measure__a_head_finds_more_with_as_many_looks():
    from benchmarks.promises import measure  # with Matplotlib, which only the process that runs this needs

    rng = np.random.default_rng(0)
    truth = rng.integers(10, size=2_000)
    wrong = rng.random(2_000) < 0.08
    given = np.where(wrong, (truth + 1) % 10, truth)
    trust = rng.normal(size=2_000) - 3.5 * wrong
    uniform, head = (
        measure(trust, given, truth, kind, 20, guessed=0.08, looks=(60, 200)) for kind in ("uniform", "head")
    )
    assert head["by_looks"]["60"]["0.10"]["recall"] > uniform["by_looks"]["60"]["0.10"]["recall"] + 0.2
    assert head["by_looks"]["60"]["wrong_among_looks"] > 2 * uniform["by_looks"]["60"]["wrong_among_looks"]
    assert head["looks_needed"]["0.20"] == 60
    assert uniform["looks_needed"]["0.05"] is None
    assert head["by_looks"]["200"]["0.10"]["false_share"] <= 0.12
    assert head["interval"]["covered"] >= 0.9
