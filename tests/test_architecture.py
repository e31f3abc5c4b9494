"""Layers are enforced here, not by prose: app -> auditor -> engines, never back and never skipping."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FORBIDDEN = {
    "engines": {
        *("auditor", "app", "sqlmodel", "sqlalchemy", "pandas", "streamlit", "fiftyone", "umap", "PIL"),
        *("click", "jinja2", "imagehash", "rich"),
    },
    "auditor": {"app", "streamlit", "torch", "torchvision"},
    "app": {"engines", "torch", "torchvision", "sqlmodel", "sqlalchemy"},
}
METHODS = {"cross_entropy", "umn", "l2b", "coteaching", "choicenet"}
"""Engine files: one method each, never importing each other."""

EXCEPTIONS = {
    # Reads torchvision's own data sets by name; torchvision is imported when such a source is opened.
    "auditor/sources/torchvision_sets.py": {"torchvision"},
}

LAYERS_OF_METHODS = METHODS | {"registry"}


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


def imports_of(path: Path) -> set[str]:
    return imported_modules(path.read_text(), package_of(path))


def _called_name(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


ALL_FILES = [path for layer in FORBIDDEN for path in layer_files(layer)]


@pytest.mark.parametrize("path", ALL_FILES, ids=_id)
def test_layer__imports_nothing_above_it(path: Path) -> None:
    leaked = packages_of(imports_of(path)) & FORBIDDEN[path.relative_to(ROOT).parts[0]]
    leaked -= EXCEPTIONS.get(path.relative_to(ROOT).as_posix(), set())
    assert not leaked, f"{_id(path)} may not import {sorted(leaked)}"


@pytest.mark.parametrize("method", sorted(METHODS))
def test_engine_file__imports_no_other_method(method: str) -> None:
    path = ROOT / "engines" / f"{method}.py"
    others = {f"engines.{other}" for other in LAYERS_OF_METHODS - {method}}
    assert not imports_of(path) & others


@pytest.mark.parametrize("path", layer_files("engines"), ids=_id)
def test_shared_engine_module__imports_no_method(path: Path) -> None:
    if path.stem in LAYERS_OF_METHODS or path.name == "__init__.py":
        return
    # A method's own part (choicenet_config.py, umn_networks.py) may be read by that method only.
    leaked = {name for name in imports_of(path) if name in {f"engines.{method}" for method in METHODS}}
    assert not leaked, f"{_id(path)} is shared and may not import {sorted(leaked)}"


@pytest.mark.parametrize("path", layer_files("auditor"), ids=_id)
def test_auditor__imports_engines_in_training_only(path: Path) -> None:
    if path.name == "training.py":
        return
    assert "engines" not in packages_of(imports_of(path)), f"{_id(path)}: only training.py is the bridge"


def test_training__does_not_load_engines_at_import() -> None:
    path = ROOT / "auditor" / "training.py"
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
    if path.name.startswith("fiftyone_") or any(part.startswith("fiftyone_") for part in path.parts):
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


@pytest.mark.parametrize("module", ["engines.contract", "auditor", "auditor.auditing", "auditor.cli"])
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
