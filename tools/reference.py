"""Write the parts of the documentation that the code knows better: commands, columns and measured tables.

    python -m tools.reference

Each part lies between two comments of its page; a test fails where one is out of date.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from auditor.bridges.engine_bridge import export_columns
from auditor.cli.commands import cli
from auditor.ground.vocabulary import DECISIONS
from benchmarks import backbones_page, detection_readme
from benchmarks.detection import RESULTS
from engines.registry import ENGINES
from tools.pages import DOCS, ROOT, replace_block

COLUMNS = {
    "sample_id": "number of the sample in its dataset",
    "filepath": "path of the image, relative to the root of the source",
    "given_label": "the label that was imported; never changed",
    "cleaned_label": "the label after cleaning; empty where the sample is excluded",
    "action": "`keep`, `relabel` or `exclude`",
    "is_label_issue": "true for a label that the audit or a person holds for wrong",
    "trust_score": "1 = the given label looks right, 0 = it looks wrong",
    "suggested_label": "the class that the engines suggest",
    "suggested_probability": "how probable the suggestion is, if the given label is wrong; the engines' own "
    "estimate until verified rows calibrate it",
    "review_decision": "what a person decided: " + ", ".join(f"`{name}`" for name in DECISIONS),
    "review_labels": "the classes that a person named, where several apply",
    "reviewer": "who decided",
    "reviewed_at": "when",
    "review_kind": "`suspect` (looked at beside the suggestion), `blind` (a random sample) or `unseen` (accepted "
    "in one step, without a look)",
}
"""What each column of an export means, for those that no engine writes."""


def columns() -> str:
    """Markdown table of every column of an export, in its order.

    Raises:
        KeyError: a column of the vocabulary has no meaning here.
    """
    lines = ["| column | meaning |", "| --- | --- |"]
    lines += [f"| `{name}` | {_meaning(name)} |" for name in export_columns()]
    return "\n".join(lines) + "\n"


def _meaning(column: str) -> str:
    if column in COLUMNS:
        return COLUMNS[column]
    engine = max((name for name in ENGINES if column.startswith(f"{name}_")), key=len)
    spec, signal = ENGINES[engine], column.removeprefix(f"{engine}_")
    if signal == "trust":
        return f"trust score of {spec.title} alone"
    return f"{spec.signals[signal].title}: {spec.signals[signal].meaning}"


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
        (ROOT / "README.md", "features"): backbones_page.short_table([3_000]),
    }


def main() -> None:
    """Write all of them."""
    for (path, name), text in blocks().items():
        replace_block(path, name, text)


if __name__ == "__main__":
    main()
