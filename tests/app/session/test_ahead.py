"""Scripts that are fetched ahead: those that are served, and little enough of them."""

from __future__ import annotations

import gzip

from app.session import ahead

MOST_BYTES = 1_000_000


def test_scripts__hold_the_charts_and_stay_below_what_a_page_may_send() -> None:
    names = ahead.scripts()
    assert any(name.startswith("ArrowVegaLiteChart.") for name in names), (
        "Streamlit keeps its charts elsewhere"
    )
    packed = sum(len(gzip.compress((ahead.FOLDER / name).read_bytes(), 6)) for name in names)
    assert packed < MOST_BYTES


def test_fetching__names_every_script_below_the_path_of_the_app() -> None:
    html = ahead.fetching("/team")
    assert all(f'"/team/static/js/{name}"' in html for name in ahead.scripts())
    assert html.count("</script>") == 1
