"""Write the parts of the documentation that the code knows better: commands, columns and measured tables.

    python -m tools.reference

Each part lies between two comments of its page; a test fails where one is out of date.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from auditor import columns as exported
from auditor.cli.commands import cli
from benchmarks import backbones_page, detection_readme
from benchmarks.detection import RESULTS
from tools.pages import DOCS, ROOT, replace_block

IN_README = ("aggre", "random1", "asym40", "pair45", "uni40", "photos")
"""Problems of its table; the page of the benchmarks has all."""


def columns() -> str:
    """Markdown table of every column of an export, in its order."""
    lines = ["| column | meaning |", "| --- | --- |"]
    lines += [f"| `{column.name}` | {column.meaning} |" for column in exported.in_export()]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Markdown of every command's usage, arguments and options, from click's own help."""
    return "\n".join(_command(f"auditor {name}", one) for name, one in _visible(cli).items())


def _visible(group: click.Group) -> dict[str, click.Command]:
    return {name: one for name, one in sorted(group.commands.items()) if not one.hidden}


def _command(title: str, command: click.Command) -> str:
    context = click.Context(command, info_name=title)
    usage = " ".join(command.collect_usage_pieces(context))
    told = " ".join((command.help or "").split())
    parts = [f"## {title}\n", f"{told}\n", f"```text\n{title} {usage}\n```\n"]
    records = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    if shown := [one for one in records if one]:
        parts.append("| option | meaning |\n| --- | --- |")
        parts += [f"| `{_escaped(option)}` | {_escaped(meaning)} |" for option, meaning in shown]
        parts.append("")
    if isinstance(command, click.Group):
        parts += [_command(f"{title} {name}", one) for name, one in _visible(command).items()]
    return "\n".join(parts)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def blocks() -> dict[tuple[Path, str], str]:
    """Every generated part by its page and name."""
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {
        (DOCS / "commands.md", "commands"): commands(),
        (DOCS / "columns.md", "columns"): columns(),
        (DOCS / "benchmarks.md", "detection"): detection_readme.table(stored),
        (DOCS / "benchmarks.md", "features"): backbones_page.short_table([500, 3_000, 25_000]),
        (ROOT / "README.md", "features"): backbones_page.short_table([3_000], IN_README),
    }


def main() -> None:
    """Write all of them."""
    for (path, name), text in blocks().items():
        replace_block(path, name, text)


if __name__ == "__main__":
    main()
