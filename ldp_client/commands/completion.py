"""Completion of the command in a shell, by shtab: `ldpkit completion bash`, zsh or fish."""

import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")
# What stands for a file in usage lines, or for a folder; a name with a dot does too.
FILES = ("FILE", "ANSWERS", "REPORTS", "REPORTS_OR_SUMMARY", "PEM", "LIST")
FOLDERS = ("DIR", "FOLDER")


def completion_of(parser: argparse.ArgumentParser, shell: str) -> str:
    """The shell's script. Raises ModuleNotFoundError without shtab."""
    import shtab

    for action in _actions(parser):
        name = action.metavar if isinstance(action.metavar, str) else ""
        if name in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif name in FILES or "." in name:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> "Iterator[argparse.Action]":
    """Those of a parser and of all commands below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
