"""Output of commands that argparse still declares."""

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from ldp_client.documents.errors import UsageError
from ldp_client.files.disk import STREAM, refuse_unwritten

TWO_OUTPUTS = "--json and --out - would both write to standard output: omit one"


def add_output(parser: argparse.ArgumentParser) -> None:
    """Register --quiet and --json."""
    parser.add_argument("--quiet", "-q", action="store_true", help="print no progress")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output instead of text"
    )


def check_output(arguments: argparse.Namespace) -> None:
    """Raise UsageError, before any work, if both --json and --out would write to standard output.

    Raises InputError if the file's name has a format that no command writes.
    """
    out = str(getattr(arguments, "out", None) or "")
    if getattr(arguments, "json", False) and out == STREAM:
        raise UsageError(TWO_OUTPUTS, code="options.two_outputs")
    refuse_unwritten(out)


def show(arguments: argparse.Namespace, lines: Iterable[str], document: Any) -> None:
    """Print a command's result: lines, or the document with --json.

    Lines go to standard error if --out - writes the result to standard output.
    """
    if arguments.json:
        import json

        # In ASCII: text from others cannot send control characters to a terminal.
        print(json.dumps(document))
        return
    is_taken = str(getattr(arguments, "out", "")) == STREAM
    for line in lines:
        print(line, file=sys.stderr if is_taken else sys.stdout)
