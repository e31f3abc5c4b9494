"""What several commands of ``auditor`` share: options, the reviewer's name, a place that cannot be written."""

from __future__ import annotations

import functools
import getpass
import json
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from auditor import kind as kinds
from auditor.catalog import datasets, reading
from auditor.ground.errors import AuditorError, cannot_write
from auditor.ground.names import first_twice
from auditor.ground.wording import visible
from auditor.kind import Kind

LONGEST_LINE = 500
"""Letters of a command's first sentence that its group lists."""


class Commands(click.Group):
    """A group whose list of commands shows each one's whole first sentence, wrapped."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        shown = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(LONGEST_LINE))
            for name, command in shown
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse what comes before the command."""
        with _spelled():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the rest and run the command."""
        with _spelled():
            return super().invoke(ctx)

    @staticmethod
    def say_in_json(line: str) -> None:
        """Print ``{"error": LINE}`` on standard output where ``--json`` was typed and a command fails."""
        if "--json" in sys.argv[1:]:
            with suppress(OSError):  # whoever reads it has gone, and the line is on standard error too
                print(json.dumps({"error": line}), flush=True)


@contextmanager
def _spelled() -> Iterator[None]:
    """Repeat on the terminal what was typed wrongly, but move no cursor there."""
    try:
        yield
    except click.UsageError as error:
        vars(error)["message"] = " ".join(visible(error.message).splitlines())
        if not vars(error).get("told"):  # a group inside a group sees it twice
            vars(error)["told"] = True
            Commands.say_in_json(error.format_message())
        raise


AS_JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print JSON for programs; {"error": LINE} where the command fails.',
)
FORCE = click.option("--force", is_flag=True, help="Overwrite an existing file.")
REVIEWER = click.option("--reviewer", help="Who decided; default: your login name.")
DEVICE = click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda[:N].")
ON = click.option(
    "--on",
    "executor",
    metavar="processes[:N]|ray[://HOST:PORT]",
    help="How many networks train side by side, in processes that share the cores: N (1: one after another), or as "
    "many as there are cores and memory for. Or on a Ray cluster. Default: AUDITOR_EXECUTOR, else processes.",
)
SETTINGS = click.option(
    "--set", "settings", multiple=True, metavar="ENGINE.FIELD=VALUE", help="Change a preset's field."
)
POLICY = click.option(
    "--policy",
    type=click.Choice(["reviewed", "auto"]),
    default="reviewed",
    show_default=True,
    help="What people decided, or also suggestions that --max-fdr allows.",
)
MAX_FDR = click.option(
    "--max-fdr",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="Q",
    help="Promise that on average at most the share Q is wrong; needs verified samples.",
)
LARGEST = 2**31 - 1
"""What a number in the catalog holds on every database."""
SEED = click.IntRange(0, LARGEST)


def AUDIT_ID(command: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802 - an option, as those beside it
    """The option ``--audit``: a number as people see it, which the command is given as the audit's id."""

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        if given["audit_id"] is not None:
            given["audit_id"] = reading.audit_id_of(given["name"], given["audit_id"])
        return command(**given)

    return click.option(
        "--audit",
        "audit_id",
        type=click.IntRange(1, LARGEST),
        metavar="N",
        help="Number of the audit, as the app and `auditor status` say it; default: the newest finished one.",
    )(run)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line on standard output or standard error; names of a user's files move no cursor there."""
    click.echo(visible(text), err=err)


def named(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:  # noqa: ARG001
    """Names with commas between them."""
    return tuple(one.strip() for one in (text or "").split(",") if one.strip())


def port_option(default: int, about: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """``--port`` of something that serves."""
    return click.option(
        "--port", type=click.IntRange(1, 65535), default=default, show_default=True, help=about
    )


def engines_option(default: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """``--engines a,b`` as a list of names, None where it is left out."""

    def parsed(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:  # noqa: ARG001
        found = [one.strip() for one in text.split(",")] if text else None
        twice = first_twice(found or [])
        if twice is not None:
            raise click.BadParameter(f"{twice} is named twice; an engine is trained once.")
        return found

    return click.option("--engines", callback=parsed, help=f"Comma-separated; default: {default}.")


def preset_option(told: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """``--preset NAME``, quick where it is left out; ``told`` is what the help says of that."""
    return click.option(
        "--preset",
        type=click.Choice(["quick", "standard", "paper"]),
        default="quick",
        help="How long to train: minutes on a laptop, the recommended length on a GPU, or as published. "
        f"Default: {told}.",
    )


def refuse_beside(option: str, unused: Collection[str], remedy: str) -> None:
    """Refuse what would be ignored silently beside ``option``; ``unused`` are parameters of the running command.

    Raises:
        UsageError: one of them was given.
    """
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in unused
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)} has no effect together with {option}; {remedy}.")


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Show a place that cannot be written, or a full disk, as one line."""
    try:
        yield
    except OSError as error:
        raise AuditorError(cannot_write(out, error)) from error


def reviewer_or_login(reviewer: str | None) -> str:
    """Return who decided: as the option says, else who is logged in.

    Raises:
        AuditorError: the system knows no name for this user, as in some containers.
    """
    if reviewer is not None and reviewer.strip():
        return reviewer.strip()
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise AuditorError("Your login name is not known; say who decided with --reviewer NAME.") from error


def kind_of(name: str) -> Kind:
    """Return what the labels of that dataset are."""
    return kinds.of(reading.dataset(name))


def refuse_unused(kind: Kind, command: str) -> None:
    """Refuse options that mean nothing for such labels.

    Raises:
        UsageError: one of them was given.
    """
    unused = dict(kind.unused[command])
    if click.get_current_context().params.get("policy") == "reviewed":  # as it is anyway
        unused.pop("policy", None)
    for remedy in dict.fromkeys(unused.values()):
        refuse_beside(f"a dataset of {kind.words}", [one for one in unused if unused[one] == remedy], remedy)


def refuse(name: str, command: str, *, others: Collection[str] = ()) -> None:
    """Refuse a command that is for class labels, and for those of the tasks ``others``.

    Raises:
        AuditorError: the labels of that dataset are something else.
    """
    datasets.require_classes(reading.dataset(name), f"`auditor {command}`", others=others)
