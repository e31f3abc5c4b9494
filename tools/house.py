"""Draw the house from its imports: rooms as boxes, floors as rows, and the arrows between them as numbers.

    python -m tools.house                    # docs/images/house.svg and the table in docs/architecture.md
    python -m tools.house --before FOLDER    # docs/images/house-before.svg, from a checkout of the commit below

A room is a module or a package directly inside a layer. The floor of a room is one above the highest room that
it imports; a room that imports no other one is on the ground.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tools.pages import DOCS, ROOT, replace_block

LAYERS = ("app", "auditor", "engines")
BEFORE_COMMIT = "07d0bcd"
CODE = ("*.py", "*.js", "*.css")
BOX_WIDTH, BOX_HEIGHT, GAP, FLOOR_GAP, MARGIN = 122, 22, 6, 20, 18
MOST_IN_A_ROW = 7
COLOURS = {"app": "#0072B2", "auditor": "#009E73", "engines": "#B35900"}
INK, PALE = "#1b2430", "#5a6675"


@dataclass(frozen=True)
class Layer:
    """One layer: its rooms, what they import of each other, and its size."""

    name: str
    arrows: dict[str, Counter[str]]
    """Room -> rooms of the same layer that it imports, with the number of import lines."""
    num_files: int
    num_lines: int
    """Lines of Python, JavaScript and CSS."""

    @property
    def floors(self) -> list[list[str]]:
        """Rooms floor by floor, the ground first."""
        reached = {room: self._reached_from(room) for room in self.arrows}
        height: dict[str, int] = {}

        def floor_of(room: str) -> int:
            if room not in height:
                # An arrow of a circle has no direction up or down.
                below = [floor_of(other) for other in self.arrows[room] if room not in reached[other]]
                height[room] = max(below, default=-1) + 1
            return height[room]

        floors: list[list[str]] = [[] for _ in range(max(floor_of(room) for room in self.arrows) + 1)]
        for room in sorted(self.arrows):
            floors[height[room]].append(room)
        return floors

    def _reached_from(self, room: str) -> set[str]:
        reached: set[str] = set()
        waiting = [room]
        while waiting:
            for other in self.arrows[waiting.pop()]:
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        return reached

    @property
    def num_arrows(self) -> int:
        """Pairs of rooms of which one imports the other."""
        return sum(len(others) for others in self.arrows.values())

    @property
    def row(self) -> tuple[int, int, int, int, int]:
        """Rooms, floors, arrows, files, lines: one row of the table."""
        return len(self.arrows), len(self.floors), self.num_arrows, self.num_files, self.num_lines


def read_layer(root: Path, name: str) -> Layer:
    """Read one layer's rooms and imports from the files below ``root / name``.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    folder = root / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not there; name a folder with {', '.join(LAYERS)}")
    rooms = {path.stem for path in folder.glob("*.py")} | {
        path.parent.relative_to(folder).parts[0] for path in folder.glob("*/**/*.py")
    }
    rooms.discard("__init__")
    arrows: dict[str, Counter[str]] = {room: Counter() for room in rooms}
    files = [path for path in folder.rglob("*.py") if "__pycache__" not in path.parts]
    for path in files:
        mine = path.relative_to(folder).with_suffix("").parts[0]
        if mine == "__init__":
            continue
        for other in _imported_rooms(path, root, name):
            if other in rooms and other != mine:
                arrows[mine][other] += 1
    code = [path for kind in CODE for path in folder.rglob(kind) if "__pycache__" not in path.parts]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in code)
    return Layer(name, arrows, len(files), lines)


