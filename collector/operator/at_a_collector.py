"""Shared parts of commands that talk to a collector over HTTP: its address, the key, and confirmation."""

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
# States of a study, as `ldpkit status --state` and the page name them.
STATES = ("open", "not open yet", "ended", "closed", "deleted")
# States in which a study takes no reports until an operator reopens it, or never again.
OVER = STATES[3:]


def add_remote(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    example: str,
    run: Callable[[argparse.Namespace], int],
    is_action: bool = False,
) -> argparse.ArgumentParser:
    """Add the parser of a command that talks to a collector, and return it.

    is_action: whether the command above also takes --collector, --token and --json, as in `keys --collector
        URL add`.
    """
    parser = add_command(subparsers, name, text, example)
    # An action's default would replace the value that was given before the action.
    url, token = (argparse.SUPPRESS, argparse.SUPPRESS) if is_action else (DEFAULT_URL, None)
    parser.add_argument(
        "--collector", metavar="URL", default=url, help=f"the collector (default {DEFAULT_URL})"
    )
    text = f"an operator's key; better set {TOKEN_VARIABLE}"
    parser.add_argument("--token", default=token, help=text)
    parser.set_defaults(run=run)
    return parser


def add_json(parser: argparse.ArgumentParser, is_action: bool = False) -> None:
    """Register --json. is_action: see `add_remote`."""
    text = "for programs: everything, as JSON"
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS if is_action else False, help=text
    )


def add_certainty(parser: argparse.ArgumentParser) -> None:
    """Register --yes and --dry-run, for changes that are hard to undo."""
    sure = parser.add_mutually_exclusive_group()
    sure.add_argument("--yes", action="store_true", help="do it without asking")
    sure.add_argument("--dry-run", action="store_true", help="only print what would be done")


def collector_of(arguments: argparse.Namespace, what: str) -> RemoteCollector:
    """Return the collector that a command talks to. what: the work that needs a key. Raises as `token_of`."""
    # Imported late, so that parsing a command line stays fast.
    from collector.remote.operating import RemoteCollector

    return RemoteCollector(arguments.collector, token_of(arguments, what))


def token_of(arguments: argparse.Namespace, what: str) -> str:
    """Return the key to send. what: the work that needs it, in words. Raises InputError if there is none."""
    refuse_unknown_variables()
    token: str = arguments.token or os.environ.get(TOKEN_VARIABLE) or ""
    if not token:
        raise UsageError(
            f"{what} needs an operator's key: --token, or {TOKEN_VARIABLE}", code="keys.token_missing"
        )
    return token


def require_yes(arguments: argparse.Namespace, what: str) -> None:
    """Ask for confirmation on a terminal. Raises InputError if the answer is no or there is no terminal.

    what: the work to confirm, in words.
    """
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{what} needs --yes", code="options.needs_yes")
    print(visible(f"{what}: sure? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("nothing was done", code="options.answered_no")


def show(found: Any, as_json: bool, lines: Callable[[Any], Iterable[str]], ours: Iterable[str] = ()) -> None:
    """Print a collector's answer.

    Args:
        found: the answer.
        as_json: whether to print it as JSON.
        lines: makes lines for people, with words from the collector.
        ours: lines in columns, without words from the collector.
    """
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for line in lines(found):
        # Words from another collector may contain control sequences of the terminal.
        print("\t".join(map(visible, line.split("\t"))))
    # Our own lines keep repeated blanks; in others' words they could imitate a line break.
    for line in ours:
        print(line)
