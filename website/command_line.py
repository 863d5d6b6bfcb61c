"""The page of all commands, with what each says of itself."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ldpkit.cli import build_parser

COLUMNS = "100"


def command_line_page() -> str:
    """Each command's help, whole."""
    lines = [
        "# All commands",
        "",
        "What `ldpkit COMMAND --help` prints. What commands have in common, exit codes among it, is on "
        "[a page of its own](../commands.md).",
    ]
    with as_wide_as(COLUMNS):
        for name, parser in commands():
            lines += ["", f"## `{name}`", "", "```text", parser.format_help().rstrip(), "```"]
    return "\n".join([*lines, ""])


def commands(parser: argparse.ArgumentParser | None = None) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command that does something by itself, by its whole name."""
    parser = build_parser() if parser is None else parser
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not below:
        yield parser.prog, parser
    for action in below:
        for _, inner in sorted(action.choices.items()):
            yield from commands(inner)


@contextmanager
def as_wide_as(columns: str) -> Iterator[None]:
    """Have help written for a terminal of this width, whatever the build's own is."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = columns
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
