"""What a person chose stays chosen, and what the import page offers is what was asked for last."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from auditor.catalog import audits, datasets, scores
from auditor.catalog.db import session
from auditor.catalog.records import NewAudit, names_of, values_of
from auditor.importing import import_dataset
from auditor.review import decisions
from tests.app.conftest import DATASET, write_digits
from tests.app.screens.test_pages import open_page, texts


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def preview_path(app: AppTest, path: Path) -> AppTest:
    return app.text_input(key="import_path").input(str(path)).run()


def go_to(app: AppTest, page: str) -> AppTest:
    return app.switch_page(f"screens/{page}.py").run()


def add_audit(copied_home: Path) -> None:
    """A second finished audit: a copy of the first that trusts every label by a quarter."""
    with session() as open_session:
        first = values_of(audits.get(open_session, 1))
        assert audits.create(open_session, NewAudit(**{n: first[n] for n in names_of(NewAudit)}), []) == 2
        table = scores.table(open_session, 1).assign(trust_score=0.25).drop(columns="sample_id")
        scores.store(open_session, 2, {name: table[name].to_numpy() for name in table.columns})
    shutil.copytree(copied_home / "audits" / "1", copied_home / "audits" / "2")


@pytest.fixture
def importing(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AppTest:
    """The import page; paths below tmp_path may be read."""
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(tmp_path))
    return open_page("import_")


def test_import__a_failed_preview_leaves_nothing_to_import(importing: AppTest, tmp_path: Path) -> None:
    table = write_digits(tmp_path / "source", num_samples=12, num_wrong=1)
    app = preview_path(importing, table)
    assert app.button(key="import_start").label == "Import"
    app = preview_path(app, tmp_path / "typo.csv")
    assert "does not exist on this server" in app.error[0].value.replace("\\", "")
    assert not [button for button in app.button if button.key == "import_start"]


@pytest.mark.usefixtures("copied_home")
def test_import__the_sidebar_names_what_this_session_imported(tmp_path: Path) -> None:
    app = open_page("import_")
    import_dataset(write_digits(tmp_path, num_samples=12, num_wrong=1), name="second", workers=1)
    assert app.run().selectbox(key="dataset").value == DATASET  # it was somebody else's
    app.session_state["import_started"] = "second"
    assert app.run().selectbox(key="dataset").value == "second"
    assert go_to(app, "audit").selectbox(key="dataset").value == "second"


def test_import__the_source_stands_beside_the_button(importing: AppTest, tmp_path: Path) -> None:
    table = write_digits(tmp_path / "source", num_samples=12, num_wrong=1)
    app = preview_path(importing, table)
    assert "from labels.csv" in texts(app).replace("\\", "")


def test_import__the_preview_follows_what_is_chosen(importing: AppTest, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er" / "still"
    table = write_digits(folder, num_samples=12, num_wrong=1)
    app = importing.run()
    assert str(table) not in app.selectbox(key="import_pick").options, "too deep to be listed"
    app = app.selectbox(key="import_pick").set_value(str(folder.parent)).run()
    app = app.selectbox(key="import_pick").set_value(str(folder)).run()
    assert app.text_input(key="import_path").value == str(folder)
    app = app.selectbox(key="import_pick").set_value(str(table)).run()
    assert "**12** pictures, 10 classes" in texts(app)
    app = app.text_input(key="import_label_column").input("split").run()
    assert "**12** pictures, 1 class" in texts(app), "read as it is said"
    app = app.text_input(key="import_path").input("").run()
    assert "**12**" not in texts(app)
    assert not [button for button in app.button if button.key == "import_start"]


def test_import__errors_name_the_fields_of_the_page(importing: AppTest, tmp_path: Path) -> None:
    (tmp_path / "no_paths.csv").write_text("colour,weight\nred,1\nblue,2\n")
    app = preview_path(importing, tmp_path / "no_paths.csv")
    told = app.error[0].value.replace("\\", "")
    assert "“Column of picture paths”" in told
    assert "--path-column" not in told


@pytest.mark.usefixtures("copied_home")
def test_import__a_taken_name_is_told_before_the_button_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(tmp_path))
    table = write_digits(tmp_path / "source", num_samples=12, num_wrong=1)
    app = preview_path(open_page("import_"), table)
    assert app.text_input(key="import_name").value == "labels"
    app.text_input(key="import_name").input(DATASET).run()
    assert "exists already" in texts(app)
    assert app.button(key="import_start").disabled
    app.text_input(key="import_name").input("free").run()
    assert not app.button(key="import_start").disabled
    assert "**12** pictures" in texts(app)


@pytest.mark.usefixtures("copied_home")
def test_import__the_offered_name_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(tmp_path))
    with session() as open_session:
        datasets.change(open_session, datasets.get(open_session, DATASET).id, name="labels")
    table = write_digits(tmp_path / "source", num_samples=12, num_wrong=1)
    app = preview_path(open_page("import_"), table)
    assert app.text_input(key="import_name").value == "labels 2"


def filters(app: AppTest) -> dict[str, Any]:
    names = ("show", "given", "suggested", "pair", "agreement")
    return {name: app.selectbox(key=f"suspects_{name}").value for name in names}


@pytest.mark.usefixtures("copied_home")
def test_filters__survive_another_page_and_a_reload() -> None:
    app = open_page("suspects", reviewer="Ada")
    app.selectbox(key="suspects_show").set_value("undecided").run()
    app.selectbox(key="suspects_given").set_value(3).run()
    chosen = filters(app)
    address = {name: app.query_params[name] for name in ("suspects_show", "suspects_given")}
    assert address == {"suspects_show": "undecided", "suspects_given": "3"}
    assert filters(go_to(go_to(app, "classes"), "suspects")) == chosen
    cleared = filters(app.button(key="suspects_clear").click().run())
    assert cleared == chosen | {"given": "all"}
    fresh = AppTest.from_file(str(Path(__file__).parents[3] / "app" / "frame.py"), default_timeout=240)
    fresh.session_state["reviewer"] = "Ada"
    fresh.run()
    fresh.switch_page("screens/suspects.py")
    for name, value in address.items():
        fresh.query_params[name] = value
    assert filters(fresh.run()) == chosen


@pytest.mark.usefixtures("copied_home")
def test_filters__a_chip_says_each_and_takes_it_alone_away() -> None:
    app = open_page("suspects", reviewer="Ada")
    app.selectbox(key="suspects_given").set_value(3).run()
    app.selectbox(key="suspects_people").set_value((1, 2)).run()
    chips = {one.key: one.label for one in app.button if (one.key or "").startswith("suspects_chip_")}
    assert chips == {
        "suspects_chip_suspects_people": "Share 1 of 2",
        "suspects_chip_suspects_given": r"Given\: five",
    }
    app.button(key="suspects_chip_suspects_given").click().run()
    assert app.selectbox(key="suspects_given").value == "all"
    assert app.selectbox(key="suspects_people").value == (1, 2)
    left = [one.key for one in app.button if (one.key or "").startswith("suspects_chip_")]
    assert left == ["suspects_chip_suspects_people"]


@pytest.mark.usefixtures("copied_home")
def test_filters__a_pair_that_the_address_names_is_chosen() -> None:
    app = open_page("suspects", reviewer="Ada")
    pair = next(one for one in app.selectbox(key="suspects_pair").options if one != "Pair: any")
    app.selectbox(key="suspects_pair").select(pair).run()
    code = "-".join(str(label) for label in app.selectbox(key="suspects_pair").value[:2])
    assert app.query_params["suspects_pair"] == code
    app.selectbox(key="suspects_pair").set_value("all").run()
    assert "suspects_pair" not in app.query_params


@pytest.mark.usefixtures("copied_home")
def test_filters__an_address_that_makes_no_sense_is_the_default() -> None:
    app = open_page("home", reviewer="Ada")
    app.switch_page("screens/suspects.py")
    app.query_params["suspects_given"] = "99"
    app.run()
    assert not app.exception
    assert app.selectbox(key="suspects_given").value == "all"


def test_audit__the_chosen_one_is_kept_and_named_when_it_is_not_the_newest(copied_home: Path) -> None:
    add_audit(copied_home)
    app = open_page("classes", reviewer="Ada")
    assert app.selectbox(key="audit").value == 2
    assert "is newer" not in texts(app)
    app.selectbox(key="audit").set_value(1).run()
    assert "Audit 1 is shown; audit 2 is newer." in texts(app)
    for page in ("export", "suspects", "home", "verify"):
        app = go_to(app, page)
        if page != "home":
            assert app.selectbox(key="audit").value == 1
            assert "Audit 1 is shown; audit 2 is newer." in texts(app)


def test_export__tells_what_the_chosen_audit_says(copied_home: Path) -> None:
    add_audit(copied_home)
    decisions.decide(1, 1, "exclude", reviewer="Ada")
    app = open_page("export", reviewer="Ada")
    assert app.selectbox(key="audit").value == 2
    assert [float(trust) for trust in first_rows(app).trust_score] == [0.25]
    app.selectbox(key="audit").set_value(1).run()
    assert "Audit 1 is shown; audit 2 is newer." in texts(app)
    with session() as open_session:
        row = scores.of_samples(open_session, 1, [1])[1]
    assert [float(trust) for trust in first_rows(app).trust_score] == [pytest.approx(row.trust_score)]


def first_rows(app: AppTest) -> pd.DataFrame:
    """The export page's rows that change."""
    return next(frame.value for frame in app.dataframe if "cleaned_label" in frame.value.columns)
