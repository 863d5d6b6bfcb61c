"""Output of commands: a result on standard output, in words or as JSON, and progress on standard error."""

import io
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import click

from schemas.disk import STREAM
from summaries.progress import Step

# Steps of a drawn line.
POSITIONS = 1000
# Keys of a context's `meta`: what --json and a command's progress leave there.
AS_JSON, PROGRESS = "as_json", "progress"


class Progress:
    """Draw a line of progress, with the time left, on a terminal. Elsewhere nothing is printed.

    Args:
        file: where to print; by default sys.stderr at the time of printing.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._bar: Any = None

    def __call__(self, line: str) -> None:
        file = sys.stderr if self._file is None else self._file
        if not file.isatty():
            return
        if not isinstance(line, Step):
            self.close()
            print(line, file=file, flush=True)
            return
        position = round(line.share * POSITIONS)
        if self._bar is None or position < self._bar.pos:
            self.close()
            self._bar = click.progressbar(length=POSITIONS, file=file, bar_template="%(label)s  %(info)s")
        self._bar.label = line
        self._bar.update(position - self._bar.pos)
        if position == POSITIONS:
            self.close()

    def close(self) -> None:
        """End an open line, so that later output begins on a new line."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None


def keep_quiet(ctx: click.Context, _parameter: click.Parameter, is_quiet: bool) -> None:
    """Make the command's progress print nothing, for --quiet."""
    if is_quiet:
        ctx.meta[PROGRESS] = Progress(io.StringIO())


def progress() -> Progress:
    """Return the running command's progress, which `show` and the command's end close."""
    ctx = click.get_current_context()
    if PROGRESS not in ctx.meta:
        ctx.meta[PROGRESS] = Progress()
        ctx.call_on_close(ctx.meta[PROGRESS].close)
    made: Progress = ctx.meta[PROGRESS]
    return made


def show(lines: Iterable[str], document: Any = None) -> None:
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


def warn(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr)
