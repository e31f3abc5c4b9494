"""Every screen through the frame, as a person opens it; then one test an action."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit as st
import timm
from safetensors.torch import save_file
from streamlit.testing.v1 import AppTest

from app.panels import downloads, engines_ran
from app.session import next_steps, readers
from auditor import jobs
from auditor.audits import plan, worker
from auditor.bridges import engine_bridge
from auditor.catalog import audits, datasets, reviews, scores
from auditor.catalog import jobs as catalog_jobs
from auditor.catalog.db import ask, session
from auditor.catalog.records import AuditSummary, now
from auditor.ground.settings import settings
from auditor.pictures import cache
from auditor.results import settle, statements
from auditor.review import blind, drawing, log
from auditor.review import decisions as reviewing
from auditor.statistics import ErrorsLeft
from tests.app.conftest import NUM_SAMPLES, NUM_TEST, verify_sixty
from tests.app.screens.opened import asked_of, wait_until_over
from tests.auditor.catalogs import add_dataset
from tests.helpers import suggestions

ROOT = Path(__file__).resolve().parents[3]
DATASET = "tiny [digits](x)"
PAGES = [
    *("home", "import_", "audit", "verify", "suspects", "masks", "map", "classes", "engines", "export"),
]


def open_page(name: str, **state: object) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app" / "frame.py"), default_timeout=240)
    for key, value in state.items():
        app.session_state[key] = value
    if name.endswith("_"):  # its address is not the name of its file, which only a run knows
        app.run()
    if name != "home":
        app.switch_page(f"screens/{name}.py")
    app.run()
    assert not app.exception
    return app


def texts(app: AppTest) -> str:
    parts = [
        *app.markdown,
        *app.caption,
        *app.info,
        *app.error,
        *app.warning,
        *app.success,
        *app.text,
        *app.title,
    ]
    return "\n".join(str(part.value) for part in parts)


def names(app: AppTest) -> list[str]:
    """Datasets of Home."""
    return re.findall(r"^\*\*(.+?)\*\* &ensp;", texts(app), re.MULTILINE)


def decisions() -> dict[int, str]:
    with session() as open_session:
        return {sample: row.decision for sample, row in reviews.decisions(open_session, 1).items()}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("page", PAGES)
def test_page__on_an_empty_machine(page: str) -> None:
    app = open_page(page)
    assert not app.error
    assert app.title


@pytest.mark.usefixtures("home")
def test_home__empty_machine_offers_the_demo_and_an_import() -> None:
    app = open_page("home")
    assert app.button(key="home_demo").label == "Try the demo"
    (card,) = [one.proto.body for one in app.get("html") if 'class="start-card"' in one.proto.body]
    assert f"Change {card.count('✓')} labels" in card
    app.button(key="home_import").click().run()
    assert [title.value for title in app.title] == ["Import"]


@pytest.mark.usefixtures("copied_home")
@pytest.mark.parametrize("page", PAGES)
def test_page__on_an_audited_dataset(page: str) -> None:
    app = open_page(page, reviewer="Ada")
    assert not app.error
    assert app.title


@pytest.mark.usefixtures("copied_home")
def test_home__a_dataset_says_what_comes_next_and_leads_there() -> None:
    app = open_page("home")
    links = {one.proto.label for one in app.get("page_link")}
    assert links >= {"Home", "Suspects", "Export"}
    assert not links & {"Masks", "Numbers"}, "no screen that is not for classes"
    waits = next(one.value for one in app.markdown if "to be checked" in one.value)
    button = app.button(key="home_next_1").label
    app.button(key="home_next_1").click().run()
    assert [title.value for title in app.title] == ["Suspects"]
    audit = open_page("audit")
    assert audit.button(key="audit_next").label == button
    (said,) = [one.value for one in audit.markdown if "look wrong" in one.value]
    assert waits.split()[0].strip("*") in re.split(r"[ *]+", said), "both say the same number"


@pytest.mark.usefixtures("copied_home")
def test_home__a_first_list_is_reviewed_while_engines_train() -> None:
    with session() as open_session:
        audits.set_status(open_session, 1, "running")
        dataset = datasets.get(open_session, DATASET)
    seen = readers.status(dataset)
    step = next_steps.of(dataclasses.replace(seen, running=seen.finished))
    assert (step.page, "still train" in step.sentence) == ("suspects", True)
    assert "still train" not in next_steps.of(seen).sentence


@pytest.mark.usefixtures("copied_home")
def test_next_step__is_the_export_once_about_nothing_is_left() -> None:
    seen = readers.status(ask(datasets.get, DATASET))
    left = ErrorsLeft(found=30, low=0, point=2, high=14, kind="interval", sentence="")
    half = dataclasses.replace(seen, drawn=200, verified=60, left=left)
    assert next_steps.of(half).page == "verify", "suspects wait"
    for sample in np.flatnonzero(readers.score_table(seen.finished).is_label_issue).tolist():
        reviewing.decide(seen.dataset.id, sample, "keep", reviewer="Ada")
    assert (next_steps.of(half).page, next_steps.of(half).button) == ("export", "Export")
    assert next_steps.of(dataclasses.replace(half, left=dataclasses.replace(left, point=3))).page == "verify"
    assert (
        open_page("map").button(key="map_review").label == next_steps.of(readers.status(seen.dataset)).button
    )


@pytest.mark.usefixtures("copied_home")
def test_home__found_and_left_are_those_of_classes() -> None:
    verify_sixty()
    app = open_page("home")
    home = " ".join(one.proto.body for one in app.get("html"))
    classes = texts(open_page("classes"))
    found, left = (re.search(rf"\*\*([\w, ]+)\*\* {name}", classes)[1] for name in ("found", "left"))
    assert found != "0"
    assert f"<b>60</b> checked ({found} wrong)" in home
    assert f"{left.capitalize()} wrong labels left" in home


@pytest.mark.usefixtures("copied_home")
def test_home__what_is_left_is_not_counted_until_rows_are_verified() -> None:
    def bars() -> str:
        return " ".join(one.proto.body for one in open_page("home").get("html"))

    assert "suspects to check" not in bars(), "nothing is checked: the sentence says it all"
    reviewing.decide(1, 0, "keep", reviewer="Ada")
    assert "suspects to check" in bars()
    assert "wrong labels left" not in bars()


@pytest.mark.usefixtures("copied_home")
def test_home__shows_the_worst_and_another_name() -> None:
    app = open_page("home")
    assert len(app.get("image")) == 12
    app.text_input(key="home_name_1").input("renamed").run()
    app.button(key="home_rename_1").click().run()
    assert names(app) == ["renamed"]
    assert app.selectbox(key="dataset").value == "renamed"
    app.checkbox(key="home_sure_1").check().run()
    app.button(key="home_delete_1").click().run()
    assert readers.all_datasets() == []


@pytest.mark.usefixtures("copied_home")
def test_home__search_and_order_come_with_the_seventh_dataset() -> None:
    for number in range(5):
        add_dataset(f"few {number}", num=1)
    app = open_page("home")
    assert len(readers.all_datasets()) == 6
    assert "home_search" not in {one.key for one in app.text_input}
    add_dataset("few 5", num=1)
    open_page("home").text_input(key="home_search")


@pytest.mark.usefixtures("copied_home")
def test_home__names_are_text() -> None:
    app = open_page("home")
    assert names(app) == [r"tiny \[digits\]\(x\)"]


@pytest.mark.usefixtures("copied_home")
@pytest.mark.parametrize("page", ["suspects", "verify"])
def test_reviewer__nobody_is_asked_and_a_guest_can_give_a_name(page: str) -> None:
    drawing.draw(DATASET, 4)
    app = open_page(page)
    first, second = (one.session_state["reviewer"] for one in (app, open_page(page)))
    assert first.startswith("Guest ")
    assert first != second, "two browsers are two people"
    app.text_input(key="reviewer_change").input("Ada").run()
    assert app.session_state["reviewer"] == "Ada"
    assert "Give your name" not in texts(app)


@pytest.mark.usefixtures("copied_home")
def test_suspects__leads_to_verify_until_something_is_drawn() -> None:
    def hints() -> list[str]:
        links = open_page("suspects", reviewer="Ada").get("page_link")
        return [link.proto.label for link in links if link.proto.label == "How many are wrong? Verify"]

    assert len(hints()) == 1
    drawing.draw(DATASET, 4)
    assert hints() == []


@pytest.mark.usefixtures("copied_home")
def test_verify__shows_the_pictures_whose_labels_were_found_wrong() -> None:
    verify_sixty()
    with session() as open_session:
        given = datasets.given_labels(open_session, 1)
        verdicts = {sample: row.label for (_, sample), row in reviews.verdicts(open_session, 1).items()}
    wrong = [i for i, label in verdicts.items() if label not in (None, given[i])]
    app = open_page("verify", reviewer="Ada")
    assert f"**{len(wrong)} of the 60 random pictures were labeled wrong**" in texts(app)
    assert 0 < len(app.get("image")) == min(12, len(wrong))


@pytest.mark.usefixtures("copied_home")
def test_verify__draws_at_random_and_shows_what_is_known() -> None:
    app = open_page("verify", reviewer="Ada")
    app.number_input(key="verify_size").set_value(12).run()
    app.button(key="verify_draw").click().run()
    pending = blind.pending(1)
    assert len(pending) == 12
    with session() as open_session:
        given = datasets.given_labels(open_session, 1)
    examples = asked_of(app, "auditor_verify")["examples"]
    assert set(examples) == {str(given[sample]) for _, sample in pending}
    for label, samples in examples.items():
        assert {int(given[sample]) for sample in samples} == {int(label)}
        assert not set(samples) & {sample for _, sample in pending}, "none that is still to be judged"
    for draw, sample in pending:
        blind.record(draw, sample, "label", label=int(given[sample]), reviewer="Ada")
    app.run()
    helps = [one.help.replace("\\", "") for one in app.markdown if one.help]
    assert any("0 of 12 labels checked at random are wrong" in one for one in helps), helps
    assert app.button(key="verify_settle").label == "Use these verdicts in the ranking"


def stored() -> tuple[str, int, float]:
    """What the noise rate rests on, how many label issues there are, and the errors expected, by the catalog."""
    with session() as open_session:
        audit, table = audits.get(open_session, 1), scores.table(open_session, 1)
    return (
        statements.noise_rate_now(audit).kind,
        int(table.is_label_issue.sum()),
        float(table.error_probability.sum()),
    )


@pytest.mark.usefixtures("copied_home")
def test_verify__all_pictures_leave_nothing_to_guess() -> None:
    app = open_page("verify", reviewer="Ada")
    size = app.number_input(key="verify_size")
    assert any(f"{size.value} pictures tell " in each.value for each in app.subheader)
    size.set_value(int(size.max)).run()
    assert not any(" tell " in each.value for each in app.subheader)
    assert any("nothing has to be guessed" in each.value for each in app.caption)


@pytest.mark.usefixtures("copied_home")
def test_verify__verdicts_reach_the_ranking() -> None:
    draw = drawing.draw(DATASET, 20)
    for sample in draw.sample_ids:
        blind.record(draw.id, sample, "label", label=0, reviewer="Ada")
    app = open_page("verify", reviewer="Ada")
    _, num_issues, error_probability = stored()
    app.button(key="verify_settle").click().run()
    assert not app.error
    assert [title.value for title in app.title] == ["Suspects"]
    new_kind, new_num_issues, new_error_probability = stored()
    assert new_kind == "interval"
    assert new_num_issues > 2 * num_issues  # few of the labels are the zero that Ada saw everywhere
    assert new_error_probability > 2 * error_probability
    assert open_page("verify", reviewer="Ada").button(key="verify_next").label == "Review the suspects"


@pytest.mark.usefixtures("copied_home")
def test_engines__show_the_scores_of_the_last_settling() -> None:
    open_page("engines")
    draw = drawing.draw(DATASET, 200)
    for sample in draw.sample_ids:
        blind.record(draw.id, sample, "label", label=0, reviewer="Ada")
    before = readers.score_table(readers.audits_of(1)[0])
    settle.settle(1)
    with session() as open_session:
        stored = scores.table(open_session, 1)
    assert not stored.error_probability.equals(before.error_probability)
    assert readers.score_table(readers.audits_of(1)[0]).equals(stored)


@pytest.mark.usefixtures("copied_home")
def test_engines__a_switch_says_whether_earlier_runs_are_heard() -> None:
    assert not open_page("engines").toggle  # there is no earlier audit
    fast = {"choicenet": {"epochs": 1, "network": "mlp", "views": 1}}
    second = plan.plan_audit(DATASET, ["choicenet"], options=fast, map_method="pca", device="cpu")
    worker.run_audit(second)
    app = open_page("engines")
    (switch,) = app.toggle
    assert switch.value
    assert "Also used, from earlier audits" in texts(app)
    switch.set_value(False).run()
    assert not app.exception
    with session() as open_session:
        found = audits.get(open_session, second)
    assert found.options.alone
    assert found.summary.witnesses == ["choicenet"]
    assert not app.toggle[0].value
    assert "Also used, from earlier audits" not in texts(app)
    assert "One engine speaks." in texts(app)
    assert "engines agree" not in texts(app)
    assert [one.key for one in open_page("map").selectbox if one.key.startswith("map_")] == ["map_colour"]


@pytest.mark.usefixtures("copied_home")
def test_verify__more_are_drawn_on_request() -> None:
    draw = drawing.draw(DATASET, 1)
    blind.record(draw.id, draw.sample_ids[0], "unsure", reviewer="Ada")
    app = open_page("verify", reviewer="Ada")
    app.button(key="verify_more").click().run()
    assert len(blind.pending(1)) == drawing.FIRST_SIZE
    assert drawing.next_size(1) == NUM_SAMPLES - 1 - drawing.FIRST_SIZE


def relabel_three() -> str:
    with session() as open_session:
        audit = audits.get(open_session, 1)
        page = scores.page(open_session, audit, scores.SuspectFilter(only_undecided=True), limit=3)
    changes = [(sample_id, "relabel", label) for sample_id, label in suggestions(page)]
    return reviewing.decide_many(1, changes, reviewer="Ada", audit_id=1)


@pytest.mark.usefixtures("copied_home")
def test_export__counts_follow_the_decisions() -> None:
    relabel_three()
    app = open_page("export")
    assert "**3** of 240 labels change, all by people." in texts(app)
    assert app.button(key=f"export_revert_{reviewing.batches(1).batch[0]}").label == "Revert"


@pytest.mark.usefixtures("copied_home")
def test_export__a_job_makes_the_file_and_the_next_one_takes_its_place() -> None:
    for _ in range(2):
        app = open_page("export")
        app.button(key="export_csv").click().run()
        assert not app.error
        (seen,) = jobs.listed("export")
        wait_until_over(seen.job.id)
    (link,) = [
        page.proto.body for page in open_page("export").get("html") if "/bench/file/" in page.proto.body
    ]
    assert f'download="{downloads.file_stem(DATASET)}-cleaned.csv"' in link
    (made,) = (settings().job_folder(seen.job.id)).glob("*.csv")
    assert pd.read_csv(made).sample_id.tolist() == list(range(NUM_SAMPLES))
    assert not open_page("export").button(key="export_csv").disabled
    with session() as open_session:  # nobody works on it yet, so it cannot end while the page is drawn
        catalog_jobs.create(open_session, "export", DATASET, dataset_id=1, arguments=dict(seen.job.arguments))
    assert open_page("export").button(key="export_csv").disabled


@pytest.mark.usefixtures("copied_home")
def test_jobs__what_was_killed_is_resumed_or_forgotten() -> None:
    for button, left in (("job_resume", ["finished"]), ("job_dismiss", [])):
        with session() as open_session:
            arguments = {"policy": "reviewed", "max_fdr": None, "audit_id": 1, "file": "x-cleaned.csv"}
            job_id = catalog_jobs.create(open_session, "export", DATASET, dataset_id=1, arguments=arguments)
            gone = {"status": "running", "pid": 4_194_303, "host": catalog_jobs.this_host()}
            catalog_jobs.change(open_session, job_id, **gone)
        app = open_page("export")
        assert "Its process is gone" in texts(app)
        app.button(key=f"{button}_{job_id}").click().run()
        assert not app.error
        for seen in jobs.listed("export"):
            wait_until_over(seen.job.id)
        assert [seen.state for seen in jobs.listed("export")] == left
        for seen in jobs.listed("export"):
            jobs.remove(seen.job.id)


@pytest.mark.usefixtures("home")
def test_import__a_refused_one_shows_its_rows_until_it_is_dismissed(tmp_path: Path) -> None:
    upload = settings().uploads / "1" / "set.zip"
    upload.parent.mkdir(parents=True)
    upload.write_bytes(b"no zip")
    arguments = {"source": str(upload), "options": {}, "upload": str(upload)}
    with session() as open_session:
        job_id = catalog_jobs.create(open_session, "import", "photos", arguments=arguments)
        refused = {"problems": [("labels.csv", "7", "the file is missing")], "field": "skip_bad"}
        catalog_jobs.change(open_session, job_id, status="failed", error="One row.", result=refused)
    app = open_page("import_")
    assert "One row" in texts(app)
    assert "Leave out rows with problems" in texts(app)
    assert app.dataframe[0].value.problem.tolist() == ["the file is missing"]
    assert upload.exists()
    app.button(key=f"job_dismiss_{job_id}").click().run()
    assert jobs.listed() == []
    assert not upload.exists()


@pytest.mark.usefixtures("copied_home")
def test_export__a_batch_is_reverted() -> None:
    batch = relabel_three()
    app = open_page("export", reviewer="Grace")
    app.button(key=f"export_revert_{batch}").click().run()
    assert decisions() == {}
    assert set(reviewing.log_frame(1).reviewer) == {"Ada", "Grace"}


@pytest.mark.usefixtures("copied_home")
def test_export__blind_verdicts_are_part_of_the_log() -> None:
    assert "Nobody has decided anything yet." in texts(open_page("export"))
    verify_sixty()
    app = open_page("export")
    assert "Nobody has decided anything yet." not in texts(app)
    labels = [button.proto.label for button in app.get("download_button")]
    assert "Download the whole log (60 rows)" in labels
    dataset = readers.dataset(DATASET)
    first = pd.read_csv(io.BytesIO(downloads.log_csv(dataset, log.entries(1)))).iloc[0]
    assert (first.review_kind, first.reviewer) == ("blind", "Ada")
    assert first.filepath == f"images/{first.sample_id:04d}.png"
    assert first.given_label == dataset.class_names[readers.given_labels(dataset)[first.sample_id]]


@pytest.mark.usefixtures("copied_home")
def test_export__a_promise_that_nobody_can_keep_is_one_friendly_line() -> None:
    app = open_page("export")
    app.radio(key="export_policy").set_value("auto").run()
    assert not app.exception
    assert "check a random sample first" in texts(app)
    assert not app.error
    assert app.button(key="export_csv").label == "Cleaned CSV"


@pytest.mark.usefixtures("copied_home")
def test_export__where_nothing_changes_the_next_step_stands_out() -> None:
    app = open_page("export", reviewer="Ada")
    assert app.button(key="export_csv").proto.type == "secondary"
    assert app.button(key="export_next").proto.type == "primary"
    drawn = list(app.main)
    says_what = next(
        i for i, one in enumerate(drawn) if "The worst suspects" in str(getattr(one, "value", ""))
    )
    assert says_what < min(i for i, one in enumerate(drawn) if one.type == "image"), "above its pictures"
    reviewing.decide(1, 0, "exclude", reviewer="Ada")
    app.run()
    assert app.button(key="export_csv").proto.type == "primary"
    assert not [button for button in app.button if button.key == "export_next"]
    assert "The worst suspects" not in texts(app)


@pytest.mark.usefixtures("copied_home")
def test_import__a_path_outside_the_roots_is_one_friendly_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "allowed").mkdir()
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(tmp_path / "allowed"))
    app = open_page("import_")
    app.text_input(key="import_path").input("/etc").run()
    assert "is outside the folders that this server may import from" in app.error[0].value.replace("\\", "")


@pytest.mark.usefixtures("home")
def test_import__preview_shows_rows_classes_and_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tests.app.conftest import write_digits

    table = write_digits(tmp_path / "source", num_samples=30, num_wrong=3)
    (tmp_path / "source" / "images" / "0007.png").write_bytes(b"no image")
    lines = table.read_text().splitlines()
    lines[10] = "images/0009.png,nan,,train,"
    table.write_text("\n".join(lines))
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(tmp_path))
    app = open_page("import_")
    app.text_input(key="import_path").input(str(table)).run()
    found = next(one.value for one in app.markdown if one.value.startswith("**30** pictures"))
    assert found == "**30** pictures, 10 classes, 1 without a label, 1 problem"
    assert "nan' is no label" in texts(app)
    assert "the import is refused unless those rows are left out" in texts(app)
    with session() as open_session:
        assert datasets.list_all(open_session) == []


@pytest.mark.usefixtures("copied_home")
def test_audit__the_finished_audit_shows_its_engines() -> None:
    app = open_page("audit")
    assert "finished" in texts(app)
    assert app.button(key="audit_start").label == "Start the audit"


@pytest.mark.usefixtures("copied_home")
def test_audit__shows_pairs_of_classes_and_each_leads_to_its_suspects() -> None:
    suspects = scores.SuspectFilter(only_issues=True, only_undecided=True)
    with session() as open_session:
        counts = scores.pair_counts(open_session, audits.get(open_session, 1), suspects)
    app = open_page("audit", reviewer="Ada")
    opened = [one for one in app.button if (one.key or "").startswith("open_audit_")]
    said = [int(re.findall(r"\d+", one.label)[0]) for one in opened]
    assert said == counts["count"].tolist()[:6]
    assert len(app.get("image")) == sum(min(4, many) for many in said)
    opened[0].click().run()
    assert [title.value for title in app.title] == ["Suspects"]
    first = counts.iloc[0][["given_label", "suggested_label"]].astype(int).astype(str).tolist()
    assert [app.query_params[f"suspects_{end}"] for end in ("given", "suggested")] == first


@pytest.mark.usefixtures("copied_home")
def test_audit__says_how_many_of_the_suspects_are_checked() -> None:
    with session() as open_session:
        many = audits.get(open_session, 1).summary.num_label_issues or 0
        only = scores.SuspectFilter(only_issues=True)
        first = scores.page(open_session, audits.get(open_session, 1), only, limit=1).sample_id.iloc[0]
    assert "of them" not in texts(open_page("audit"))
    reviewing.decide(1, int(first), "keep", reviewer="Ada")
    said = [one.value for one in open_page("audit").markdown if "checked" in one.value]
    assert said == [rf"1 of them is checked, {many - 1} wait\."]


@pytest.mark.usefixtures("copied_home")
def test_audit__says_how_sure_it_is() -> None:
    assert "Nobody knows yet how many labels are wrong" in texts(open_page("audit"))
    verify_sixty()
    audit, export = texts(open_page("audit")), texts(open_page("export"))
    (said,) = re.findall(r"Checks say: \*\*.+? %\*\* of the labels .+", audit)
    assert said in export, "to be quoted"


@pytest.mark.usefixtures("copied_home")
def test_audit__while_it_runs_the_first_suspects_show_and_no_form() -> None:
    with session() as open_session:
        audits.set_status(open_session, 1, "running")
        job = catalog_jobs.of_audit(open_session, 1)
        assert job is not None
        catalog_jobs.change(open_session, job.id, status="running", pid=None, heartbeat_at=now())
    app = open_page("audit")
    assert "badge[running]" in texts(app)
    assert app.get("image")
    assert "suggested label" in texts(app), "suspects"
    assert app.button(key="audit_next").label
    assert not [one for one in app.button if one.key == "audit_start"]
    with session() as open_session:
        audits.change(open_session, 1, summary=AuditSummary())
    app = open_page("audit")
    assert "Suspects show here" in texts(app)
    captions = [one.caption for image in app.get("image") for one in image.proto.imgs]
    assert captions
    assert not any("→" in one for one in captions), "as they were given"


def test_audit__own_features_and_changed_settings_reach_the_audit(
    copied_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(copied_home))
    numbers = np.random.default_rng(0).normal(size=(NUM_SAMPLES, 5))
    np.save(copied_home / "short.npy", numbers[1:])
    np.save(copied_home / "mine.npy", numbers)
    app = open_page("audit", audit_backbone="own", audit_settings_seen=True)
    for file in ("short.npy", "mine.npy"):
        assert not app.error
        app.text_input(key="audit_own_path").input(str(copied_home / file))
        next(button for button in app.button if button.label == "Use these features").click().run()
        if file == "short.npy":
            assert f"the dataset has {len(numbers)} samples" in app.error[0].value
            app.run()
    assert not app.exception
    assert app.selectbox(key="audit_backbone").value.startswith("own-")
    for box in app.checkbox:
        if box.key and box.key.startswith("audit_engine_"):
            box.set_value(box.key == "audit_engine_cross_entropy")
    app.run()
    assert app.text_input(key="audit_set_cross_entropy_epochs").placeholder == "6"
    app.text_input(key="audit_set_cross_entropy_epochs").input("2")
    app.text_input(key="audit_set_cross_entropy_batch_size").input("128")  # the preset's own
    app.button(key="audit_start").click().run()
    assert not app.exception
    newest = readers.audits_of(1)[0]
    plan.cancel_audit(newest.id or 0)
    with session() as open_session:
        (run,) = audits.runs(open_session, newest.id or 0)
    changed = {"cross_entropy": {"epochs": 2}}
    assert (
        run.config
        == engine_bridge.configs(["cross_entropy"], "quick", changed, on_features=True)["cross_entropy"]
    )
    assert newest.options.features["name"] == "own:mine"
    assert plan.wait_for_audit(newest.id or 0, lambda _: None).is_over


def test_audit__fine_tuning_of_a_backbone_can_be_chosen(copied_home: Path) -> None:
    name = "timm:mobilenetv3_large_100"
    place = copied_home / "weights" / name.replace(":", "-")
    place.mkdir(parents=True)
    network = timm.create_model("mobilenetv3_large_100", num_classes=0)
    save_file(network.state_dict(), place / "model.safetensors")
    (place / "about.json").write_text('{"file": "model.safetensors"}')
    st.cache_data.clear()
    # Checked from the start: each look at the page with another choice measures the machine in a new process.
    app = open_page("audit", audit_backbone=name, audit_finetune="all", audit_settings_seen=True)
    st.cache_data.clear()  # of these weights, for the tests after this one
    assert app.selectbox(key="audit_backbone").value == name
    app.text_input(key="audit_set_l2b_trunk_rate").input("0.5")
    app.button(key="audit_start").click().run()
    assert not app.exception
    newest = readers.audits_of(1)[0]
    plan.cancel_audit(newest.id or 0)
    with session() as open_session:
        runs = {run.engine: run.config for run in audits.runs(open_session, newest.id or 0)}
    assert set(newest.options.further) == {"cross_entropy", "coteaching", "umn", "l2b", "choicenet"}
    assert newest.options.features["name"] == name
    trained = {config["network"] for config in runs.values() if "network" in config}
    assert trained == {name}
    assert (runs["l2b"]["trunk_rate"], runs["umn"]["trunk_rate"]) == (0.5, 0.1)
    assert plan.wait_for_audit(newest.id or 0, lambda _: None).is_over


@pytest.mark.usefixtures("copied_home")
@pytest.mark.parametrize(("typed", "told"), [("many", "it must be a whole number"), ("0", "at least 1")])
def test_audit__a_setting_out_of_range_is_one_line_and_starts_nothing(typed: str, told: str) -> None:
    app = open_page("audit", audit_settings_seen=True)
    app.text_input(key="audit_set_l2b_epochs").input(typed)
    app.button(key="audit_start").click().run()
    assert not app.exception
    (error,) = app.error
    assert "epochs is" in error.value.replace("\\", "")
    assert told in error.value
    assert len(readers.audits_of(1)) == 1


@pytest.mark.usefixtures("copied_home")
def test_classes__lists_every_class_by_its_own_name() -> None:
    table = open_page("classes").dataframe[0].value
    assert {"<b>three</b>", "*four*"} < set(table["class"])
    assert table["given"].sum() == 240
    with session() as open_session:
        scored = scores.table(open_session, 1)
    suspects = scored[scored.is_label_issue].given_label.value_counts()
    assert table.suspects.tolist() == [suspects.get(label, 0) for label in range(len(table))]
    assert table.suspects.sum() > 0


@pytest.mark.usefixtures("copied_home")
def test_classes__a_split_leads_to_its_suspects() -> None:
    app = open_page("classes", reviewer="Ada")
    table = next(frame.value for frame in app.dataframe if "split" in frame.value.columns)
    assert table.set_index("split").labels.to_dict() == {"train": NUM_SAMPLES - NUM_TEST, "test": NUM_TEST}
    with session() as open_session:
        is_suspect = scores.table(open_session, 1).is_label_issue.to_numpy(dtype=bool)
    of_test = int(is_suspect[NUM_SAMPLES - NUM_TEST :].sum())
    assert table.set_index("split").suspects.to_dict() == {
        "train": is_suspect.sum() - of_test,
        "test": of_test,
    }
    place = table["split"].tolist().index("test")
    app.session_state["classes_splits"] = {"selection": {"rows": [place], "columns": [], "cells": []}}
    app.run()
    assert [title.value for title in app.title] == ["Suspects"]
    chosen = app.selectbox(key="suspects_split")
    assert chosen.format_func(chosen.value) == "Split: test"
    assert app.query_params["suspects_split"] == "in-test"


@pytest.mark.usefixtures("copied_home")
def test_classes__a_pair_stands_beside_its_suspects_and_what_was_found_wrong() -> None:
    standing = statements.load(1)
    moves = statements.statements(standing).moves
    known = {(one.given, one.right) for one in moves}
    sample, given = next(iter(enumerate(standing.given_labels.tolist())))
    label = next(one for one in range(10) if one != given and (given, one) not in known)
    reviewing.decide(standing.dataset.id, sample, "relabel", label=label, reviewer="Ada")
    moves = statements.statements(statements.load(1)).moves[:12]
    assert any((one.given, one.right, one.found, one.suspected) == (given, label, 1, 0) for one in moves)
    app = open_page("classes")
    assert len(app.get("image")) == sum(min(4, one.suspected + one.found) for one in moves)


@pytest.mark.usefixtures("copied_home")
@pytest.mark.parametrize("by", ["button", "cell"])
def test_classes__a_pair_opens_the_suspects_of_that_pair_and_no_arrow_goes_back(by: str) -> None:
    standing = statements.load(1)
    names = standing.dataset.class_names
    # One that is not as frequent the other way round, so that an exchange shows.
    suspected = {(one.given, one.right): one.suspected for one in statements.statements(standing).moves}
    pair = next(pair for pair, number in suspected.items() if number > suspected.get(pair[::-1], 0))
    app = open_page("classes", reviewer="Ada")
    button = app.button(key="classes_pair_{}_{}".format(*pair))
    said = [part.replace("\\", "") for part in re.findall(r"\[\*\*(.+?)\*\*\]", button.label)]
    assert said == [names[one] for one in pair]
    if by == "button":
        button.click().run()
    else:
        cell = {"given": names[pair[0]], "right": names[pair[1]]}
        app.session_state["classes_matrix"] = {"selection": {"cell": [cell]}}
        app.run()
    assert [title.value for title in app.title] == ["Suspects"]
    assert (app.query_params["suspects_given"], app.query_params["suspects_suggested"]) == tuple(
        map(str, pair)
    )
    where = scores.SuspectFilter(*pair, only_issues=True, only_undecided=True)
    with session() as open_session:
        audit = audits.get(open_session, 1)
        listed = scores.page(open_session, audit, where, limit=100)
    assert len(listed) == suspected[pair]
    assert set(zip(listed.given_label, listed.suggested_label, strict=True)) == {pair}


@pytest.mark.usefixtures("copied_home")
def test_engines__a_row_says_how_each_ran_and_known_truth_what_it_finds() -> None:
    (table,) = [one.proto.body for one in open_page("engines").get("html") if 'class="ran"' in one.proto.body]
    head, *rows = [
        re.findall(r"<t[hd].*?>(.*?)</t[hd]>", line) for line in re.findall(r"<tr>.*?</tr>", table)
    ]
    assert head == ["Engine", "Doubts", "Area under ROC", "Time"]
    assert [engines_ran.TOGETHER in row[0] for row in rows] == [False, False, True]
    assert all(row[1].endswith(" %") and row[3].endswith(" s") for row in rows[:2])
    assert all(float(row[2]) > 0.6 for row in rows)


@pytest.mark.usefixtures("copied_home")
def test_engines__says_which_engine_was_right_about_what_people_checked() -> None:
    dataset = readers.all_datasets()[0]
    truth, given = cache.true_labels(dataset), readers.given_labels(dataset)
    for sample in range(40):
        is_right = truth[sample] == given[sample]
        decision, label = ("keep", None) if is_right else ("relabel", int(truth[sample]))
        reviewing.decide(dataset.id, sample, decision, label=label, reviewer="Ada")
    app = open_page("engines")
    (table,) = [one.proto.body for one in app.get("html") if 'class="ran"' in one.proto.body]
    wrong = int((truth[:40] != given[:40]).sum())
    assert f"{engines_ran.WRONG_DOUBTED}</th>" in table
    assert len(re.findall(rf"<td>\d+ of {wrong}</td><td>\d+ of {40 - wrong}</td>", table)) == 3
    assert "People checked 40 labels, 0 of them drawn at random." in texts(app)


@pytest.mark.usefixtures("copied_home")
def test_engines__disagreement_leads_to_its_queue() -> None:
    app = open_page("engines", reviewer="Ada")
    (table,) = [one.proto.body for one in app.get("html") if 'class="votes"' in one.proto.body]
    assert 0 < table.count("<img") == table.count("1 of 2 says wrong")
    app.button(key="engines_disagree").click().run()
    assert [title.value for title in app.title] == ["Suspects"]
    assert app.selectbox(key="suspects_agreement").value == -1


@pytest.mark.usefixtures("copied_home")
def test_engines__a_picture_opens_among_the_suspects() -> None:
    app = open_page("engines", reviewer="Ada")
    button = next(one for one in app.button if (one.key or "").startswith("engines_open_"))
    sample = str(button.key).removeprefix("engines_open_")
    button.click().run()
    assert [title.value for title in app.title] == ["Suspects"]
    assert app.text_input(key=f"suspects_search_{readers.all_datasets()[0].id}").value == f"#{sample}"


@pytest.mark.usefixtures("copied_home")
def test_frame__an_unexpected_error_shows_an_id_and_no_traceback(copied_home: Path) -> None:
    # A whole file with another content than ever was written there: nothing checks for that.
    np.save(copied_home / "audits" / "1" / "cross_entropy" / "trust_score.npy", np.array(["broken"]))
    app = open_page("engines")
    app.session_state["engines_signals"] = True
    app.run()
    assert not app.exception
    number = app.error[0].value.replace("\\", "").split("logged as ")[1].split(" ")[0]
    assert f"error {number}" in (copied_home / "app.log").read_text()
