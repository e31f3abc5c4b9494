"""Weights of backbones: where they lie on this machine, and fetching them on the person's explicit word.

Looked for, in this order: a file that is named, our own folder in the home, the caches that timm (through Hugging
Face's client) and torchvision (through torch) have made for the user before, and the packages that bring weights
with the installation. Only ``get`` uses the network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.backbones.shelf import PREFERRED, Shelved, on_shelf
from auditor.bridges import backbone_bridge
from auditor.ground.errors import NotFoundError, WeightsError
from auditor.ground.files import written_whole
from auditor.ground.settings import settings

FOLDER = "weights"
INSTALLATION = "installation"
"""The place of weights that a package of the extra ``backbones`` brings."""
HUB_FILES = ("model.safetensors", "pytorch_model.bin")
"""What timm's networks are called on the hub, the safe form first."""
HUB = "https://huggingface.co"
"""Where a person finds a file of the hub in a browser."""
TORCHVISIONS = "see torchvision"
"""Where no licence is known: torchvision names none for single files."""
NOT_SAID = "not said"
"""Where nobody names a licence."""
TIMEOUT_S = 20.0
ABOUT = "about.json"


@dataclass(frozen=True)
class Weights:
    """Weights that lie on this machine."""

    name: str
    """The backbone's name."""
    path: Path
    place: str
    """``file``, ``home``, ``cache`` or ``installation``: where it was found."""


@dataclass(frozen=True)
class Offer:
    """What a hub has of a backbone."""

    name: str
    source: str
    """Repository and file, or the address."""
    size: int | None
    """Bytes; None where the hub does not say."""
    licence: str
    sha256: str | None
    """Of the file; None where the hub does not say (torchvision: the first digits are in the file's name)."""


def find(name: str, file: Path | None = None) -> Weights:
    """The weights of ``name`` on this machine.

    Raises:
        AuditFailedError: there is no such backbone.
        NotFoundError: there are none, or ``file`` is not there; the text says how to get them.
    """
    backbone_bridge.input_config(name)
    if file is not None:
        if not file.is_file():
            why = "is no regular file" if file.exists() else "does not exist"
            raise NotFoundError(f"{file} {why}; name a file of weights.")
        return Weights(name, file.absolute(), "file")
    source = backbone_bridge.source(name)
    found = (
        _in_home(name) or _in_cache(name, source.repository, source.url) or _in_installation(on_shelf(name))
    )
    if found is None:
        raise NotFoundError(
            f"There are no weights of {name} on this machine; `auditor weights get {name}` downloads them, or name "
            f"a file with them (from another machine: {_address(name)}).",
            field="weights",
        )
    return found


def present(name: str) -> Weights | None:
    """The weights of ``name`` if they lie on this machine. Of the short list's no library is loaded to look."""
    shelved = on_shelf(name)
    if shelved is not None:
        cached = _in_cache(name, shelved.repository, shelved.url)
        return _in_home(name) or cached or _in_installation(shelved)
    try:
        return find(name)
    except NotFoundError:
        return None


def here() -> list[Weights]:
    """All weights on this machine, in the order in which audits take them: those of the short list that somebody
    fetched, others kept, and what comes with the installation.
    """
    shelved = [found for name in PREFERRED if (found := present(name)) is not None]
    known = {found.name for found in shelved}
    names = sorted(name for name in map(_name_in, (settings().home / FOLDER).glob(f"*/{ABOUT}")) if name)
    others = [_in_home(name) for name in names if name not in known]
    every = [*shelved, *(other for other in others if other is not None)]
    return sorted(every, key=lambda one: one.place == INSTALLATION)


