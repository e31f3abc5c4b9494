"""The documentation: its generated parts are current, its links lead somewhere, every setting is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import pages, reference

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
LAYERS = ("app", "auditor", "engines")
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCKS = reference.blocks()


@pytest.mark.parametrize(("path", "name"), list(BLOCKS), ids=[name for _, name in BLOCKS])
def test_generated_part__is_current(path: Path, name: str) -> None:
    remedy = "run `python -m tools.reference`"
    assert pages.block(path, name).strip() == BLOCKS[path, name].strip(), remedy


def anchors(path: Path) -> set[str]:
    """Where ``#...`` may lead on a page: its headings as MkDocs and GitHub write them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links__lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(path), f"{page.name}: {link}"


def prose(page: Path) -> str:
    """What one reads on a page: no code, tables, generated parts or addresses of links."""
    left_out = r"```.*?```|<!-- ([a-z-]+) -->.*?<!-- end of \1 -->"
    text = re.sub(left_out, "", page.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r" · ", ". ", text))
    return "\n".join(line for line in text.splitlines() if not line.startswith(("|", "    ")))


@pytest.mark.parametrize(
    "page", [one for one in PAGES if one.stem != "CHANGELOG"], ids=lambda page: page.name
)
def test_page__is_short_and_so_are_its_sentences(page: Path) -> None:
    text = prose(page)
    assert len(text.split()) < 1_200
    parts = re.split(r"\n\s*\n|\n(?=\s*[-*#>]|\d+\.\s)|(?<=[.!?:;])\s+", text)
    assert [part for part in parts if len(part.split()) > 30] == []


def test_settings__are_all_named() -> None:
    code = [path.read_text(encoding="utf-8") for name in LAYERS for path in (ROOT / name).rglob("*.py")]
    used = set(re.findall(r"\bAUDITOR_[A-Z_]+\b", "\n".join(code)))
    told = set(re.findall(r"\bAUDITOR_[A-Z_]+\b", (ROOT / "docs/settings.md").read_text(encoding="utf-8")))
    assert used == told


def test_pages__are_all_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f" {page.name}\n" not in menu] == []


def test_replace_block__keeps_what_is_around_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- end of x -->\nafter\n")
    pages.replace_block(page, "x", "new\n")
    assert pages.block(page, "x").strip() == "new"
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
