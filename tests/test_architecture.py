"""The house is enforced here, not by prose.

``app`` calls ``auditor`` calls ``engines``, never back and never skipping; inside each layer a room knows
lower floors only, and a package is entered by its face, the names in its ``__all__``.
"""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from engines.registry import ENGINES

ROOT = Path(__file__).resolve().parent.parent

FORBIDDEN = {
    "engines": {
        *("auditor", "app", "sqlmodel", "sqlalchemy", "pandas", "streamlit", "fiftyone", "umap", "PIL"),
        *("click", "jinja2", "imagehash", "rich"),
    },
    "auditor": {"app", "streamlit", "torch", "torchvision"},
    "app": {"engines", "torch", "torchvision", "sqlmodel", "sqlalchemy"},
}
"""What a layer may not import: the layers above it, and libraries that belong to another one."""

FLOORS = {
    "app": (
        ("main", "frame"),
        ("screens",),
        ("panels",),
        ("server",),
        ("session",),
        ("components",),
    ),
    "auditor": (
        ("__main__",),
        ("cli",),
        ("api",),
        ("experiments",),
        ("fiftyone_bridge",),
        ("masks", "numbers", "outputs"),
        ("importing",),
        ("audits",),
        ("backbones", "jobs", "pictures", "review"),
        ("catalog",),
        ("statistics",),
        ("bridges",),
        ("ground",),
    ),
    "engines": (
        ("registry",),
        tuple(ENGINES),  # the methods: a new one is its package and its row of the registry
        ("backbones", "meta", "regression", "segmentation"),
        ("shared",),
        ("networks",),
        ("contract",),
    ),
}
"""The rooms of each layer, floor by floor: a room imports from lower floors only, its neighbours not at all."""

EXCEPTIONS = {
    # Reads torchvision's own data sets by name; torchvision is imported when such a source is opened.
    "auditor/pictures/sources/torchvision_sets.py": {"torchvision"},
}
BRIDGES = ("auditor/bridges/backbone_bridge.py", "auditor/bridges/engine_bridge.py")
FIFTYONE_AT_HOME = ("auditor/fiftyone_bridge/", "auditor/bridges/fiftyone_door.py")
LAZY_FACES = {"auditor", "engines"}
"""Faces that load what they name when it is asked for; they stand above every floor."""


def layer_files(layer: str) -> list[Path]:
    return [path for path in sorted((ROOT / layer).rglob("*.py")) if "__pycache__" not in path.parts]