def add(name: str, file: Path) -> Weights:
    """Keep a copy of a file of weights in the home, as those of ``name``: audits find it there from now on.

    Raises:
        AuditFailedError: there is no such backbone, or the file holds no weights of it.
        NotFoundError: the file is not there.
        WeightsError: weights of ``name`` are kept already.
    """
    given = find(name, file)
    if (kept := _in_home(name)) is not None:
        raise WeightsError(
            f"Weights of {name} are kept already, in {kept.path}; delete that folder to replace them."
        )
    backbone_bridge.size(name, given.path, side=None)  # damaged or of another network: said now
    target = _home(name)
    target.mkdir(parents=True, exist_ok=True)
    path = target / given.path.name
    with written_whole(path) as beside:
        shutil.copyfile(given.path, beside)
    _keep(target, name=name, file=path.name, sha256=_sha256(path), source=str(given.path), licence=NOT_SAID)
    return Weights(name, path, "home")


def get(name: str, *, on_offer: Callable[[Offer], bool] | None = None, progress: bool = True) -> Weights:
    """Download the weights of ``name`` through the library's own client, check them and keep them in the home.

    ``on_offer`` is told what is about to be downloaded; where it returns False, nothing is. ``progress`` shows the
    client's own bar on standard error.

    Raises:
        WeightsError: the hub cannot be reached, has no such weights, or sent another file than it said.
    """
    backbone_bridge.input_config(name)
    if (found := _in_home(name)) is not None:
        return found
    offered = offer(name)
    if on_offer is not None and not on_offer(offered):
        raise WeightsError(f"Nothing was downloaded; there are no weights of {name} on this machine.")
    target = _home(name)
    target.mkdir(parents=True, exist_ok=True)
    source = backbone_bridge.source(name)
    if source.repository is not None:
        path = _from_hub(name, source.repository, Path(offered.source).name, target, progress=progress)
    else:
        path = _from_address(name, str(source.url), target, progress=progress)
    digest = _sha256(path)
    if offered.sha256 is not None and digest != offered.sha256:
        path.unlink()
        raise WeightsError(
            f"{offered.source} was damaged on the way (its SHA-256 is not the hub's); nothing was saved, try again."
        )
    _keep(target, name=name, file=path.name, sha256=digest, source=offered.source, licence=offered.licence)
    return Weights(name, path, "home")


def offer(name: str) -> Offer:
    """Return what the hub has of ``name``; asks the hub, downloads nothing.

    Raises:
        WeightsError: it cannot be reached or has none.
    """
    source = backbone_bridge.source(name)
    if source.repository is None:
        if source.url is None:
            raise WeightsError(
                f"There are no published weights of {name}; name a file with them.", field="weights"
            )
        try:
            size = size_at(source.url)
        except OSError as error:
            raise _unreachable(name, error) from error
        return Offer(name, source.url, size, source.licence or TORCHVISIONS, None)
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise WeightsError(NEEDS_THE_HUB, field="weights") from error
    try:
        info = HfApi(endpoint=_endpoint()).model_info(source.repository, files_metadata=True)
    except Exception as error:  # the client raises its own, httpx's and the system's errors
        raise _unreachable(name, error) from error
    files = {each.rfilename: each for each in info.siblings or []}
    wanted = next((file for file in HUB_FILES if file in files), None)
    if wanted is None:
        raise WeightsError(f"{source.repository} on the hub has none of {', '.join(HUB_FILES)}.")
    card = info.card_data.to_dict() if info.card_data is not None else {}
    lfs = files[wanted].lfs
    return Offer(
        name,
        f"{source.repository}/{wanted}",
        files[wanted].size,
        str(card.get("license") or source.licence or NOT_SAID),
        getattr(lfs, "sha256", None) if lfs is not None else None,
    )


def size_at(url: str) -> int | None:
    """Bytes of the file at ``url``, which is not downloaded; None where the server does not say.

    Raises:
        OSError: it cannot be reached, or has no such file.
    """
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=TIMEOUT_S) as answer:
        length = answer.headers.get("Content-Length")
    return int(length) if length else None


# --- Where they lie ---------------------------------------------------------------------------------------


def _home(name: str) -> Path:
    return settings().home / FOLDER / name.replace(":", "-").replace("/", "-")


