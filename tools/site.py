"""A hook of MkDocs: takes the measured results into the site, where pages of ``docs/`` link to them."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from tools.pages import ROOT

RESULTS = "benchmarks/results/"


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
