"""The bridge to commands that are still declared with argparse, until all are declared with click."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from typing import Any

import click

from ldp_client.commands.output import (
    check_output,
)
from ldp_client.commands.parsers import SHORT, Parser, near_option


class Bridge(click.Command):
    """A command whose arguments argparse reads. Its own parameters are for lists of options only."""

    parser: argparse.ArgumentParser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave all arguments to argparse."""
        ctx.args = args
        return []

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        words = ctx.command_path.split()[1:]
        return _run(_parsed([*words, *ctx.args]))

    def get_help(self, ctx: click.Context) -> str:
        """Return the parser's help."""
        return f"{self.parser.format_help()}{ctx.command_path[:0]}"


class BridgeGroup(Bridge, click.Group):
    """A command with commands below it."""


def bridge(name: str, parser: argparse.ArgumentParser | None = None) -> click.Command:
    """Return the click command for an argparse command."""
    if parser is None:
        (action,) = [one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction)]
        parser = action.choices[name]
    params = [_parameter(one) for one in parser._actions if not isinstance(one, argparse._SubParsersAction)]
    made = [one for one in params if one is not None]
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    below = {word: bridge(word, one) for action in groups for word, one in action.choices.items()}
    settings: dict[str, Any] = {"params": made, "help": parser.description, "add_help_option": False}
    command = BridgeGroup(name, commands=below, **settings) if below else Bridge(name, **settings)
    command.example = (parser.epilog or "").rpartition("ldpkit ")[2]  # type: ignore[attr-defined]
    command.parser = parser
    return command


def _parameter(action: argparse.Action) -> click.Parameter | None:
    if action.dest == "help":
        return None
    if not action.option_strings:
        return click.Argument(
            [action.dest], required=action.nargs not in ("?", "*"), metavar=str(action.metavar)
        )
    is_flag = action.nargs == 0
    return click.Option(
        [*action.option_strings, action.dest],
        is_flag=is_flag,
        multiple=isinstance(action, argparse._AppendAction),
        nargs=action.nargs if isinstance(action.nargs, int) and not is_flag else 1,
        type=None if is_flag or not action.choices else click.Choice(list(action.choices)),
    )


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the arguments. Raises SystemExit for unknown arguments."""
    parser = build_parser()
    parsed, beyond = parser.parse_known_args(arguments)
    if beyond:
        # Print option names only: any other word may be part of an answer with a space.
        names = [word.split("=")[0] for word in beyond if word.startswith("--") or word in SHORT]
        options = [near_option(parsed, name) for name in names]
        if not options and "beyond" in parsed:
            parser.error(parsed.beyond)
        parser.error(f"not understood: {', '.join(options) or 'a word'}; quote values that have spaces")
    return parsed


def _run(parsed: argparse.Namespace) -> int:
    check_output(parsed)
    code: int = parsed.run(parsed)
    # Flush here to report errors: Python's own flush at exit would use another format and exit code.
    sys.stdout.flush()
    return code


@cache
def build_parser() -> argparse.ArgumentParser:
    """Build the parser with every package's subcommands: 74 parsers, made once a process."""
    # Imported here: users interrupt this too.
    from collector import cli as collector_cli

    parser: argparse.ArgumentParser = Parser("ldpkit", allow_abbrev=False)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    collector_cli.add_commands(subparsers)
    return parser
