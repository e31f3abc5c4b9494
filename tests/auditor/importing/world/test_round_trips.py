"""What was imported of the world goes out again, and is read as the same labels and splits of the same pictures.

A folder of copies has no picture without a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.ground.errors import ExportRefusedError
from auditor.importing.class_names import meaning_of_names
from auditor.importing.imports import import_dataset
from auditor.outputs.export import export_table, export_tree
from auditor.pictures.sources import Source, SourceOptions, open_here
from tests.auditor.importing.world.cases import Case, Meant, cases
from tests.auditor.importing.world.outcomes import options_of, read_all

READABLE = [case for case in cases() if case.wanted and case.options.get("task") is None]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("case", READABLE, ids=str)
def test_export__is_read_as_what_was_imported(tmp_path: Path, case: Case) -> None:
    source = case.write(tmp_path / "set")
    options = options_of(case, tmp_path / "set")
    import_dataset(source, name="a", workers=1, **options)
    table = tmp_path / "cleaned.csv"
    export_table("a", table)
    opened = open_here(str(source), SourceOptions(**options))
    wanted = _meant(opened, options)
    if opened.info.kind not in ("tar", "webdataset"):  # whose images a table cannot name
        again = open_here(str(table), SourceOptions(root=opened.info.root))
        assert _meant(again, {}) == wanted
    out = tmp_path / f"again{''.join(source.suffixes) if source.is_file() else ''}"
    options |= {"root": opened.info.root} if source.is_file() and "root" not in options else {}
    try:
        if source.is_dir():
            export_tree("a", out)
            options = {"layout": options.get("layout")}
            wanted = {number: meant for number, meant in wanted.items() if meant.label is not None}
        else:
            export_table("a", out, as_source=True)
    except ExportRefusedError as error:
        if "use .csv" not in str(error):
            raise
        return
    assert _meant(open_here(str(out), SourceOptions(**options)), {}) == wanted


def _meant(opened: Source, options: Mapping[str, Any]) -> dict[int, Meant]:
    """What an import makes of the labels of a source."""
    found = read_all(opened)
    counts = Counter(meant.label for meant in found.values() if meant.label)
    called = meaning_of_names(opened.info, counts, merge=options.get("merge_classes")).called
    return {
        number: replace(meant, label=called.get(meant.label, meant.label) if meant.label else meant.label)
        for number, meant in found.items()
    }
