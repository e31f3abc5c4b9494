"""The house is enforced here, not by prose.

``app`` calls ``auditor`` calls ``engines``, never back and never skipping; inside each layer a room knows
lower floors only, and a package is entered by its face, the names in its ``__all__``: functions and types, about
fifteen of them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

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
        ("labels",),
        ("outputs",),
        ("audits",),
        ("importing", "results"),
        ("backbones", "jobs", "pictures", "review", "work"),
        ("columns", "kind"),
        ("catalog",),
        ("statistics",),
        ("bridges",),
        ("ground",),
    ),
    "engines": (
        ("registry",),
        # The methods: a new one is its package and its row of the registry. Another asks the noise model.
        tuple(name for name in ENGINES if name != "noise_model"),
        ("backbones", "meta", "noise_model", "regression", "segmentation"),
        ("shared",),
        ("networks",),
        ("contract",),
    ),
}
"""The rooms of each layer, floor by floor: a room imports from lower floors only, its neighbours not at all."""

EXCEPTIONS = {}
BRIDGES = ("auditor/bridges/backbone_bridge.py", "auditor/bridges/engine_bridge.py")
FIFTYONE_AT_HOME = ("auditor/fiftyone_bridge/", "auditor/bridges/fiftyone_door.py")
LAZY_FACES = {"auditor", "engines"}
"""Faces that load what they name when it is asked for; they stand above every floor."""


@functools.cache
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


def test_layer__imports_nothing_above_it() -> None:
    leaked = {
        _id(path): packages_of(imports_of(path)) & FORBIDDEN[path.relative_to(ROOT).parts[0]]
        for path in ALL_FILES
    }
    assert {name: found for name, found in leaked.items() if found - EXCEPTIONS.get(name, set())} == {}


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


def test_room__imports_from_lower_floors_only() -> None:
    assert [f"{_id(path)} imports {name}" for path in ALL_FILES for name in from_no_lower_floor(path)] == []


def from_no_lower_floor(path: Path) -> list[str]:
    """What a file imports of its own layer that lies on its own floor or above."""
    layer, room = room_of(module_of(path))
    if module_of(path) in LAZY_FACES or not room:
        return []
    others = {name: room_of(name) for name in house_imports(path)}
    return [
        name
        for name, (other_layer, other) in sorted(others.items())
        if other_layer == layer and other != room and is_room(layer, other)
        if floor_of(layer, other) >= floor_of(layer, room)
    ]


def is_room(layer: str, name: str) -> bool:
    return (ROOT / layer / name).is_dir() or (ROOT / layer / f"{name}.py").exists()


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_floors__name_every_room_once() -> None:
    for layer in FLOORS:
        named = [room for rooms in FLOORS[layer] for room in rooms]
        there = {path.stem for path in (ROOT / layer).glob("*.py")} - {"__init__"}
        there |= {path.parent.name for path in (ROOT / layer).glob("*/__init__.py")}
        assert sorted(named) == sorted(there)


def test_modules__import_in_no_circle() -> None:
    modules = {module_of(path): path for path in ALL_FILES if module_of(path) not in LAZY_FACES}
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


def test_package__is_entered_by_its_face() -> None:
    entered = {
        (path, package, name.removeprefix(package).strip(".").partition(".")[0])
        for path in ALL_FILES
        for name in house_imports(path)
        for package in packages_entered(name, module_of(path))
    }
    assert [
        f"{_id(path)} enters {package} by {inside!r}, which is not in its __all__"
        for path, package, inside in sorted(entered)
        if inside and inside not in face_of(package)
    ] == []


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


def test_face__names_what_exists() -> None:
    for package in sorted({module_of(path) for path in ALL_FILES if path.name == "__init__.py"}):
        module = importlib.import_module(package)
        for name in face_of(package):
            if not hasattr(module, name):
                importlib.import_module(f"{package}.{name}")


MOST_NAMES = 25
"""Names of a face that a reader takes in at once; about 15 are better."""
BY_SUBJECT = {
    **dict.fromkeys(
        ("auditor.backbones", "auditor.catalog", "auditor.ground", "auditor.pictures", "auditor.results"),
        "from 31 to 166 names of several subjects: `datasets.get` says more than `get_dataset` in a long list",
    ),
    **dict.fromkeys(
        ("auditor.review", "auditor.statistics.annotators", "auditor.statistics.rates", "auditor.statistics"),
        "the same: `promises.first`, `drawing.draw` are read with their subject",
    ),
    "auditor.api": "`estimator` loads scikit-learn, for a second",
    "auditor.pictures.sources": "`fiftyone_sets` is for the bridge to FiftyOne alone",
    "auditor.bridges": "a door loads engines or FiftyOne; whoever needs one does not wait for the other",
    "auditor.cli": "a command imports what it needs when it runs",
    "auditor.labels": "each kind of labels is a part with a face of its own",
    "app.panels": "a part of a screen a module",
    "app.session": "a subject of the session a module",
    "engines.shared": "77 names of 17 subjects",
    **dict.fromkeys(
        ("engines.neighbours", "engines.noise_model"),
        "the registry is asked without torch, and what others take beside the SPEC loads it",
    ),
}
"""Packages that others enter by module, and why; all others are entered by functions and types."""
LONG_FACES = {"auditor.pictures.sources", "auditor.statistics", "auditor.statistics.rates"}


def faces() -> dict[str, frozenset[str]]:
    """Names of each package's ``__all__``, by package inside a layer."""
    packages = {module_of(path) for path in ALL_FILES if path.name == "__init__.py"} - set(FLOORS)
    return {package: face_of(package) for package in sorted(packages)}


