"""A hook of MkDocs: takes the measured results into the site, where pages of ``docs/`` link to them."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.structure.files import File, Files

from tools.pages import ROOT

RESULTS = "benchmarks/results/"
EXTERNAL_SCRIPT = re.compile(r'<script src="https://unpkg[^>]*></script>')


def on_files(files: Files, config: Any) -> Files:
    """Add everything below ``benchmarks/results`` under the address ``results/``."""
    for path in sorted((ROOT / RESULTS).glob("*")):
        if path.suffix in (".md", ".json", ".png"):
            files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that lead to the results in the repository lead to them in the site."""
    return markdown.replace(f"](../{RESULTS}", "](results/").replace(
        "](../benchmarks/results)", "](results/README.md)"
    )


def on_post_page(output: str, **_: Any) -> str:
    """Drop the one script that the theme would load from another server; it serves search in opened files only."""
    return EXTERNAL_SCRIPT.sub("", output)


def on_post_template(output: str, **_: Any) -> str:
    """The same for the page of a missing address."""
    return on_post_page(output)
