"""Random draws, blind verdicts, and what they allow to be said."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from auditor import consensus, images, importing, promises, review_progress, reviewing, verification, worker
from auditor.auditing import plan
from auditor.catalog import audits, datasets, scores, verifications
from auditor.catalog.db import session
from auditor.catalog.models import DrawTable
from auditor.errors import AuditorError, VerificationError
from auditor.evidence import NO_CLASS, UNSURE
from tests.helpers import QUICK_OPTIONS, Digits, verify_truthfully, write_digits


def test_draw__same_seed_same_samples_and_draws_never_overlap(audited: tuple[Digits, int]) -> None:
    first = verification.draw("digits", 50, seed=0)
    second = verification.draw("digits", 50, seed=0)
    assert len(set(first.sample_ids) | set(second.sample_ids)) == 100


def test_draw__refuses_more_than_there_are(audited: tuple[Digits, int]) -> None:
    with pytest.raises(VerificationError, match="301 samples cannot be drawn; 300 labeled"):
        verification.draw("digits", 301)


def test_standing__holds_the_latest_verdict(audited: tuple[Digits, int]) -> None:
    draw = verification.draw("digits", 4, seed=0)
    a, b, c, _ = draw.sample_ids
    verification.record(draw.id, a, "label", label=2, reviewer="ada")
    verification.record(draw.id, a, "label", label=3, reviewer="ada")
    verification.record(draw.id, b, "exclude", reviewer="ada")
    verification.record(draw.id, c, "unsure", reviewer="ada")
    found = verification.standing(1)
    assert found.sample_ids.tolist() == [a, b, c]
    assert found.true_labels.tolist() == [3, NO_CLASS, UNSURE]
    assert found.calibrates.tolist() == [True, False, True]
    assert found.is_watched
    verification.undo(draw.id, a, reviewer="ada")
    assert (draw.id, a) in verification.pending(1)


def test_standing__a_sample_that_was_passed_over_counts_as_unsure(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = verification.draw("digits", 6, seed=0)
    for place in (0, 2, 3):
        sample_id = draw.sample_ids[place]
        label = int(digits.true_labels[sample_id])
        verification.record(draw.id, sample_id, "label", label=label, reviewer="ada")
    found = verification.standing(1)
    assert found.sample_ids.tolist() == draw.sample_ids[:4]  # the last two wait, nobody passed them over
    assert np.flatnonzero(found.is_unsure).tolist() == [1]
    assert found.calibrates.tolist() == [True, False, True, False]


def test_record__a_suspect_cannot_be_smuggled_in(audited: tuple[Digits, int]) -> None:
    draw = verification.draw("digits", 4, seed=0)
    outsider = next(i for i in range(300) if i not in draw.sample_ids)
    with pytest.raises(VerificationError, match="not part of draw"):
        verification.record(draw.id, outsider, "label", label=1, reviewer="ada")


def test_reviews_of_suspects_are_never_counted_as_random(audited: tuple[Digits, int]) -> None:
    reviewing.decide(1, 5, "exclude", reviewer="ada")
    assert verification.standing(1).size == 0


def test_promises__realised_rate_and_interval(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    verify_truthfully(digits, 150)
    consensus.settle(audit_id)
    standing = promises.load(audit_id)
    rate = promises.noise_rate(standing)
    assert rate.kind == "interval"
    assert rate.low <= 0.10 <= rate.high
    at_20 = promises.promises(standing)[0.20]
    assert not at_20.flags[standing.verified.sample_ids].any()
    if at_20.is_kept:
        assert (~digits.is_wrong[at_20.flags]).mean() <= 0.5


def test_promises__without_verified_rows_nothing_is_promised(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    promise = promises.promises(promises.load(audit_id))[0.1]
    assert not promise.is_kept
    assert "Nothing can be promised without verified rows" in promise.sentence
    assert promises.noise_rate(promises.load(audit_id)).kind == "guess"


def test_statements__found_errors_come_from_reviews_and_verdicts(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    draw = verify_truthfully(digits, 60)
    wrong_drawn = int(digits.is_wrong[draw.sample_ids].sum())
    outside = [i for i in np.flatnonzero(digits.is_wrong) if i not in draw.sample_ids][:3]
    for sample_id in outside:
        reviewing.decide(1, int(sample_id), "exclude", reviewer="ada")
    found = promises.statements(promises.load(audit_id))
    assert found.errors_left.found == wrong_drawn + 3
    assert len(found.classes) == 10


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def decisions_of(draw: DrawTable) -> dict[int, str]:
    """What stands judged in a draw: decision by sample_id."""
    with session() as open_session:
        rows = verifications.verdicts(open_session, draw.dataset_id)
    return {sample: row.decision for (of_draw, sample), row in rows.items() if of_draw == draw.id}


def test_statements__a_class_for_an_unlabeled_sample_is_no_error_found(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    with session() as open_session:
        datasets.sample(open_session, 1, 9).given_label = -1
    before = promises.statements(promises.load(audit_id)).errors_left
    reviewing.decide(1, 9, "relabel", label=int(digits.true_labels[9]), reviewer="ada")
    after = promises.statements(promises.load(audit_id)).errors_left
    assert (after.found, after.point) == (before.found, before.point) == (0, before.point)
    assert review_progress.progress(1, audit_id).found == 0


def test_statements__taken_back_verdicts_leave_the_guess(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    guess = promises.noise_rate(promises.load(audit_id))
    draw = verify_truthfully(digits, 60)
    consensus.settle(audit_id)
    standing = promises.load(audit_id)
    assert (promises.noise_rate(standing).kind, promises.transition(standing).kind) == (
        "interval",
        "interval",
    )
    for sample_id in draw.sample_ids:
        verification.undo(draw.id, sample_id, reviewer="ada")
    standing = promises.load(audit_id)
    assert promises.noise_rate(standing) == guess
    assert promises.noise_rate_now(standing.audit) == guess
    assert promises.transition(standing).kind == "guess"


def test_second_audit__reviewed_suspects_do_not_refuse_the_sample(audited: tuple[Digits, int]) -> None:
    """The loop that the product exists for: verify, review the list, audit again, and the promise still stands."""
    digits, audit_id = audited
    draw = verify_truthfully(digits, 100)
    order = np.argsort(promises.load(audit_id).trust_score)
    for sample_id in (int(i) for i in order[:60] if i not in draw.sample_ids):
        label = int(digits.true_labels[sample_id])
        reviewing.decide(1, sample_id, "relabel", label=label, reviewer="ada")
    excluded = int(order[70])
    reviewing.decide(1, excluded, "exclude", reviewer="ada")
    second = plan("digits", ["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    worker.run(second)
    standing = promises.load(second)
    assert standing.is_random_sample, standing.exchangeability.sentence
    assert promises.noise_rate(standing).kind == "interval"
    # What was corrected or excluded is still graded by the label that it was given.
    assert np.isfinite(standing.trust_score).all()
    corrected = [i for i in order[:60] if digits.is_wrong[i] and i not in draw.sample_ids]
    assert np.mean(standing.trust_score[corrected]) < 0.3
    with session() as open_session:
        page = scores.page(
            open_session, audits.get(open_session, second), scores.SuspectFilter(only_decided=True), limit=200
        )
    assert excluded in page.sample_id.tolist()


def test_csv__round_trip(audited: tuple[Digits, int], tmp_path: Path) -> None:
    digits, _ = audited
    draw = verification.draw("digits", 30, seed=3)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    rows = read_rows(path)
    assert {"suggested_label", "trust_score"}.isdisjoint(rows[0])  # the judge stays blind
    for row in rows[:20]:
        row["verdict_label"] = str(digits.true_labels[int(row["sample_id"])])
    rows[20]["verdict_label"] = "exclude"
    write_rows(path, rows)
    assert verification.apply_csv("digits", path, reviewer="ada") == {"judged": 21, "not judged": 9}
    verification.apply_csv("digits", path, reviewer="ada")
    found = verification.standing(1)
    assert found.size == 21
    assert found.is_wrong(digits.given_labels).sum() == digits.is_wrong[draw.sample_ids[:20]].sum() + 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,{inside},{filepath},{given},seven", "row 2: 'seven': none of the classes"),
        ("1,{outside},x,0,7", "was not drawn in draw 1"),
        ("one,{inside},x,0,7", "must be the numbers"),
    ],
)
def test_apply_csv__refuses_the_whole_file(
    audited: tuple[Digits, int], tmp_path: Path, row: str, message: str
) -> None:
    draw = verification.draw("digits", 5, seed=3)
    outside = next(i for i in range(300) if i not in draw.sample_ids)
    path = tmp_path / "sample.csv"
    head = "draw_id,sample_id,filepath,given_label,verdict_label\n"
    inside = draw.sample_ids[0]
    own = {"filepath": f"images/{inside:04d}.png", "given": audited[0].given_labels[inside]}
    path.write_text(head + row.format(inside=inside, outside=outside, **own) + "\n")
    with pytest.raises(AuditorError, match=message):
        verification.apply_csv("digits", path, reviewer="ada")
    assert verification.standing(1).size == 0


def test_apply_csv__names_every_cell_that_is_no_verdict_and_what_was_meant(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = verification.draw("digits", 4)
    path = tmp_path / "sample.csv"
    rows = [
        f"{draw.id},{i},{said}" for i, said in zip(draw.sample_ids, ["3", "Exclude", "77", ""], strict=True)
    ]
    path.write_text("draw_id,sample_id,verdict_label\n" + "\n".join(rows) + "\n")
    with pytest.raises(AuditorError, match=r"row 3: 'Exclude'; row 4: '77' \(did you mean '7'\?\): none of"):
        verification.apply_csv("digits", path, reviewer="ada")
    assert verification.standing(1).size == 0


def test_apply_csv__takes_what_a_spreadsheet_saves(audited: tuple[Digits, int], tmp_path: Path) -> None:
    draw = verification.draw("digits", 3)
    path = tmp_path / "sample.csv"
    rows = [f"{draw.id};{i};3" for i in draw.sample_ids]
    text = "draw_id;sample_id;verdict_label\r\n" + "\r\n".join(rows) + "\r\n;;\r\n;;\r\n"
    path.write_bytes(text.encode("utf-8-sig"))
    assert verification.apply_csv("digits", path, reviewer="ada") == {"judged": 3, "not judged": 0}


@pytest.mark.parametrize("second", ["3", "4"])
def test_apply_csv__refuses_a_sample_that_is_judged_twice(
    audited: tuple[Digits, int], tmp_path: Path, second: str
) -> None:
    draw = verification.draw("digits", 5, seed=3)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    rows = read_rows(path)
    rows[1]["verdict_label"] = "3"
    write_rows(path, [*rows, rows[1] | {"verdict_label": second}])
    message = rf"sample.csv, rows 3 and 7: both judge sample {draw.sample_ids[1]} of draw 1; delete one"
    with pytest.raises(VerificationError, match=message):
        verification.apply_csv("digits", path, reviewer="ada")
    assert decisions_of(draw) == {}


def test_apply_csv__a_row_that_is_there_again_unjudged_does_no_harm(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = verification.draw("digits", 5, seed=3)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    rows = read_rows(path)
    write_rows(path, [*rows, rows[1] | {"verdict_label": "3"}])
    assert verification.apply_csv("digits", path, reviewer="ada") == {"judged": 1, "not judged": 4}


@pytest.mark.parametrize("column", ["filepath", "given_label"])
def test_apply_csv__refuses_a_column_that_was_sorted_alone(
    audited: tuple[Digits, int], tmp_path: Path, column: str
) -> None:
    draw = verification.draw("digits", 20, seed=3)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    rows = read_rows(path)
    for row, cell in zip(rows, sorted(row[column] for row in rows), strict=True):
        row |= {column: cell, "verdict_label": "3"}
    write_rows(path, rows)
    message = rf"row \d+: {column} '.+' is not that of sample \d+, which is '.+'\. .+ --draw-id 1 --out FILE"
    with pytest.raises(VerificationError, match=message):
        verification.apply_csv("digits", path, reviewer="ada")
    assert decisions_of(draw) == {}
    for row in rows:
        del row[column]
    write_rows(path, rows)  # a file without the column says nothing about it
    assert verification.apply_csv("digits", path, reviewer="ada")["judged"] == 20


def test_apply_csv__takes_a_file_from_before_the_images_moved(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    digits, _ = audited
    draw = verification.draw("digits", 5, seed=3)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    write_rows(path, [row | {"verdict_label": "3"} for row in read_rows(path)])
    shutil.copytree(digits.table.parent, tmp_path / "elsewhere")
    images.move_root("digits", tmp_path / "elsewhere")
    assert verification.apply_csv("digits", path, reviewer="ada")["judged"] == 5


@pytest.mark.parametrize("quoting", [lambda name: f"'={name}", lambda name: f"={name}"])
def test_csv__formulas_are_disarmed_and_come_back_with_or_without_the_quote(
    home: Path, tmp_path: Path, quoting: Callable[[str], str]
) -> None:
    digits = write_digits(tmp_path / "source", num=30, num_wrong=3)
    (tmp_path / "source" / "images").rename(tmp_path / "source" / "=images")
    rows = read_rows(digits.table)
    write_rows(
        digits.table, [{"filepath": f"={row['filepath']}", "label": f"={row['label']}"} for row in rows]
    )
    importing.import_dataset(digits.table, name="formulas", image_size=16, workers=1)
    draw = verification.draw("formulas", 30)
    path = tmp_path / "sample.csv"
    verification.write_csv(draw.id, path)
    rows = read_rows(path)
    assert {row["filepath"][:9] for row in rows} == {"'=images/"}
    assert {row["given_label"][:2] for row in rows} == {"'="}
    for row in rows:
        sample_id = int(row["sample_id"])
        row["filepath"] = quoting(f"images/{sample_id:04d}.png")
        row["given_label"] = quoting(str(digits.given_labels[sample_id]))
        row["verdict_label"] = quoting(str(digits.true_labels[sample_id]))
    write_rows(path, rows)
    assert verification.apply_csv("formulas", path, reviewer="ada") == {"judged": 30, "not judged": 0}
    with session() as open_session:
        found = verifications.verdicts(open_session, 1)
    assert [found[draw.id, i].label for i in range(30)] == digits.true_labels.tolist()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("note.txt/sample.csv", r"sample.csv cannot be written \(.+note.txt\); name another place"),
        ("there.csv", "there.csv exists; choose another name or pass --force"),
        ("sample.xlsx", "the file's kind is unknown; use .csv or .tsv"),
    ],
)
def test_draw_csv__what_cannot_be_written_is_not_drawn(
    audited: tuple[Digits, int], tmp_path: Path, place: str, message: str
) -> None:
    (tmp_path / "note.txt").write_text("a file is no folder")
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(VerificationError, match=message):
        verification.draw_csv("digits", 20, tmp_path / place)
    assert verification.pending(1) == []
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_draw_csv__makes_the_folder(audited: tuple[Digits, int], tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "sample.tsv"
    draw = verification.draw_csv("digits", 20, path)
    assert [path.name] == [one.name for one in path.parent.iterdir()]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [int(line.split("\t")[1]) for line in lines[1:]] == draw.sample_ids
    assert verification.apply_csv("digits", path, reviewer="ada") == {"judged": 0, "not judged": 20}


def test_write_again__the_same_samples_without_their_verdicts(
    audited: tuple[Digits, int], tmp_path: Path
) -> None:
    draw = verify_truthfully(audited[0], 5)
    again, judged = verification.write_again("digits", draw.id, tmp_path / "sample.csv")
    rows = read_rows(tmp_path / "sample.csv")
    assert (again.sample_ids, judged) == (draw.sample_ids, 5)
    assert [int(row["sample_id"]) for row in rows] == draw.sample_ids
    assert {row["verdict_label"] for row in rows} == {""}
    verification.apply_csv("digits", tmp_path / "sample.csv", reviewer="ada")
    assert len(decisions_of(draw)) == 5  # an empty cell takes nothing back


def test_write_again__names_the_draws_of_this_dataset(audited: tuple[Digits, int], tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="digits has no draw 1; it has none yet, --draw 200 --out"):
        verification.write_again("digits", 1, tmp_path / "sample.csv")
    verification.draw("digits", 5)
    verification.draw("digits", 7)
    with pytest.raises(
        VerificationError, match=r"no draw 3; its draws: 1 \(5 samples, .+\), 2 \(7 samples, .+\)\."
    ):
        verification.write_again("digits", 3, tmp_path / "sample.csv")
    assert not (tmp_path / "sample.csv").exists()


def test_noise_rate__rows_from_the_top_of_the_list_are_refused(audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    trust = promises.load(audit_id).trust_score
    top = np.argsort(trust)[:60]
    with session() as open_session:
        drawn = verifications.add_draw(
            open_session, DrawTable(dataset_id=1, seed=0, size=60, sample_ids=[int(i) for i in top])
        )
    for sample_id in top:
        label = int(digits.true_labels[sample_id])
        verification.record(drawn, int(sample_id), "label", label=label, reviewer="ada")
    standing = promises.load(audit_id)
    rate = promises.noise_rate(standing)
    assert rate.kind == "guess"
    assert "cannot be a random sample" in rate.sentence
    assert not any(promise.is_kept for promise in promises.promises(standing).values())


def test_load__a_sample_that_two_draws_hold_is_refused(audited: tuple[Digits, int]) -> None:
    _, audit_id = audited
    for _ in range(2):
        with session() as open_session:
            drawn = verifications.add_draw(
                open_session, DrawTable(dataset_id=1, seed=0, size=1, sample_ids=[7])
            )
        verification.record(drawn, 7, "unsure", reviewer="ada")
    with pytest.raises(VerificationError, match="a verified sample occurs twice"):
        promises.load(audit_id)


def test_standing__an_enlarged_sample_is_a_watched_one(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    verify_truthfully(digits, 20)
    assert not verification.standing(1).is_watched
    verify_truthfully(digits, 20)
    assert verification.standing(1).is_watched


def test_standing__promises_rest_on_the_largest_draw_that_is_judged_to_its_end(
    audited: tuple[Digits, int],
) -> None:
    digits, audit_id = audited
    first = verify_truthfully(digits, 60)
    second = verification.draw("digits", 100)
    for sample_id in second.sample_ids[:-1]:
        verification.record(
            second.id, sample_id, "label", label=int(digits.true_labels[sample_id]), reviewer="ada"
        )
    found = verification.standing(1)
    assert (found.num_draws, found.num_waiting) == (2, 1)
    np.testing.assert_array_equal(found.sample_ids[found.backing_mask], first.sample_ids)
    verification.record(second.id, second.sample_ids[-1], "unsure", reviewer="ada")
    found = verification.standing(1)
    np.testing.assert_array_equal(found.sample_ids[found.backing_mask], second.sample_ids)
    assert found.num_waiting == 0
    # A verdict that is taken back leaves a row that waits, and the smaller draw backs again.
    verification.undo(second.id, second.sample_ids[-1], reviewer="ada")
    assert verification.standing(1).backing_mask.sum() == 60
    verification.undo(first.id, first.sample_ids[-1], reviewer="ada")
    promise = promises.promises(promises.load(audit_id))[0.2]
    assert not promise.is_kept
    assert "judged to its end (2 of its rows wait" in promise.sentence


def test_standing__a_verdict_that_a_later_review_contradicts_counts_as_unsure(
    audited: tuple[Digits, int],
) -> None:
    digits, _ = audited
    draw = verify_truthfully(digits, 100)
    wrong = [i for i in draw.sample_ids if digits.is_wrong[i]]
    right = next(i for i in draw.sample_ids if not digits.is_wrong[i])
    reviewing.decide(1, wrong[0], "keep", reviewer="bob")
    reviewing.decide(1, wrong[1], "relabel", label=int(digits.true_labels[wrong[1]]), reviewer="bob")
    reviewing.decide(1, right, "unsure", reviewer="bob")
    found = verification.standing(1)
    assert found.sample_ids[found.is_unsure].tolist() == [wrong[0]]
    # The later look stands: judged blind once more, the verdict counts again.
    verification.record(draw.id, wrong[0], "unsure", reviewer="ada")
    label = int(digits.true_labels[wrong[0]])
    verification.record(draw.id, wrong[0], "label", label=label, reviewer="ada")
    assert not verification.standing(1).is_unsure.any()
