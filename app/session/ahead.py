"""Scripts of Streamlit that some screen needs: the browser fetches them while nobody waits for them.

Streamlit loads the script of a kind of element when a page first shows one. The first visit to a screen with charts
then waits for half a megabyte; fetched before, it is there. Names of scripts change with their content, so they are
looked up in the folder that is served.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import streamlit

FOLDER = Path(streamlit.__file__).parent / "static" / "static" / "js"
KINDS = (
    "BidiComponent",
    "Selectbox",
    "TextInput",
    "NumberInput",
    "Radio",
    "Checkbox",
    "FileUploader",
    "ImageList",
    "DownloadButton",
    "ArrowVegaLiteChart",
)
"""What is in view on our screens. Tables are further down; theirs are 0.3 MB more."""
IMPORTED = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')


@cache
def scripts() -> tuple[str, ...]:
    """Names of the files of these kinds, each after what it imports; none where Streamlit keeps them elsewhere."""
    found: dict[str, None] = {}

    def add(name: str) -> None:
        if name in found or not (FOLDER / name).is_file():
            return
        found[name] = None
        for imported in IMPORTED.findall((FOLDER / name).read_text(encoding="utf-8", errors="replace")):
            add(imported)

    for kind in KINDS:
        for file in sorted(FOLDER.glob(f"{kind}.*.js")):
            add(file.name)
    return tuple(found)


def fetching(base: str) -> str:
    """HTML that has the browser fetch them once, when it has nothing else to do.

    Args:
        base: what comes before every address, ``""`` or ``/PATH``.
    """
    addresses = json.dumps([f"{base}/static/js/{name}" for name in scripts()]).replace("<", "\\u003c")
    return (
        "<script>(() => {"
        "const page = document.documentElement;"
        "if (page.dataset.ahead) return;"
        'page.dataset.ahead = "asked";'
        "const idle = window.requestIdleCallback || ((call) => setTimeout(call, 200));"
        f"const addresses = {addresses};"
        "idle(() => addresses.forEach((address) => {"
        'const link = Object.assign(document.createElement("link"), '
        '{ rel: "modulepreload", href: address, crossOrigin: "", fetchPriority: "low" });'
        "document.head.append(link);"
        "}));"
        "})()</script>"
    )
