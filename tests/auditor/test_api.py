"""The product as a library: what a notebook sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import auditor
from auditor import consensus, own_predictions
from auditor.catalog import audits
from auditor.catalog.db import session
from auditor.errors import ImportRefusedError, NotFoundError
from tests.helpers import Digits, verify_truthfully


def test_suspects__as_few_as_asked_for_or_as_many_as_are_promised(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    photos = auditor.open("digits")
    assert photos.suspects(5).trust_score.is_monotonic_increasing
    assert len(photos.suspects()) == 300
    assert len(photos.suspects(max_fdr=0.5)) == 0
    assert "Nothing can be promised" in photos.suspects(max_fdr=0.5).attrs["statement"]
    verify_truthfully(digits, 150)
    consensus.settle(audit_id)
    promised = photos.suspects(max_fdr=0.5)
    assert 0 < len(promised) < 300
    assert promised.trust_score.is_monotonic_increasing
    assert promised.attrs["statement"].startswith(f"{len(promised)} labels flagged")
    assert photos.suspects(2, max_fdr=0.5).equals(promised.head(2))


def test_suspects_and_export__of_an_earlier_audit(audited: tuple[Digits, int], tmp_path: Path) -> None:
    photos = auditor.open("digits")
    assert len(photos.suspects(3, audit_id=audited[1])) == 3
    with pytest.raises(NotFoundError, match="77"):
        photos.suspects(audit_id=77)
    with pytest.raises(NotFoundError, match="77"):
        photos.export(tmp_path / "out.csv", audit_id=77)


def test_add_pred_probs__an_array_becomes_a_witness(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    photos = auditor.open("digits")
    probs = np.full((300, 10), 0.01)
    probs[np.arange(300), digits.true_labels] = 0.91
    assert photos.add_pred_probs(probs, name="my model") == own_predictions.Added("my model", 300, 300)
    consensus.settle(audit_id)
    with session() as open_session:
        assert "my model" in audits.get(open_session, audit_id).summary["witnesses"]
    with pytest.raises(ImportRefusedError, match=r"my model holds an array of shape \(300, 9\)"):
        photos.add_pred_probs(probs[:, :9], name="my model")
