"""From an audit's arrays to stored scores: loads the witnesses, asks ``trust``, writes the rows.

Needs no training, so it also runs when verdicts were added: the same engines, told more.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import IntegrityError

from auditor.audits import arrays, own_models
from auditor.audits.out_of_fold import disagreement
from auditor.backbones import features
from auditor.catalog import audits, datasets, leases, scores
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, now
from auditor.ground.errors import AuditFailedError, NotFoundError
from auditor.pictures import cache
from auditor.review import decisions, verifying
from auditor.statistics import (
    Consensus,
    NoiseRate,
    OutOfFold,
    Transition,
    Verified,
    Witness,
    combine,
    witness_from_probabilities,
)

WAIT_S = 0.2
"""Between two looks whether another process has stored the scores that it is at."""


def settle(audit_id: int) -> Consensus:
    """Combine what the audit's engines and the verified rows say, and store scores and statements.

    Raises:
        AuditFailedError: no engine of the audit has finished.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        given = datasets.given_labels(open_session, audit.dataset_id)
    out_of_fold = _out_of_fold(audit, dataset, given)
    outdated = outdated_rows(audit_id)
    found = combine(
        witnesses(audit_id, dataset, outdated),
        given,
        len(dataset.class_names),
        verified=verified_rows(audit_id),
        out_of_fold=out_of_fold,
        neighbours=neighbours_in_features(audit),
    )
    columns = _columns(found, given)
    summary = _summary(found) | _kept(out_of_fold) | {"runs": arrays.runs_that_speak(audit_id)}
    summary["outdated"] = {name: int(rows.sum()) for name, rows in outdated.items()}
    store(audit, columns, summary)
    arrays.keep_ranks(audit_id, columns["rank"], summary["settled_at"])
    arrays.keep_confusions(audit_id, found.confusions, summary["settled_at"])
    return found


def store(audit: Audit, columns: dict[str, NDArray[Any]], summary: dict[str, Any]) -> None:
    """Write scores and statements: in parts, between which others write and see the earlier ones.

    One short transaction makes the later ones those that people see; then the earlier ones are deleted, in parts
    too. What a kill leaves of either is deleted by whoever settles the audit next, or removes it.
    """
    with _alone(audit.id) as name:
        _clear(audit.id, name)
        start, more = 0, True
        while more:
            with session() as open_session:
                more = scores.add_part(open_session, audit.id, columns, start)
                leases.beat(open_session, name)
            start += scores.ROWS_A_STATEMENT
        with session() as open_session:
            scores.turn(open_session, audit.id)
            audits.change(open_session, audit.id, summary=summary)
        _clear(audit.id, name)


def _clear(audit_id: int, name: str) -> None:
    more = True
    while more:
        with session() as open_session:
            more = scores.clear_part(open_session, audit_id)
            leases.beat(open_session, name)


@contextmanager
def _alone(audit_id: int) -> Iterator[str]:
    """Nobody else stores scores of this audit meanwhile; who does already is waited for. The name of the lease."""
    name = f"{leases.SETTLING}{audit_id}"
    while not _took(name):
        time.sleep(WAIT_S)
    try:
        yield name
    finally:
        with session() as open_session:
            leases.end(open_session, name)


def _took(name: str) -> bool:
    try:
        with session() as open_session:
            if name in leases.names(open_session):
                return leases.adopt(open_session, name) is not None
            leases.take(open_session, name, "")
    except IntegrityError:  # another one took it at the same moment
        return False
    return True


def hear(audit_id: int, *, alone: bool) -> Consensus:
    """Let only the audit's own runs speak from now on, or the latest earlier ones of other engines too, and settle.

    Raises:
        AuditFailedError: no engine of the audit has finished.
    """
    with session() as open_session:
        before = audits.get(open_session, audit_id).options
        audits.change(open_session, audit_id, options=before | {"alone": alone})
    try:
        return settle(audit_id)
    except Exception:
        # The scores are still those of before: what is said to speak must be what spoke.
        with session() as open_session:
            audits.change(open_session, audit_id, options=before)
        raise


def _out_of_fold(audit: Audit, dataset: Dataset, given: NDArray[np.int64]) -> OutOfFold | None:
    """Of this audit, computed once; the labels that it is about never change."""
    stored = audit.summary.get("out_of_fold")
    if stored is not None:
        return OutOfFold(stored["num_differ"], stored["num_rows"])
    source = audit.options.get("features")
    try:
        if source is None:
            return disagreement(cache.image_cache(dataset), given)
        return disagreement(features.load(dataset.id, features.FeatureSource(**source)), given)
    except NotFoundError:  # the features were removed since
        return None


def outdated_rows(audit_id: int) -> dict[str, NDArray[np.bool_]]:
    """By name of the witness, the (N,) rows on which it is not heard, where there are any.

    These are rows whose label a person corrected or excluded after the run had learned it as it was, while another
    run that speaks learned what the person said. An opinion that rests on a label known to be wrong says nothing
    there. Where all learned the wrong label, all are heard.
    """
    runs = arrays.runs_that_speak(audit_id)
    with session() as open_session:
        dataset_id = audits.get(open_session, audit_id).dataset_id
        given = datasets.given_labels(open_session, dataset_id)
    settled, _ = decisions.labels_to_train_on(dataset_id)
    changed = np.flatnonzero(settled != given)
    # Runs of one audit learned the same labels.
    knows = {one: arrays.trained_labels(one)[0][changed] == settled[changed] for one in set(runs.values())}
    somebody = np.any(list(knows.values()), axis=0) if knows else np.zeros(len(changed), dtype=bool)
    found = {}
    for name, one in runs.items():
        rows = np.zeros(len(given), dtype=bool)
        rows[changed] = somebody & ~knows[one]
        if rows.any():
            found[name] = rows
    return found


