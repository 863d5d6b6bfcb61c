"""What subcommands print: a result on standard output, in words or as JSON; progress on standard error."""

import sys
from contextlib import contextmanager
from time import monotonic

from ldp_client.documents.errors import UsageError
from ldp_client.files.disk import STREAM, refuse_unwritten
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Optional, TextIO

# Where nobody watches, a line of progress at most so often.
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.1
# Sooner, what is left cannot be told.
SECONDS_UNTIL_TOLD = 3.0
WHOLE_LINE = "\r\x1b[K"


class Step(str):
    """A line of progress that says how much of the work is done; as words it is any other line.

    Args:
        text: the line.
        done: how much is done.
        total: of how much.

    Attributes:
        share: what is done, as a share of all.
    """

    share: float

    def __new__(cls, text: str, done: float, total: float) -> "Step":
        made = super().__new__(cls, text)
        made.share = done / total
        return made

    def __reduce__(self) -> "tuple[Any, ...]":
        """How it is made again in another process."""
        return Step, (str(self), self.share, 1)


class Progress:
    """Tells lines of progress and the time that is left: drawn in place on a terminal, else each ten seconds.

    Args:
        is_quiet: tell nothing.
        file: where to; standard error, as it then is, by default.
        clock: seconds, which never go back.
    """

    def __init__(
        self,
        is_quiet: bool = False,
        file: "Optional[TextIO]" = None,
        clock: "Callable[[], float]" = monotonic,
    ) -> None:
        self._is_quiet, self._file, self._clock = is_quiet, file, clock
        self._began: "Optional[float]" = None
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

    def part(self, place: int, count: int) -> "Callable[[str], None]":
        """Progress of one of `count` works of about the same length, the first at place 0."""

        def tell(line: str) -> None:
            self(Step(line, place + line.share, count) if isinstance(line, Step) else line)

        return tell

    def _draw(self, file: "TextIO", line: Step, seconds: float) -> None:
        text = str(line)
        if 0 < line.share < 1 and seconds >= SECONDS_UNTIL_TOLD:
            text = say("cli.left", line=text, time=_in_words(seconds * (1 - line.share) / line.share))
        if not file.isatty():
            print(text, file=file, flush=True)
            return
        self._is_open = line.share < 1
        print(f"{WHOLE_LINE}{text}", end="" if self._is_open else "\n", file=file, flush=True)

    def _print(self, file: "TextIO", line: str) -> None:
        self.close()
        print(line, file=file, flush=True)

    def close(self) -> None:
        """End the line that is drawn: what follows begins on its own."""
        if self._is_open:
            self._is_open = False
            print(file=sys.stderr if self._file is None else self._file, flush=True)


def _in_words(seconds: float) -> str:
    """About so long: seconds, minutes or hours."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(1, round(seconds))} s"


class _Output:
    """Standard output, whose errors name it: those of temporary files have no name either."""

    def __init__(self, file: "TextIO") -> None:
        self._file = file

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._file, name)

    def write(self, text: str) -> "Any":
        return self._named(self._file.write, text)

    def flush(self) -> None:
        self._named(self._file.flush)

    def _named(self, act: "Callable[..., Any]", *given: str) -> "Any":
        try:
            return act(*given)
        except OSError as error:
            error.filename = STREAM
            raise


@contextmanager
def naming_output() -> "Iterator[None]":
    """Have the errors of standard output name it, as STREAM."""
    if isinstance(file := sys.stdout, _Output):
        # A call within a call, or of another thread.
        yield
        return
    sys.stdout = _Output(file)
    try:
        yield
    finally:
        sys.stdout = file


def add_output(parser: "argparse.ArgumentParser") -> None:
    """Register --quiet and --json."""
    parser.add_argument("--quiet", "-q", action="store_true", help=say("cli.help.quiet"))
    parser.add_argument("--json", action="store_true", help=say("cli.help.json"))


def progress_of(arguments: "argparse.Namespace") -> Progress:
    """Where a command tells its progress; `close_progress` finds it again."""
    arguments.progress = progress = Progress(arguments.quiet)
    return progress


def close_progress(arguments: "argparse.Namespace") -> None:
    """End the line of a command's progress, if it has one."""
    if hasattr(arguments, "progress"):
        arguments.progress.close()


def check_output(arguments: "argparse.Namespace") -> None:
    """Raises UsageError where two things would go to standard output; before anything is done.

    And InputError for a file whose name has a format that no command writes.
    """
    out = str(getattr(arguments, "out", None) or "")
    if getattr(arguments, "json", False) and out == STREAM:
        raise UsageError.say("cli.two_outputs")
    refuse_unwritten(out)


def show(arguments: "argparse.Namespace", lines: "Iterable[str]", document: "Any") -> None:
    """Print a command's result: lines, or the document with --json.

    Lines go to standard error where --out - writes the result itself to standard output.
    """
    close_progress(arguments)
    if arguments.json:
        import json

        # In ASCII: what others wrote cannot steer a terminal.
        print(json.dumps(document))
        return
    is_taken = str(getattr(arguments, "out", "")) == STREAM
    for line in lines:
        print(line, file=sys.stderr if is_taken else sys.stdout)


def show_written(arguments: "argparse.Namespace", lines: "Iterable[str]", name: str, **more: "Any") -> None:
    """The same of a result in a folder: with --json what its file of this name holds, and `more`."""
    import json
    import os

    document = {}
    if arguments.json:
        with open(os.path.join(arguments.out, name), encoding="utf-8") as file:
            document = json.load(file)
    show(arguments, lines, {"folder": arguments.out, **more, "result": document})
