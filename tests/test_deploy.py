"""The files of ``deploy/`` and the Dockerfile: their linters, and what they name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent


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


@pytest.mark.skipif(not (BIN / "hadolint").exists(), reason="hadolint has no wheel for this machine")
def test_dockerfile__hadolint_has_nothing_to_say() -> None:
    said = subprocess.run(
        [BIN / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_dockerfile__runs_as_somebody_else_and_keeps_what_people_made_in_its_volume() -> None:
    parsed = DockerfileParser(path=str(ROOT))
    last = {part["instruction"]: part["value"] for part in parsed.structure}
    assert int(last["USER"]) > 0
    assert parsed.envs["AUDITOR_HOME"] == last["VOLUME"]
    assert parsed.envs["FIFTYONE_DATABASE_DIR"].startswith(f"{last['VOLUME']}/")
