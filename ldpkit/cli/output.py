"""Output of commands: a result on standard output, in words or as JSON, and progress on standard error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, TextIO

import click

from schemas.disk import STREAM
from summaries.progress import Step

SECONDS_BETWEEN_DRAWINGS = 0.1
# Before this, the time left cannot be estimated.
SECONDS_UNTIL_ESTIMATE = 3.0
WHOLE_LINE = "\r\x1b[K"
# Keys of a context's `meta`: what --json and a command's progress leave there.
AS_JSON, PROGRESS = "as_json", "progress"


class Progress:
    """Draw a line of progress, with the time left, on a terminal. Elsewhere nothing is printed.

    Args:
        file: where to print; by default sys.stderr at the time of printing.
        clock: monotonic seconds.
    """

    def __init__(self, file: TextIO | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._file, self._clock = file, clock
        self._began: float | None = None
        self._drawn = 0.0
        self._last_share = 0.0
        self._is_open = False

    def __call__(self, line: str) -> None:
        file = sys.stderr if self._file is None else self._file
        if not file.isatty():
            return
        if not isinstance(line, Step):
            self.close()
            print(line, file=file, flush=True)
            return
        now = self._clock()
        if self._began is None or line.share < self._last_share:
            self._began, self._drawn = now, float("-inf")
        self._last_share = line.share
        if line.share < 1 and now - self._drawn < SECONDS_BETWEEN_DRAWINGS:
            return
        self._drawn, seconds, text = now, now - self._began, str(line)
        if 0 < line.share < 1 and seconds >= SECONDS_UNTIL_ESTIMATE:
            text = f"{text}; about {_in_words(seconds * (1 - line.share) / line.share)} left"
        self._is_open = line.share < 1
        print(f"{WHOLE_LINE}{text}", end="" if self._is_open else "\n", file=file, flush=True)

    def close(self) -> None:
        """End an open line, so that later output begins on a new line."""
        if self._is_open:
            self._is_open = False
            print(file=sys.stderr if self._file is None else self._file, flush=True)


def _in_words(seconds: float) -> str:
    """Round a time to seconds, minutes or hours."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(1, round(seconds))} s"


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
