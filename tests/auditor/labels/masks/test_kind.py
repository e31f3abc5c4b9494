"""An audit of masks from the plan to the cleaned files, and the commands on the way."""

from __future__ import annotations

import csv
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from auditor import jobs
from auditor.api import open_dataset
from auditor.backbones import features
from auditor.catalog import jobs as catalog_jobs
from auditor.catalog import reading, scores
from auditor.catalog.db import ask, session
from auditor.cli import kinds
from auditor.cli.commands import cli
from auditor.ground.errors import AuditFailedError, AuditorError, ExportRefusedError, ReviewError
from auditor.ground.progress import Progress
from auditor.ground.settings import settings
from auditor.labels.masks import deciding, exporting, results
from auditor.labels.masks.kind import KIND, LEAST_SIDE
from auditor.review import decisions, verifying
from tests.masked import RIGHT, WRONG, Audited, disc_in


def decide(audited: Audited, sample_id: int, decision: str, regions: list[int] | None = None) -> None:
    deciding.decide(
        audited.dataset.id,
        sample_id,
        decision,
        regions=regions,
        audit_id=audited.audit_id,
        reviewer="ada",
    )


def command(*arguments: str) -> str:
    found = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_audit__puts_the_wrong_masks_first_and_suggests_what_was_lost(audited_masks: Audited) -> None:
    dataset, audit = reading.audited("shapes")
    page = open_dataset("shapes").suspects()
    assert set(page.sample_id[: len(WRONG)]) == set(WRONG)
    assert page.is_label_issue[: len(WRONG)].all()
    assert (page.largest_change_to[: len(WRONG)] == "disc").all()
    suggested = results.mask_verdicts(audit.id).suggested
    for row in WRONG:
        right = audited_masks.shapes.masks[row] == 1
        assert (suggested[row][right] == 1).mean() > 0.2
    table = KIND.class_table(dataset, audit).set_index("class")
    assert table.masks["disc"] == len(audited_masks.shapes.masks) - len(WRONG)


def test_decide__takes_regions_and_the_next_audit_trains_on_them(audited_masks: Audited) -> None:
    first, second = WRONG
    regions = deciding.regions_of(audited_masks.dataset, audited_masks.audit_id, first)
    decide(audited_masks, first, "relabel", [regions[0].number])
    decide(audited_masks, second, "exclude")
    decide(audited_masks, RIGHT, "keep")
    given = results.given_masks(audited_masks.dataset)
    masks, _, trusted = deciding.masks_to_train_on(audited_masks.dataset, given)
    assert disc_in(masks[first]) == regions[0].area
    assert (masks[second] == 255).all()
    assert np.flatnonzero(trusted).tolist() == sorted([RIGHT, first])
    assert decisions.undo_last(audited_masks.dataset.id, "ada")[0].sample_id == RIGHT
    assert set(decisions.outcomes(audited_masks.dataset.id)) == set(WRONG)


