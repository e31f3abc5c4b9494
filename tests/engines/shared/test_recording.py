"""The recorder: order of events, even thinning, and going on after a kill."""

from __future__ import annotations

import numpy as np
import pytest

from engines.contract import MAX_SNAPSHOTS, EpochRecord
from engines.shared.checkpoint import deserialize_state, serialize_state
from engines.shared.recording import Recorder


def _record(recorder: Recorder, epochs: range, total: int) -> None:
    for epoch in epochs:
        recorder.epoch("train", epoch, total, {"loss": 1 / (epoch + 1)}, {}, {"rank": np.full(3, epoch)})


def test_epoch__saves_before_anyone_hears_of_it() -> None:
    events: list[str] = []
    recorder = Recorder(lambda record: events.append(f"heard {record.epoch}"), 3, 2)

    def save() -> None:
        events.append(f"saved {len(recorder.history)}")

    for epoch in range(2):
        recorder.epoch("train", epoch, 2, {}, {}, save=save)
    assert events == ["saved 1", "heard 0", "saved 2", "heard 1"]


def test_epoch__progress_and_plain_numbers() -> None:
    heard: list[EpochRecord] = []
    recorder = Recorder(heard.append, 3, 4)
    for epoch in range(4):
        recorder.epoch("train", epoch, 4, {"loss": np.float32(1)}, {"keep_rate": np.float64(0.5)})
    assert [record.progress for record in heard] == [0.25, 0.5, 0.75, 1.0]
    assert type(heard[0].losses["loss"]) is type(heard[0].metrics["keep_rate"]) is float
    assert recorder.seconds == sum(record.seconds for record in heard) > 0


def test_epoch__more_epochs_than_planned_stay_at_one() -> None:
    recorder = Recorder(None, 3, 1)
    for epoch in range(3):
        recorder.epoch("train", epoch, 3, {}, {})
    assert [record.progress for record in recorder.history] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("total", [1, 2, 49, 50, 51, 99, 100, 101, 200, 1000])
def test_signal_history__even_bounded_first_and_last(total: int) -> None:
    recorder = Recorder(None, 3, total)
    _record(recorder, range(total), total)
    kept = recorder.signal_history["rank"][:, 0].astype(int)
    assert len(kept) <= MAX_SNAPSHOTS
    assert len(kept) >= min(total, MAX_SNAPSHOTS // 2)
    assert (kept[0], kept[-1]) == (0, total - 1)
    steps = np.diff(kept)
    assert len(set(steps[:-1])) <= 1  # even, but for the step to the last epoch
    assert (steps > 0).all()


def test_signal_history__shape_and_type() -> None:
    recorder = Recorder(None, 3, 2)
    assert recorder.signal_history == {}
    _record(recorder, range(2), 2)
    history = recorder.signal_history["rank"]
    assert (history.shape, history.dtype) == ((2, 3), np.float16)


def test_epoch__heard_signals_are_those_recorded() -> None:
    heard: list[EpochRecord] = []
    recorder = Recorder(heard.append, 3, 120)
    _record(recorder, range(120), 120)
    assert heard[0].signals["rank"].tolist() == [0, 0, 0]
    assert sum(bool(record.signals) for record in heard) < 120
    assert not any(record.signals for record in recorder.history)


def test_epoch__float16_overflow_is_held_and_nan_stays() -> None:
    recorder = Recorder(None, 3, 1)
    recorder.epoch("train", 0, 1, {}, {}, {"loss": [1e9, -np.inf, np.nan]})
    assert recorder.signal_history["loss"][0, :2].tolist() == [65504, -65504]
    assert np.isnan(recorder.signal_history["loss"][0, 2])


def test_epoch__wrong_length_signal() -> None:
    with pytest.raises(ValueError, match=r"signal 'rank' is \(2,\), it must be \(3,\)"):
        Recorder(None, 3, 1).epoch("train", 0, 1, {}, {}, {"rank": np.zeros(2)})


@pytest.mark.parametrize("stop", [1, 49, 50, 51, 73, 119])
def test_state_dict__resumed_history_is_the_uninterrupted_one(stop: int) -> None:
    whole, first = Recorder(None, 3, 120), Recorder(None, 3, 120)
    _record(whole, range(120), 120)
    _record(first, range(stop), 120)
    second = Recorder(None, 3, 120)
    second.load_state_dict(deserialize_state(serialize_state(first.state_dict())))
    _record(second, range(stop, 120), 120)
    np.testing.assert_array_equal(second.signal_history["rank"], whole.signal_history["rank"])
    assert [(r.epoch, r.progress, r.losses) for r in second.history] == [
        (r.epoch, r.progress, r.losses) for r in whole.history
    ]
    assert second.history[0].seconds == first.history[0].seconds
