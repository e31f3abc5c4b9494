"""Features that a network learns from the images alone: the file, and what refuses it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.audits import self_supervised
from auditor.ground.errors import AuditFailedError
from tests.numbered import NUM, import_ages


def test_learn__writes_features_of_every_image(home: Path, tmp_path: Path) -> None:
    del home
    import_ages(tmp_path)
    out, heard = tmp_path / "ages.npy", []
    shape = self_supervised.learn(
        "ages", out, minutes=1e-4, device="cpu", progress=lambda at: heard.append(at.stage)
    )
    found = np.load(out)
    assert found.shape == shape == (NUM, 1, shape[2])
    assert np.isfinite(found).all()
    assert np.ptp(found, axis=0).max() > 0
    assert set(heard) == {"learning without labels"}
    with pytest.raises(AuditFailedError, match="exists; choose another name"):
        self_supervised.learn("ages", out, minutes=1)
    with pytest.raises(AuditFailedError, match=r"features are written as .npy; call it a.npy"):
        self_supervised.learn("ages", tmp_path / "a.csv", minutes=1)