def test_decide__a_named_class_is_what_the_region_becomes_everywhere(
    audited_masks: Audited, tmp_path: Path
) -> None:
    dataset, sample = audited_masks.dataset, WRONG[0]
    regions = deciding.regions_of(dataset, audited_masks.audit_id, sample)
    first, named = regions[0], {regions[0].number: 2}
    assert (first.given, first.suggested) == (0, 1)
    deciding.decide(
        dataset.id, sample, "relabel", classes=named, audit_id=audited_masks.audit_id, reviewer="ada"
    )
    masks, *_ = deciding.masks_to_train_on(dataset, results.given_masks(dataset))
    assert (masks[sample][first.pixels] == 2).all()
    exporting.export("shapes", tmp_path / "cleaned")
    after = np.asarray(Image.open(tmp_path / f"cleaned/masks/{sample:03d}.png"))
    assert (after[first.pixels] == 2).all()
    for other in regions[1:]:
        assert (after[other.pixels] == other.suggested).all()
    with (tmp_path / "cleaned" / "masks.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    says = [f"{first.number}={dataset.class_names[2]}", *(str(one.number) for one in regions[1:])]
    assert sorted(rows[sample]["regions_taken"].split("|")) == sorted(says)


@pytest.mark.parametrize(
    ("decision", "regions", "said"),
    [
        ("multiple", None, "'multiple' is no decision; use one of keep, relabel, exclude, unsure"),
        ("relabel", [99], rf"Sample {WRONG[0]} has no region 99; it has \d+"),
    ],
)
def test_decide__refuses_what_cannot_be_meant(
    audited_masks: Audited, decision: str, regions: list[int] | None, said: str
) -> None:
    with pytest.raises(ReviewError, match=said):
        decide(audited_masks, WRONG[0], decision, regions)


def test_export__writes_the_masks_that_came_in_with_the_taken_regions(
    audited_masks: Audited, tmp_path: Path
) -> None:
    first, second = WRONG
    decide(audited_masks, first, "relabel")
    decide(audited_masks, second, "exclude")
    out = tmp_path / "cleaned"
    done = exporting.export("shapes", out)
    assert (done.num_masks, done.num_changed, done.num_excluded) == (11, 1, 1)
    names = sorted(path.name for path in (out / "masks").iterdir())
    assert names == [f"{number:03d}.png" for number in range(12) if number != second]
    for number in sorted(set(range(12)) - set(WRONG)):
        name = f"masks/{number:03d}.png"
        assert (out / name).read_bytes() == (audited_masks.source / name).read_bytes()
    after = np.asarray(Image.open(out / f"masks/{first:03d}.png"))
    taken = deciding.regions_of(audited_masks.dataset, audited_masks.audit_id, first)
    for region in taken:
        assert (after[region.pixels] == region.suggested).all()
    assert disc_in(after) > 0
    with (out / "masks.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    actions = {number: row["action"] for number, row in enumerate(rows) if row["action"] != "keep"}
    assert actions == {first: "relabel", second: "exclude"}
    assert rows[first]["regions_taken"] == "|".join(str(one.number) for one in taken)
    assert int(rows[first]["changed_pixels"]) == done.changed_pixels > 0
    with pytest.raises(ExportRefusedError, match="exists; name a new folder"):
        exporting.export("shapes", out)


def test_export__a_job_packs_the_same_files_and_tells_how_far_it_is(
    audited_masks: Audited, tmp_path: Path
) -> None:
    decide(audited_masks, WRONG[0], "relabel")
    exporting.export("shapes", tmp_path / "cleaned")
    with session() as open_session:
        arguments = {"file": "out.zip", "audit_id": audited_masks.audit_id}
        job_id = catalog_jobs.create(open_session, "export", "shapes", arguments=arguments)
    seen: list[Progress] = []
    for _ in range(2):  # the second starts over one that was killed when its file was whole
        jobs.run(job_id, kinds.WORK["export"], progress=seen.append)
    folder = settings().job_folder(job_id)
    with zipfile.ZipFile(folder / "out.zip") as packed:
        found = {name: packed.read(name) for name in packed.namelist()}
    assert found == {
        str(file.relative_to(tmp_path / "cleaned")): file.read_bytes()
        for file in (tmp_path / "cleaned").rglob("*")
        if file.is_file()
    }
    assert [file.name for file in folder.iterdir()] == ["out.zip"]
    ends = [(one.stage, one.done) for one in seen if one.done == one.total]
    assert ends == [("writing masks", 12), ("packing files", 13)] * 2


def test_commands__work_on_masks_or_refuse_in_one_line(audited_masks: Audited, tmp_path: Path) -> None:
    found = json.loads(command("suspects", "shapes", "--top", "2", "--json"))
    assert {row["sample_id"] for row in found["suspects"]} == set(WRONG)
    assert "is known once a random sample is checked" in command("suspects", "shapes")
    assert json.loads(command("status", "shapes", "--json"))["task"] == "segmentation"
    assert "shapes: 12 images, masks of 3 classes" in command("status", "shapes")
    command("export", "shapes", "--out", str(tmp_path / "out"))
    assert len(list((tmp_path / "out" / "masks").iterdir())) == 12
    for words in (("review", "shapes", "--apply", "f.csv"), ("compare", "shapes")):
        said = f"^The labels of shapes are masks: `auditor {words[0]}` is for class labels"
        with pytest.raises(AuditorError, match=said):
            CliRunner().invoke(cli, list(words), catch_exceptions=False)
    refused = CliRunner().invoke(cli, ["audit", "shapes", "--backbone", "timm:x"])
    assert "--backbone has no effect together with a dataset of masks" in refused.output


def test_report__shows_the_masks_of_least_trust(audited_masks: Audited, tmp_path: Path) -> None:
    decide(audited_masks, WRONG[0], "exclude")
    command("report", "shapes", "--out", str(tmp_path / "r.html"))
    text = (tmp_path / "r.html").read_text()
    assert f"#{WRONG[0]} images/{WRONG[0]:03d}.png" in text
    assert '<strong class="suggested">disc</strong>' in text
    assert '<strong class="suggested">excluded</strong>' in text
    assert "How many are wrong is not known" in text


def test_plan_audit__refuses_engines_of_class_labels(audited_masks: Audited) -> None:
    with pytest.raises(AuditFailedError, match="Engine umn takes no masks; on masks there are cross_en"):
        KIND.plan("shapes", ["umn"])


def test_verify__the_share_wrong_is_that_of_the_sample_whatever_is_in_doubt(
    audited_masks: Audited, tmp_path: Path
) -> None:
    drawn = tmp_path / "drawn.csv"
    command("verify", "shapes", "--draw", "8", "--for", "rate", "--out", str(drawn))
    with drawn.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    said = ["wrong", "wrong", *["right"] * 6]
    with drawn.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(row | {"verdict_label": word} for row, word in zip(rows, said, strict=True))
    found = json.loads(command("verify", "shapes", "--apply", str(drawn), "--json"))
    assert found["noise_rate"]["point"] == pytest.approx(2 / 8)


def test_verify__right_and_wrong_masks_give_a_rate_and_promises(
    audited_masks: Audited, tmp_path: Path
) -> None:
    drawn, num = tmp_path / "drawn.csv", len(audited_masks.shapes.masks)
    command("verify", "shapes", "--draw", str(num), "--for", "rate", "--out", str(drawn))
    with drawn.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["given_label"] for row in rows} == {f"masks/{number:03d}.png" for number in range(num)}

    def fill(said: dict[int, str]) -> None:
        with drawn.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(
                row | {"verdict_label": said.get(int(row["sample_id"]), "right")} for row in rows
            )

    fill({RIGHT: "wrnog"})
    with pytest.raises(AuditorError, match=r"'wrnog' \(did you mean 'wrong'\?\): neither right nor wrong"):
        CliRunner().invoke(cli, ["verify", "shapes", "--apply", str(drawn)], catch_exceptions=False)
    fill(dict.fromkeys(WRONG, "wrong"))
    found = json.loads(command("verify", "shapes", "--apply", str(drawn), "--json"))
    assert found["noise_rate"]["kind"] == "interval"
    assert found["noise_rate"]["point"] == pytest.approx(len(WRONG) / num)
    assert [one["q"] for one in found["promises"]] == [0.05, 0.1, 0.2]
    assert "is not known" not in command("suspects", "shapes")
    assert "Every label is checked" in command("suspects", "shapes", "--max-fdr", "0.2")

    decide(audited_masks, WRONG[0], "relabel")
    given = results.given_masks(audited_masks.dataset)
    masks, labels, trusted = deciding.masks_to_train_on(audited_masks.dataset, given)
    calibrating = verifying.calibrating_ids(audited_masks.dataset.id)
    np.testing.assert_array_equal(masks[calibrating], given[calibrating])
    assert not trusted[calibrating].any()
    others = np.setdiff1d(np.arange(num), calibrating)
    only_wrong = np.isin(others, WRONG[1:])
    np.testing.assert_array_equal(labels[others] < 0, only_wrong)
    np.testing.assert_array_equal(trusted[others], ~only_wrong)
    exporting.export("shapes", tmp_path / "out")
    with (tmp_path / "out" / "masks.csv").open(newline="") as stream:
        actions = {int(row["sample_id"]): row["action"] for row in csv.DictReader(stream)}
    assert (actions[WRONG[0]], actions[WRONG[1]]) == ("relabel", "keep")


def test_most_doubted__is_a_region_of_one_given_class(audited_masks: Audited) -> None:
    dataset, audit = audited_masks.dataset, reading.audited("shapes")[1]
    rows = KIND.rows(dataset, audit, ask(scores.page, audit, scores.SuspectFilter(only_issues=True)))
    assert rows
    for row in rows:
        part = KIND.most_doubted(dataset, audit, row)
        assert part is not None
        given = np.asarray(results.given_masks(dataset)[row["sample_id"]])[part.pixels]
        assert {dataset.class_names[label] for label in given} == {part.given}
        assert part.suggested != part.given


def test_pretrained__serves_large_pictures_unless_somebody_chose_otherwise(
    audited_masks: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(features.CHOSEN, raising=False)
    small = audited_masks.dataset
    large = replace(small, height=LEAST_SIDE, width=LEAST_SIDE)
    found = KIND.pretrained(large, ["cross_entropy"], {})
    assert found["cross_entropy"].network.startswith("timm:")
    assert Path(str(found["cross_entropy"].weights)).is_file()
    assert KIND.pretrained(small, ["cross_entropy"], {}) == {}
    assert KIND.pretrained(large, ["cross_entropy"], {"cross_entropy": {"network": "resnet18"}}) == {}
    monkeypatch.setenv(features.CHOSEN, features.NO_BACKBONE)
    assert KIND.pretrained(large, ["cross_entropy"], {}) == {}
