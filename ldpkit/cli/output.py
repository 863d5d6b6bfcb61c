"""Output of commands: a result on standard output, in words or as JSON, and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from ldp_client.commands.output import Progress
from ldp_client.documents.errors import UsageError
from ldp_client.files.disk import STREAM, refuse_unwritten

# Keys of a context's `meta`: what --json, --quiet and a command's progress leave there.
AS_JSON, QUIET, PROGRESS = "as_json", "quiet", "progress"


def check_output(ctx: click.Context) -> None:
    """Raise UsageError, before any work, if both --json and --out would write to standard output.

    Raises InputError if the file's name has a format that no command writes.
    """
    out = str(ctx.params.get("out") or "")
    if AS_JSON in ctx.meta and out == STREAM:
        raise UsageError(
            "--json and --out - would both write to standard output: omit one", code="options.two_outputs"
        )
    refuse_unwritten(out)


def is_json() -> bool:
    """Return True if the running command has --json."""
    return AS_JSON in click.get_current_context().meta


def progress() -> Progress:
    """Return the running command's progress, which `show` and the command's end close."""
    ctx = click.get_current_context()
    if PROGRESS not in ctx.meta:
        ctx.meta[PROGRESS] = Progress(QUIET in ctx.meta)
        ctx.call_on_close(ctx.meta[PROGRESS].close)
    made: Progress = ctx.meta[PROGRESS]
    return made


def show(lines: Iterable[str], document: Any) -> None:
    """Print the running command's result: lines, or the document with --json.

    Lines go to standard error if --out - writes the result to standard output.
    """
    ctx = click.get_current_context()
    if PROGRESS in ctx.meta:
        ctx.meta[PROGRESS].close()
    if AS_JSON in ctx.meta:
        # In ASCII: text from others cannot send control characters to a terminal.
        print(json.dumps(document))
        return
    is_taken = str(ctx.params.get("out", "")) == STREAM
    for line in lines:
        print(line, file=sys.stderr if is_taken else sys.stdout)


def show_written(lines: Iterable[str], name: str, **more: Any) -> None:
    """Print a result in a folder: lines, or with --json `more` and the content of the file `name`."""
    out, document = str(click.get_current_context().params["out"]), {}
    if is_json():
        with open(os.path.join(out, name), encoding="utf-8") as file:
            document = json.load(file)
    show(lines, {"folder": out, **more, "result": document})


def warn(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr)