def imported_modules(source: str, package: str = "") -> set[str]:
    """Full dotted names of everything imported, relative imports resolved against ``package``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and _called_name(node) in ("import_module", "__import__"):
            names |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return names


def packages_of(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def package_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parent.parts)


@functools.cache
def imports_of(path: Path) -> set[str]:
    return imported_modules(path.read_text(), package_of(path))


def _called_name(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


ALL_FILES = [path for layer in FORBIDDEN for path in layer_files(layer)]


@pytest.mark.parametrize("path", ALL_FILES, ids=_id)
def test_layer__imports_nothing_above_it(path: Path) -> None:
    leaked = packages_of(imports_of(path)) & FORBIDDEN[path.relative_to(ROOT).parts[0]]
    leaked -= EXCEPTIONS.get(path.relative_to(ROOT).as_posix(), set())
    assert not leaked, f"{_id(path)} may not import {sorted(leaked)}"


def room_of(module: str) -> tuple[str, str]:
    """Layer and room of a dotted name: ``("auditor", "review")`` of ``auditor.review.log``."""
    layer, _, rest = module.partition(".")
    return layer, rest.partition(".")[0]


def floor_of(layer: str, room: str) -> int:
    """0 is the ground."""
    floors = [number for number, rooms in enumerate(reversed(FLOORS[layer])) if room in rooms]
    assert floors, f"{layer}.{room} stands on no floor; name it in FLOORS"
    return floors[0]


def house_imports(path: Path) -> set[str]:
    """What a file imports of our own, as existing modules or ``module.name``."""
    return {name for name in imports_of(path) if name.partition(".")[0] in FLOORS and "." in name}


@pytest.mark.parametrize("path", ALL_FILES, ids=_id)
def test_room__imports_from_lower_floors_only(path: Path) -> None:
    layer, room = room_of(module_of(path))
    if module_of(path) in LAZY_FACES or not room:
        return
    for name in house_imports(path):
        other_layer, other = room_of(name)
        if other_layer != layer or other == room or not is_room(layer, other):
            continue
        mine, its = floor_of(layer, room), floor_of(layer, other)
        assert its < mine, f"{_id(path)} may not import {name}: it is no lower floor"


def is_room(layer: str, name: str) -> bool:
    return (ROOT / layer / name).is_dir() or (ROOT / layer / f"{name}.py").exists()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("layer", sorted(FLOORS))
def test_floors__name_every_room_once(layer: str) -> None:
    named = [room for rooms in FLOORS[layer] for room in rooms]
    there = {path.stem for path in (ROOT / layer).glob("*.py")} - {"__init__"}
    there |= {path.parent.name for path in (ROOT / layer).glob("*/__init__.py")}
    assert sorted(named) == sorted(there)


@pytest.mark.parametrize("layer", sorted(FLOORS))
def test_modules__import_in_no_circle(layer: str) -> None:
    modules = {module_of(path): path for path in layer_files(layer) if module_of(path) not in LAZY_FACES}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = {other for other in house_imports(path) if other in modules and other != name}
        # `from package import module` enters through the face only if it asks for nothing else.
        graph[name] = {other for other in found if not name.startswith(f"{other}.")}
    circle = find_circle(graph)
    assert circle is None, " -> ".join(circle or [])


def find_circle(graph: dict[str, set[str]]) -> list[str] | None:
    """One circle of the graph as a path that ends where it starts, or None."""
    done: set[str] = set()

    def walk(node: str, trail: list[str]) -> list[str] | None:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        for other in sorted(graph[node]):
            if (found := walk(other, [*trail, node])) is not None:
                return found
        done.add(node)
        return None

    return next((found for node in sorted(graph) if (found := walk(node, [])) is not None), None)


@pytest.mark.parametrize("path", ALL_FILES, ids=_id)
def test_package__is_entered_by_its_face(path: Path) -> None:
    for name in house_imports(path):
        for package in packages_entered(name, module_of(path)):
            inside = name.removeprefix(package).strip(".").partition(".")[0]
            assert not inside or inside in face_of(package), (
                f"{_id(path)} enters {package} by {inside!r}, which is not in its __all__"
            )


@functools.cache
def packages_entered(name: str, importer: str) -> list[str]:
    """The packages inside a layer that ``name`` lies in and the importer does not."""
    parts = name.split(".")
    prefixes = [".".join(parts[:end]) for end in range(2, len(parts) + 1)]
    packages = [prefix for prefix in prefixes if (ROOT / prefix.replace(".", "/") / "__init__.py").exists()]
    return [package for package in packages if not f"{importer}.".startswith(f"{package}.")]


@functools.cache
def face_of(package: str) -> frozenset[str]:
    """What a package's ``__all__`` names: functions, types, and modules that others may enter."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


@pytest.mark.parametrize("package", sorted({module_of(p) for p in ALL_FILES if p.name == "__init__.py"}))
def test_face__names_what_exists(package: str) -> None:
    if not face_of(package):
        return
    module = importlib.import_module(package)
    for name in face_of(package):
        if not hasattr(module, name):
            importlib.import_module(f"{package}.{name}")


@pytest.mark.parametrize("path", layer_files("auditor"), ids=_id)
def test_auditor__imports_engines_in_the_bridge_only(path: Path) -> None:
    if _id(path) in BRIDGES:
        return
    assert "engines" not in packages_of(imports_of(path)), f"{_id(path)}: only {BRIDGES} may"


@pytest.mark.parametrize("name", BRIDGES)
def test_bridge__does_not_load_engines_at_import(name: str) -> None:
    path = ROOT / name
    top = "\n".join(
        ast.unparse(node)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    heavy = imported_modules(top) - {"engines.contract"}
    loaded = {
        name for name in heavy if name.startswith("engines") and not name.startswith("engines.contract")
    }
    assert loaded <= {"engines"}, f"import {sorted(loaded)} inside the functions that train"


@pytest.mark.parametrize("path", layer_files("auditor"), ids=_id)
def test_auditor__imports_fiftyone_in_its_bridge_only(path: Path) -> None:
    if _id(path).startswith(FIFTYONE_AT_HOME):
        return
    assert "fiftyone" not in packages_of(imports_of(path))


@pytest.mark.parametrize("path", ALL_FILES, ids=_id)
def test_tables__are_defined_in_models_only(path: Path) -> None:
    if path == ROOT / "auditor" / "catalog" / "models.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            keywords = {word.arg for word in node.keywords}
            assert "table" not in keywords, f"{_id(path)}: class {node.name} belongs in catalog/models.py"


@pytest.mark.parametrize(
    "module", ["engines.contract", "auditor", "auditor.audits.plan", "auditor.cli.commands"]
)
def test_import__does_not_load_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_imported_modules__finds_every_way_of_importing() -> None:
    source = (
        "import torch.nn as nn\nfrom pandas import DataFrame\nfrom . import b\nfrom ..c import d\n"
        "def f():\n    import streamlit\n    importlib.import_module('umap')\n"
    )
    names = imported_modules(source, "auditor.catalog")
    assert {"torch.nn", "pandas", "auditor.catalog.b", "auditor.c.d", "streamlit", "umap"} <= names