def test_face__lists_functions_and_types() -> None:
    by_module = {package for package, names in faces().items() if any(map(partial(lies_in, package), names))}
    assert sorted(by_module) == sorted(BY_SUBJECT)


def lies_in(package: str, name: str) -> bool:
    """Return whether a file or folder of the package is called so."""
    folder = ROOT / package.replace(".", "/")
    return (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()


def test_face__is_short() -> None:
    assert {package for package, names in faces().items() if len(names) > MOST_NAMES} == LONG_FACES


def test_auditor__imports_engines_and_fiftyone_in_its_bridges_only() -> None:
    for package, doors in (("engines", BRIDGES), ("fiftyone", FIFTYONE_AT_HOME)):
        others = [path for path in layer_files("auditor") if not _id(path).startswith(doors)]
        assert [_id(path) for path in others if package in packages_of(imports_of(path))] == []


def test_bridge__does_not_load_engines_at_import() -> None:
    for path in BRIDGES:
        body = ast.parse((ROOT / path).read_text()).body
        top = [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        loaded = {name for name in imported_modules("\n".join(top)) if name.startswith("engines.")}
        assert {name for name in loaded if not name.startswith("engines.contract")} == set()


def test_tables__are_defined_in_models_only() -> None:
    tables = {
        _id(path)
        for path in ALL_FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and "table" in {word.arg for word in node.keywords}
    }
    assert tables == {"auditor/catalog/models.py"}


SERVICES = (
    *("auditor/audits/", "auditor/backbones/", "auditor/catalog/", "auditor/importing/", "auditor/jobs/"),
    *(
        "auditor/results/",
        "auditor/review/",
        "auditor/labels/",
        "auditor/api/dataset.py",
        "auditor/pictures/cache.py",
    ),
    *("auditor/fiftyone_bridge/actions.py", "auditor/fiftyone_bridge/pull.py"),
)
"""Who may hold a transaction open over several steps; all others ask one thing at a time (``db.ask``)."""


def test_session__is_held_by_services_only() -> None:
    names = {"auditor.catalog.db.session", "sqlmodel.Session", "sqlalchemy.orm.Session"}
    holders = {_id(path) for path in ALL_FILES if imports_of(path) & names}
    assert sorted(name for name in holders if not name.startswith(SERVICES)) == []


FILE = re.compile(r"\.(py|js|css|json|jsonl|npy|npz|csv|txt)$")
DOTTED = re.compile(r"``([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)``")
OTHERS = {"torch", "np", "st", "concurrent", "upath", "benchmarks", "review"}
"""Roots of names in docstrings that belong to other libraries, to benchmarks and to FiftyOne's documents."""


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def names_in(tree: ast.AST) -> set[str]:
    """Every name that a piece of code defines, imports or takes as an argument."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def holders() -> dict[str, set[str]]:
    """By the name of a module, package or class, the names inside of all that are called so."""
    found: dict[str, set[str]] = {}
    for path in ALL_FILES:
        found.setdefault(module_of(path).rpartition(".")[2], set()).update(names_in(tree_of(path)))
        for folder in path.relative_to(ROOT).parents:
            found.setdefault(folder.name, set()).add(path.stem)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(names_in(node))
    return found


def test_docstring__names_what_exists() -> None:
    there, stale = holders(), []
    for path in ALL_FILES:
        own = names_in(tree_of(path))
        for text in (node.value for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant)):
            for name in DOTTED.findall(text) if isinstance(text, str) else []:
                root, holder, last = name.partition(".")[0], *name.split(".")[-2:]
                is_theirs = root in OTHERS or FILE.search(name)
                if not (is_theirs or root in own or last in there.get(holder, set())):
                    stale.append(f"{_id(path)}: {name}")
    assert stale == []


QUESTIONS = re.compile(r"(What|Whether|How|Which|Where|When|Who|Why|Whoever|Whatever)\b")


def test_docstring__of_a_function_begins_with_no_question() -> None:
    """It says what the function does: ``Return whether ...``, ``Draw what ...``."""
    found = [
        f"{_id(path)}: {node.name}"
        for path in ALL_FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if QUESTIONS.match(ast.get_docstring(node) or "")
    ]
    assert found == []


def test_import__does_not_load_torch() -> None:
    modules = ("engines.contract", "auditor", "auditor.audits.plan", "auditor.cli.commands")
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_imported_modules__finds_every_way_of_importing() -> None:
    source = (
        "import torch.nn as nn\nfrom pandas import DataFrame\nfrom . import b\nfrom ..c import d\n"
        "def f():\n    import streamlit\n    importlib.import_module('umap')\n"
    )
    names = imported_modules(source, "auditor.catalog")
    assert {"torch.nn", "pandas", "auditor.catalog.b", "auditor.c.d", "streamlit", "umap"} <= names
