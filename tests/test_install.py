"""``tools/install.py``: uv looks where pip's settings say, and pip does what uv cannot."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tools import install

ROOT = Path(__file__).resolve().parent.parent
NAME, VERSION = "some_package", "1.0"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip's file of settings, and no variable beside it."""
    for name in ("PIP_FIND_LINKS", "PIP_CERT", "PIP_DEFAULT_TIMEOUT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    return file


def write_wheel(folder: Path) -> None:
    folder.mkdir()
    about = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(folder / f"{NAME}-{VERSION}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{NAME}.py", "")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def test_settings__of_files_and_variables_reach_uv(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text(
        "[global]\nindex-url = https://ann:secret@one/simple\nextra-index-url =\n  https://two/simple\n"
        "  https://three/simple\ntimeout = 9\n[install]\nfind-links = /a /b\n"
    )
    monkeypatch.setenv("PIP_CERT", "/certificates")
    monkeypatch.setenv("PIP_INDEX_URL", "https://four/simple")
    assert install.as_uv_reads_it(install.settings_of_pip()) == {
        "UV_DEFAULT_INDEX": "https://four/simple",
        "UV_INDEX": "https://two/simple https://three/simple",
        "UV_HTTP_TIMEOUT": "9",
        "UV_FIND_LINKS": "/a,/b",
        "SSL_CERT_FILE": "/certificates",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "true",
    }


@pytest.mark.parametrize("by", ["uv", "pip"])
def test_install__takes_the_package_from_where_pips_settings_say(
    settings: Path, tmp_path: Path, by: str
) -> None:
    """Where there is no uv, by pip."""
    write_wheel(tmp_path / "wheels")
    settings.write_text(f"[global]\nno-index = true\nfind-links = {tmp_path / 'wheels'}\n")
    place = tmp_path / "environment"
    venv.create(place)
    there = next((place / "lib").glob("python*")) / "site-packages"
    own = next(Path(one) for one in sys.path if (Path(one) / "pip").is_dir())
    for package in ("pip", "uv") if by == "uv" else ("pip",):
        for found in own.glob(f"{package}*"):
            (there / found.name).symlink_to(found)
    if by == "uv":
        (place / "bin" / "uv").symlink_to(Path(sys.executable).parent / "uv")
    done = subprocess.run(
        [place / "bin" / "python", ROOT / "tools" / "install.py", f"{NAME}=={VERSION}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ("uv could not" in done.stderr) == (by == "pip")
    about = there / f"{NAME}-{VERSION}.dist-info"
    assert (about / "INSTALLER").read_text().strip() == by