def _imported_rooms(path: Path, root: Path, layer: str) -> list[str]:
    found = []
    package = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from auditor import files` names the room itself, `from auditor.ground.files import x` the module.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == layer else [module]
        found += [name.split(".")[1] for name in names if name.startswith(f"{layer}.")]
    return found


def draw(layers: list[Layer], title: str) -> str:
    """The house as SVG: one block a layer, the ground at the bottom of each."""
    width = MARGIN * 2 + MOST_IN_A_ROW * (BOX_WIDTH + GAP)
    parts: list[str] = []
    top = 56
    for layer in layers:
        rooms, floors, arrows, files, lines = layer.row
        told = (
            f"{rooms} rooms on {floors} floors, {arrows} arrows between them; {files} files, {lines:,} lines"
        )
        parts.append(
            f'<text x="{MARGIN}" y="{top}" font-size="15" font-weight="600" fill="{COLOURS[layer.name]}">'
            f'{layer.name}<tspan dx="10" font-size="12" font-weight="400" fill="{PALE}">{told}</tspan></text>'
        )
        top += 12
        block, top = _draw_floors(layer, top)
        parts += [block]
        top += 34
    height = top - 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif">\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="{MARGIN}" y="28" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _draw_floors(layer: Layer, top: int) -> tuple[str, int]:
    places: dict[str, tuple[int, int]] = {}
    bands = []
    for number, rooms in reversed(list(enumerate(layer.floors))):
        rows = [rooms[start : start + MOST_IN_A_ROW] for start in range(0, len(rooms), MOST_IN_A_ROW)]
        for row in rows:
            for place, room in enumerate(row):
                indent = (MOST_IN_A_ROW - len(row)) * (BOX_WIDTH + GAP) // 2
                places[room] = (MARGIN + indent + place * (BOX_WIDTH + GAP), top)
            top += BOX_HEIGHT + GAP
        bands.append(f'<text x="4" y="{top - 12}" font-size="9" fill="{PALE}">{number}</text>')
        top += FLOOR_GAP - GAP
    lines = [
        f'<line x1="{places[room][0] + BOX_WIDTH / 2}" y1="{places[room][1] + BOX_HEIGHT}" '
        f'x2="{places[other][0] + BOX_WIDTH / 2}" y2="{places[other][1]}"/>'
        for room in sorted(layer.arrows)
        for other in sorted(layer.arrows[room])
    ]
    boxes = [
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" fill="#f3f5f8" '
        f'stroke="{COLOURS[layer.name]}"/><text x="{x + BOX_WIDTH / 2}" y="{y + 15}" font-size="11" '
        f'text-anchor="middle" fill="{INK}">{_shortened(room)}</text>'
        for room, (x, y) in places.items()
    ]
    strokes = f'<g stroke="{COLOURS[layer.name]}" stroke-opacity="0.28">' + "".join(lines) + "</g>"
    return "\n".join([strokes, *boxes, *bands]), top


def _shortened(room: str) -> str:
    return escape(room if len(room) <= 19 else room[:18] + "…")


def table(layers: list[Layer], before: dict[str, tuple[int, int, int, int, int]]) -> str:
    """Markdown of what each layer is made of, before and now."""
    head = ["layer", "rooms", "floors", "arrows", "files", "lines"]
    out = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * 5]
    for layer in layers:
        cells = [f"{old:,} → {new:,}" for old, new in zip(before[layer.name], layer.row, strict=True)]
        out.append(f"| `{layer.name}` | " + " | ".join(cells) + " |")
    old, new = sum(row[4] for row in before.values()), sum(layer.row[4] for layer in layers)
    out.append(f"| together | | | | | {old:,} → {new:,} |")
    return "\n".join(out) + "\n"


BEFORE = {
    "app": (33, 5, 70, 42, 6_078),
    "auditor": (74, 19, 327, 97, 17_478),
    "engines": (47, 8, 165, 48, 10_954),
}
"""Rooms, floors, arrows, files and lines of each layer at :data:`BEFORE_COMMIT`."""


def main() -> None:
    """Write the picture of one state of the house."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, metavar="FOLDER", help=f"a checkout of commit {BEFORE_COMMIT}")
    before = parser.parse_args().before
    layers = [read_layer(before or ROOT, name) for name in LAYERS]
    name, title = ("house-before.svg", "Before") if before else ("house.svg", "Now")
    (DOCS / "images" / name).write_text(draw(layers, title), encoding="utf-8")
    if before:
        print({layer.name: layer.row for layer in layers})
    else:
        replace_block(DOCS / "architecture.md", "house", table(layers, BEFORE))


if __name__ == "__main__":
    main()
