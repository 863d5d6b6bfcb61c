"""What commands that ask a collector over HTTP share: its address, the key, and being sure."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from collector.settings import TOKEN_VARIABLE, refuse_unknown_variables
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from collector.remote.operating import RemoteCollector

DEFAULT_URL = "http://127.0.0.1:8000"
# Of a study, as `ldpkit status --state` and the page name them.
STATES = ("open", "not open yet", "ended", "closed", "deleted")
# Those that take no reports until somebody opens them, or never again.
OVER = STATES[3:]


def add_remote(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    example: str,
    run: Callable[[argparse.Namespace], int],
    is_action: bool = False,
) -> argparse.ArgumentParser:
    """The parser of a command that asks a collector.

    is_action: whether the command above takes --to, --token and --json too, as in `keys --to URL add`.
    """
    parser = add_command(subparsers, name, text, example)
    # A default of an action would replace what stands before it.
    url, token = (argparse.SUPPRESS, argparse.SUPPRESS) if is_action else (DEFAULT_URL, None)
    parser.add_argument("--to", metavar="URL", default=url, help=f"the collector (default {DEFAULT_URL})")
    text = f"an operator's key; better set {TOKEN_VARIABLE}"
    parser.add_argument("--token", default=token, help=text)
    parser.set_defaults(run=run)
    return parser


def add_json(parser: argparse.ArgumentParser, is_action: bool = False) -> None:
    """Register --json. is_action: as of `add_remote`."""
    text = "for programs: everything, as JSON"
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS if is_action else False, help=text
    )


def add_certainty(parser: argparse.ArgumentParser) -> None:
    """Register --yes and --dry-run, of what is not easily taken back."""
    sure = parser.add_mutually_exclusive_group()
    sure.add_argument("--yes", action="store_true", help="do it without asking")
    sure.add_argument("--dry-run", action="store_true", help="only say what would be done")


def add_study_change(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> None:
    """Register a command that changes one study, once that is confirmed."""
    parser = add_remote(subparsers, name, text, f"{name} habits --yes", run)
    parser.add_argument("study", metavar="STUDY_ID")
    add_certainty(parser)
    add_json(parser)


def collector_of(arguments: argparse.Namespace, what: str) -> RemoteCollector:
    """The collector that a command asks. what: needs a key, in words. Raises as `token_of`."""
    # Parsing a command loads nothing of this.
    from collector.remote.operating import RemoteCollector

    return RemoteCollector(arguments.to, token_of(arguments, what))


def token_of(arguments: argparse.Namespace, what: str) -> str:
    """The key to send. what: needs it, in words. Raises InputError where there is none."""
    refuse_unknown_variables()
    token: str = arguments.token or os.environ.get(TOKEN_VARIABLE) or ""
    if not token:
        raise UsageError(
            f"{what} needs an operator's key: --token, or {TOKEN_VARIABLE}", code="keys.token_missing"
        )
    return token


def require_yes(arguments: argparse.Namespace, what: str) -> None:
    """Ask on a terminal whether to do something. Raises InputError for no, and where nobody can be asked.

    what: would be done, in words.
    """
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{what} needs --yes", code="options.needs_yes")
    print(visible(f"{what}: sure? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("nothing was done", code="options.answered_no")


def show(found: Any, as_json: bool, lines: Callable[[Any], Iterable[str]], ours: Iterable[str] = ()) -> None:
    """Print what a collector said. lines: for people. ours: lines that have none of its words, in columns."""
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for line in lines(found):
        # Another collector's words may move the terminal's cursor.
        print("\t".join(map(visible, line.split("\t"))))
    # There several blanks, which in others' words pass for a line's end, stay.
    for line in ours:
        print(line)