def _keep(folder: Path, **about: str) -> None:
    """Describe weights that lie whole in their folder: they count from now on."""
    with written_whole(folder / ABOUT) as beside:
        beside.write_text(json.dumps(about, indent=1), encoding="utf-8")


def _name_in(about: Path) -> str | None:
    """The name of the network that a folder describes; None where the description is damaged."""
    try:
        return str(json.loads(about.read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _in_home(name: str) -> Weights | None:
    """Weights that ``get`` kept; a download that was cut off left no description and does not count."""
    folder = _home(name)
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        path = folder / str(about["file"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Weights(name, path, "home") if path.is_file() else None


def _in_cache(name: str, repository: str | None, url: str | None) -> Weights | None:
    if repository is not None and importlib.util.find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache

        for file in HUB_FILES:
            found = try_to_load_from_cache(repository, file)
            if isinstance(found, str) and Path(found).is_file():
                return Weights(name, Path(found), "cache")
    # Also of timm's: older versions, and torch.hub's own DINOv2, load the same file from its address.
    if url is not None and (cached := _torch_cache(url)).is_file():
        return Weights(name, cached, "cache")
    return None


def _in_installation(shelved: Shelved | None) -> Weights | None:
    """Weights that a package brings, found without importing it.

    Raises:
        WeightsError: the file is not the one that was published.
    """
    wheel = None if shelved is None else shelved.wheel
    spec = None if wheel is None else importlib.util.find_spec(wheel.package)
    if shelved is None or wheel is None or spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / wheel.file
    if not path.is_file() or _sha256(path) != wheel.sha256:
        raise WeightsError(
            f"{path} is not the file that was published; run `pip install --force-reinstall "
            f"{wheel.package.replace('_', '-')}`.",
            field="weights",
        )
    return Weights(shelved.name, path, INSTALLATION)


def _torch_cache(url: str) -> Path:
    """Return where torch's own client keeps the file (``torch.hub.get_dir``, without loading torch)."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    home = Path(os.environ.get("TORCH_HOME") or caches / "torch").expanduser()
    return home / "hub" / "checkpoints" / url.rpartition("/")[2]


def _address(name: str) -> str:
    source = backbone_bridge.source(name)
    if source.repository is not None:
        return f"{HUB}/{source.repository}/resolve/main/{HUB_FILES[0]}"
    return source.url or "none published"


NEEDS_THE_HUB = (
    "Weights of the hub need the package huggingface-hub: pip install 'label-auditor[backbones]'; or name a file "
    "with them."
)

# --- Fetching ---------------------------------------------------------------------------------------------


def _endpoint() -> str | None:
    """The hub's address, read now: the client reads its variable once, when it is imported."""
    return os.environ.get("HF_ENDPOINT") or None


def _from_hub(name: str, repository: str, file: str, target: Path, *, progress: bool) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    was_disabled = are_progress_bars_disabled()
    if not progress:
        disable_progress_bars()
    try:
        return Path(hf_hub_download(repository, file, local_dir=target, endpoint=_endpoint()))
    except Exception as error:  # as in ``offer``
        raise _unreachable(name, error) from error
    finally:
        if not was_disabled:
            enable_progress_bars()


def _from_address(name: str, url: str, target: Path, *, progress: bool) -> Path:
    path = target / url.rpartition("/")[2]
    try:
        backbone_bridge.download_checked(url, path, progress=progress)
    except Exception as error:  # urllib's, torch's and the system's errors
        raise _unreachable(name, error) from error
    return path


def _unreachable(name: str, error: Exception) -> WeightsError:
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    return WeightsError(
        f"The weights of {name} cannot be downloaded ({reason}); fetch {_address(name)} on another machine "
        "and name the file.",
        field="weights",
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def listed(name: str) -> dict[str, Any]:
    """One backbone for people and programs: its name, the licence of its weights and where they lie."""
    found = present(name)
    return {
        "name": name,
        "licence": backbone_bridge.source(name).licence or TORCHVISIONS,
        "place": None if found is None else found.place,
        "path": None if found is None else str(found.path),
    }
