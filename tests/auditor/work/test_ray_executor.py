"""Which files go to an object store and when; what needs a cluster is in ``tests/scale``."""

from __future__ import annotations

from pathlib import Path

from auditor.work.kinds import Layout, Train
from auditor.work.ray_executor import _Sent
from auditor.work.storage import Storage


def test_sent__features_go_up_once_for_the_layout_and_the_trainings(tmp_path: Path) -> None:
    features, place = tmp_path / "features.npy", tmp_path / "store"
    features.write_bytes(b"numbers")
    storage = Storage(str(place))
    layout = Layout(features=str(features), out=str(tmp_path / "layout"), draws="umap")
    training = Train(
        name="umn",
        engine="umn",
        config={},
        num_classes=2,
        inputs=str(features),
        features=str(features),
        out=str(tmp_path / "umn"),
        checkpoint=str(tmp_path / "umn.checkpoint"),
    )

    sent = _Sent(layout, storage)
    sent.message()
    (stored,) = place.glob("inputs/*")
    sent.forget_inputs()
    assert stored.read_bytes() == b"numbers"

    sent = _Sent(training, storage)
    sent.message()
    assert list(place.glob("inputs/*")) == [stored]
    sent.forget_inputs()
    assert not stored.exists()
