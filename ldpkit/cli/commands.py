"""How commands are declared: the classes of commands and groups, and the options that they share.

Modules of commands import nothing heavy at their top, because `ldpkit --help` loads them all. A command
imports in its function what it works with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import visible
from ldpkit.cli.output import AS_JSON, keep_quiet
from schemas import Study
from schemas.disk import refuse_existing
from schemas.study import load_study

if TYPE_CHECKING:
    from ldpkit.cli.client import Client

Callback = Callable[..., Any]
WIDTH = 100
DEFAULT_URL = "http://127.0.0.1:8000"
TOKEN_VARIABLE = "LDPKIT_TOKEN"
# Every command takes --quiet, which most do not need: help does not show it.
QUIETLY: dict[str, Any] = {"is_flag": True, "hidden": True, "expose_value": False, "callback": keep_quiet}
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": WIDTH}


class Command(click.Command):
    """A command of ldpkit. No option is given twice, and no value is empty.

    Args:
        *args: as `click.Command` has them.
        example: a call, without `ldpkit`, which the help shows.
        **attributes: as `click.Command` has them.
    """

    def __init__(self, *args: Any, example: str = "", **attributes: Any) -> None:
        # Extra words are refused below: click prints them, and they may be part of an answer.
        attributes["context_settings"] = {"allow_extra_args": True, **SETTINGS}
        super().__init__(*args, **attributes)
        self.params.append(click.Option(["-q", "--quiet"], **QUIETLY))
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but refuse empty values, repeated options and extra words."""
        given, _, order = self.make_parser(ctx).parse_args(list(args))
        for parameter in order:
            values = given.get(parameter.name)
            if any(isinstance(value, str) and not value.strip() for value in _flat(values)):
                # An unset shell variable leaves an empty value, which would name the current folder.
                raise click.BadParameter("give a value", ctx, parameter)
            may_repeat = not isinstance(parameter, click.Option) or (
                parameter.multiple or parameter.is_flag or parameter.count
            )
            if not may_repeat and order.count(parameter) > 1:
                raise click.BadParameter("it has two values: give one", ctx, parameter)
        rest = super().parse_args(ctx, args)
        if ctx.args:
            raise click.UsageError("there is a word too many; quote values that have spaces", ctx)
        return rest

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the example."""
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"  ldpkit {self.example}\n")


class Group(click.Group):
    """A group of commands of ldpkit."""

    command_class = Command


def _flat(values: Any) -> Iterable[Any]:
    if not isinstance(values, (list, tuple)):
        return [values]
    return [value for some in values for value in _flat(some)]


def command(name: str, example: str = "") -> Callable[[Callback], Command]:
    """Return a decorator that declares a command. Its function's docstring is the help.

    Args:
        name: the command's name.
        example: a call, without `ldpkit`, which the help shows.
    """
    return click.command(name, cls=Command, example=example)


def group(name: str) -> Callable[[Callback], Group]:
    """Return a decorator that declares a group of commands. Its function's docstring is the help."""
    return click.group(name, cls=Group, context_settings=SETTINGS)


DAY = click.DateTime(["%Y-%m-%d"])
COUNT = click.IntRange(1)


class StudyFile(click.ParamType[Study]):
    """The path of a study, - for standard input. The command gets the study."""

    name = "STUDY.json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Study:  # noqa: ARG002
        """Read a study. Raises InputError."""
        return load_study(value)


class Collector(click.ParamType["Client"]):
    """A server's address. The command gets its client, with the key in LDPKIT_TOKEN."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Client:  # noqa: ARG002
        """Make a client. Raises UsageError for a wrong address, and without a key."""
        from ldpkit.cli.client import client_of

        return client_of(value, ctx.command_path if ctx else "")


class NewPath(click.ParamType[str]):
    """The name of a new file or folder, an address, or - for standard output."""

    name = "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Check the name. Raises InputError if it is taken, or has a format that no command writes."""
        refuse_existing(value)
        return str(value)


study_argument = click.argument("study", type=StudyFile(), metavar="STUDY.json")
id_argument = click.argument("study", metavar="STUDY_ID")


def _print_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[AS_JSON] = True


# `output.show` then prints its document.
json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_print_json,
    help="print one JSON object instead of text",
)
codebook_option = click.option(
    "--codebook",
    metavar="FILE",
    help="what a table's columns mean: types, levels, bounds and codes of missing values",
)
# See `require_yes`.
yes_option = click.option("--yes", is_flag=True, help="do it without asking")
collector_option = click.option(
    "--collector",
    type=Collector(),
    default=DEFAULT_URL,
    help=f"the collector's address (default {DEFAULT_URL}); {TOKEN_VARIABLE} has the key",
)


def out_option(text: str, metavar: str = "FILE", required: bool = True) -> Callable[[Callback], Callback]:
    """Add --out, as `out: str` (None if it is optional and missing). text: its help."""
    return click.option("--out", type=NewPath(), metavar=metavar, required=required, help=text)


def require_yes(yes: bool, what: str) -> None:
    """Ask for confirmation on a terminal.

    Args:
        yes: whether it was given already.
        what: the work to confirm, in words.

    Raises:
        InputError: the answer is no.
        UsageError: there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{what} needs --yes", code="options.needs_yes")
    print(visible(f"{what}: sure? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("nothing was done", code="options.answered_no")
