"""Where the documentation is, and how a script writes its part of a page."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def block(path: Path, name: str) -> str:
    """Return what is between the comments ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of a page.

    Raises:
        ValueError: the page lacks one of the two comments.
    """
    return _split(path, name)[1]


def replace_block(path: Path, name: str, text: str) -> None:
    """Write ``text`` between the two comments of a page."""
    before, _, after = _split(path, name)
    path.write_text(before + "\n" + text.strip() + "\n\n" + after, encoding="utf-8")


def _split(path: Path, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text = path.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise ValueError(
            f"{path} lacks the comments {begin.strip()} and {end}, between which {name} is written"
        )
    before, rest = text.split(begin, 1)
    inside, after = rest.split(end, 1)
    return before + begin, inside.strip() + "\n", end + after
