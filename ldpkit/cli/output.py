"""Output of commands: a result on standard output, in words or as JSON, and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TextIO

import click

from ldp_client.documents.errors import UsageError
from ldp_client.files.disk import STREAM, refuse_unwritten
from summaries.progress import Step

# The shortest time between progress lines if the output is not a terminal.
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.1
# Before this, the time left cannot be estimated.
SECONDS_UNTIL_TOLD = 3.0
WHOLE_LINE = "\r\x1b[K"
# Keys of a context's `meta`: what --json, --quiet and a command's progress leave there.
AS_JSON, QUIET, PROGRESS = "as_json", "quiet", "progress"


class Progress:
    """Print lines of progress and the time left: in place on a terminal, else every ten seconds.

    Args:
        is_quiet: print nothing.
        file: where to print; by default sys.stderr at the time of printing.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        is_quiet: bool = False,
        file: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._is_quiet, self._file, self._clock = is_quiet, file, clock
        self._began: float | None = None
        self._told = 0.0
        self._last_share = 0.0
        self._is_open = False

    def __call__(self, line: str) -> None:
        if self._is_quiet:
            return
        file = sys.stderr if self._file is None else self._file
        if not isinstance(line, Step):
            self._print(file, line)
            return
        now = self._clock()
        if self._began is None or line.share < self._last_share:
            self._began, self._told = now, float("-inf")
        self._last_share = line.share
        wait = SECONDS_BETWEEN_DRAWINGS if file.isatty() else SECONDS_BETWEEN_LINES
        if line.share >= 1 or now - self._told >= wait:
            self._told = now
            self._draw(file, line, now - self._began)

    def part(self, place: int, count: int) -> Callable[[str], None]:
        """Return the progress of part `place` (from 0) of `count` parts of about the same length."""

        def tell(line: str) -> None:
            self(Step(line, place + line.share, count) if isinstance(line, Step) else line)

        return tell

    def _draw(self, file: TextIO, line: Step, seconds: float) -> None:
        text = str(line)
        if 0 < line.share < 1 and seconds >= SECONDS_UNTIL_TOLD:
            text = f"{text}; about {_in_words(seconds * (1 - line.share) / line.share)} left"
        if not file.isatty():
            print(text, file=file, flush=True)
            return
        self._is_open = line.share < 1
        print(f"{WHOLE_LINE}{text}", end="" if self._is_open else "\n", file=file, flush=True)

    def _print(self, file: TextIO, line: str) -> None:
        self.close()
        print(line, file=file, flush=True)

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


class _Output:
    """Standard output whose errors name it as their file. Errors of temporary files name no file either."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> Any:
        return self._named(self._file.write, text)

    def flush(self) -> None:
        self._named(self._file.flush)

    def _named(self, act: Callable[..., Any], *given: str) -> Any:
        try:
            return act(*given)
        except OSError as error:
            error.filename = STREAM
            raise


@contextmanager
def naming_output() -> Iterator[None]:
    """Make errors of standard output name it, as STREAM."""
    if isinstance(file := sys.stdout, _Output):
        # A nested call, or a call in another thread.
        yield
        return
    sys.stdout = _Output(file)
    try:
        yield
    finally:
        sys.stdout = file


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