def witnesses(
    audit_id: int, dataset: Dataset, outdated: Mapping[str, NDArray[np.bool_]] | None = None
) -> list[Witness]:
    """The engines that finished and the user's own predictions, as witnesses.

    ``outdated``: rows on which a run is not heard, of ``outdated_rows``; None = asked here.

    Raises:
        AuditFailedError: there is none.
    """
    with session() as open_session:
        given = datasets.given_labels(open_session, dataset.id)
    outdated = outdated_rows(audit_id) if outdated is None else outdated
    found = []
    for run in arrays.speaking_runs(audit_id):
        trust, probs = arrays.trust(audit_id, run.name), arrays.pred_probs(audit_id, run.name)
        if (rows := outdated.get(run.name)) is not None:
            trust, probs = np.where(rows, np.float32(np.nan), trust), _silenced(probs, rows)
        found.append(Witness(run.name, trust, probs, run.trunk))
    own = own_models.load(dataset.id)
    found += [witness_from_probabilities(probs, given, name=name) for name, probs in own.items()]
    if not found:
        raise AuditFailedError(f"No engine of audit {audit_id} has finished; resume it first.")
    return found


def _silenced(probs: NDArray[np.float32], rows: NDArray[np.bool_]) -> NDArray[np.float32]:
    """A memory map (N, K) with NaN in some rows; only the pages of these are copied, none is written."""
    assert isinstance(probs, np.memmap)
    found: NDArray[np.float32] = np.memmap(str(probs.filename), np.float32, "c", probs.offset, probs.shape)
    found[rows] = np.nan
    return found


def neighbours_in_features(audit: Audit) -> NDArray[np.integer] | None:
    """(N, k) each sample's nearest in the features of a backbone; None where the engines trained on images."""
    if not (arrays.engine_folder(audit.id, arrays.FEATURES) / "neighbours.npy").exists():
        return None
    return arrays.array(audit.id, arrays.FEATURES, "neighbours")


def verified_rows(audit_id: int) -> Verified:
    """The verified sample as this audit counts it, with the rows that it trained on as trusted."""
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        given = datasets.given_labels(open_session, audit.dataset_id)
    # What any run that speaks was told about a sample moved its trust.
    treated = np.zeros(len(given), dtype=bool)
    for one in {audit_id, *arrays.runs_that_speak(audit_id).values()}:
        labels, trusted = arrays.trained_labels(one)
        treated |= trusted | (labels != given)
    return verifying.rows(audit.dataset_id, trusted=treated)


def _columns(found: Consensus, given: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    return {
        "rank": arrays.ranks(found.trust_score),
        "given_label": given,
        "trust_score": found.trust_score,
        "error_probability": found.error_probability,
        "is_label_issue": found.is_label_issue,
        "suggested_label": found.suggested_label,
        "suggested_probability": np.nan_to_num(found.suggested_probability),
        "agreement": found.agreement,
        "disagreement": np.nan_to_num(found.disagreement),
    }


def _kept(found: OutOfFold | None) -> dict[str, Any]:
    return {} if found is None else {"out_of_fold": dataclasses.asdict(found)}


def _summary(found: Consensus) -> dict[str, Any]:
    return {
        "settled_at": now().isoformat(),
        "noise_rate": noise_rate_json(found.noise_rate),
        "noise_rate_guess": noise_rate_json(found.guessed_noise_rate),
        "transition": transition_json(found.transition),
        "transition_guess": transition_json(found.guessed_transition),
        "witnesses": list(found.witness_names),
        "num_voters": found.num_voters,
        "weights": {name: float(weight) for name, weight in found.weights.items()},
        "rows_chose_weights": found.learning is not None and bool(found.learning.any()),
        "weighting": found.weighting,
        "weights_sentence": found.weights_sentence,
        "confusions_share": found.confusions_share,
        "direction": None if found.confusions is None else found.confusions.direction,
        "rank_correlations": _rounded(found.rank_correlations),
        "structured_noise": found.structured_noise,
        "structured_noise_sentence": found.structured_noise_sentence,
        "error_probability_is_guess": found.error_probability_is_guess,
        "suggestion_is_calibrated": found.suggestion_is_calibrated,
        "num_label_issues": int(found.is_label_issue.sum()),
        "num_ranked": int(np.isfinite(found.trust_score).sum()),
    }


def noise_rate_json(rate: NoiseRate) -> dict[str, Any]:
    """A noise rate as plain values."""
    return {
        "low": float(rate.low),
        "point": float(rate.point),
        "high": float(rate.high),
        "kind": rate.kind,
        "sentence": rate.sentence,
        "estimators": {name: float(value) for name, value in rate.estimators.items()},
    }


def transition_json(transition: Transition) -> dict[str, Any]:
    """T[true][given] with its range, as plain values."""
    return {
        "matrix": _rounded(transition.matrix),
        "low": _rounded(transition.low),
        "high": _rounded(transition.high),
        "kind": transition.kind,
        "sentence": transition.sentence,
    }


def transition_from_json(stored: dict[str, Any]) -> Transition:
    """The inverse of ``transition_json``."""
    matrices = {
        name: np.array([[np.nan if cell is None else cell for cell in row] for row in stored[name]])
        for name in ("matrix", "low", "high")
    }
    return Transition(**matrices, kind=stored["kind"], sentence=stored["sentence"])


def _rounded(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(cell) else round(float(cell), 6) for cell in row] for row in matrix]
