"""The look of every screen keeps to one scale: four sizes of text, one grid of space, two accents."""

from __future__ import annotations

import colorsys
import re
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"
SHEETS = sorted(APP.rglob("*.css"))
SOURCES = sorted(path for kind in ("*.py", "*.js", "*.css", "*.toml") for path in APP.rglob(kind))
SIZES = {"--text-small", "--text", "--text-large", "--text-huge"}
SPACES = {"--space-1", "--space-2", "--space-3", "--space-4", "--space-6", "--space-8", "--space-12"}
ACCENTS = {
    *("#e08010", "#2f8be6", "#0b76c5", "#ff8c00", "#00aaff"),  # given and suggested: labels, a badge, masks
    *("#8a500b", "#1a5796", "#e2a258", "#7cb6f0"),  # the same as text on a light and on a dark page
}
LEAST_CHROMA = 0.2
"""Less of a colour is a grey."""
ORANGE, BLUE = (15, 46), (195, 228)
"""Hues in degrees."""


def values(sheet: str, name: str) -> list[str]:
    return re.findall(rf"(?<![\w-]){name}\s*:\s*([^;}}]+)", re.sub(r"/\*.*?\*/", "", sheet, flags=re.S))


def odd_sizes(sheet: str) -> list[str]:
    """Text that is not of the scale."""
    said = values(sheet, "font-size") + [one for one in values(sheet, "font") if one != "inherit"]
    of_charts = re.findall(r"(?<!base)[fF]ontSize[\"']?\s*[=:]\s*[\d.]+", sheet)
    return of_charts + [one for one in said if not set(re.findall(r"--text[\w-]*", one)) & SIZES]


def odd_spaces(sheet: str) -> list[str]:
    """Space between and inside things that is not of the grid."""
    said = [
        one
        for name in (r"padding(?:-\w+)?", r"margin(?:-\w+)?", r"(?:\w+-)?gap")
        for one in values(sheet, name)
    ]
    return [
        one
        for one in said
        if re.search(r"(?<![\w-])[\d.]*[1-9][\d.]*(?:px|rem|em)", one)
        or set(re.findall(r"--space-\w+", one)) - SPACES
    ]


def stray_accents(source: str) -> list[str]:
    """Oranges and blues that are not the accents of the given and the suggested label."""
    found = []
    for colour in re.findall(r"#[0-9a-fA-F]{6}(?![0-9a-fA-F])", source):
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        hue = 360 * colorsys.rgb_to_hsv(red, green, blue)[0]
        is_grey = max(red, green, blue) - min(red, green, blue) < LEAST_CHROMA
        is_accent = any(low <= hue <= high for low, high in (ORANGE, BLUE))
        if is_accent and not is_grey and colour.lower() not in ACCENTS:
            found.append(colour)
    return found


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_sheet__has_one_grid_of_space(path: Path) -> None:
    assert odd_spaces(path.read_text(encoding="utf-8")) == []


def test_sources__have_four_sizes_of_text() -> None:
    found = {path.name: odd_sizes(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: sizes for name, sizes in found.items() if sizes} == {}


def test_sources__have_orange_and_blue_for_given_and_suggested_only() -> None:
    found = {path.name: stray_accents(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: colours for name, colours in found.items() if colours} == {}


def test_scale__notices_another_size_space_and_accent() -> None:
    sheet = ".a { font-size: 13px; padding: 0 6px; margin: 0 auto; gap: var(--space-2); font: inherit; } "
    assert odd_sizes(sheet) == ["13px"]
    assert odd_sizes("mark_text(fontSize=12), {'labelFontSize': 9}") == ["fontSize=12", "FontSize': 9"]
    assert odd_spaces(sheet) == ["0 6px"]
    assert stray_accents("#e08010 #ffa500 #0b63b5 #8c6bb1 #4a5768") == ["#ffa500", "#0b63b5"]
