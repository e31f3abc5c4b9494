"""The files of ``deploy/``: their linters, and the settings that they name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def test_files__please_their_linters() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate")
    tools = Path(sys.executable).parent
    rules = "{extends: default, rules: {line-length: {max: 116}}}"
    subprocess.run([str(tools / "yamllint"), "--strict", "-d", rules, str(DEPLOY)], check=True)
    check = [str(tools / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*check, str(DEPLOY / "compose.yaml")], check=True)
    (job,) = documents("rayjob.yaml")
    groups = [
        job["spec"]["rayClusterSpec"]["headGroupSpec"],
        *job["spec"]["rayClusterSpec"]["workerGroupSpecs"],
    ]
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **group["template"]}
        for group in groups
    ]
    for one in [*documents("kubernetes.yaml"), *pods]:
        kubernetes.validate(one, "1.30", strict=True)


def test_files__name_only_settings_that_there_are() -> None:
    known = set(re.findall(r"AUDITOR_[A-Z_]+", (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")))
    of_compose = {"AUDITOR_SITE", "AUDITOR_IMAGES"}  # its own, which .env fills
    for file in DEPLOY.iterdir():
        named = set(re.findall(r"AUDITOR_[A-Z_]+", file.read_text(encoding="utf-8")))
        assert named - of_compose <= known, file.name
