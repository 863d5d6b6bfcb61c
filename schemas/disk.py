"""Read study documents and bytes, and write texts atomically: a half-written file is never visible.

A result is a new file: it never takes the name of another.
"""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO, TypeVar

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.documents.question import Question

Asked = TypeVar("Asked", bound=Question)
# This path means standard input, or standard output.
STREAM = "-"
WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
# Extensions that ldpkit never writes: compressed files, and tables in other programs' formats.
PACKED = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".7z", ".rar", ".lz4", ".br", ".tar")
TABLES = (".tsv", ".feather", ".arrow", ".avro", ".orc", ".sav", ".dta", ".sas7bdat", ".rds", ".pkl")
UNWRITTEN = (*PACKED, *TABLES)
# Characters with which a spreadsheet's formula may begin.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Holds the standard input that was already read.
_read: list[Any] = []


def chosen_questions(asked: Sequence[Asked], question_id: str | None) -> list[Asked]:
    """Return the question that `--question` names, or all questions without it. Raises InputError."""
    questions = [question for question in asked if question_id in (None, question.id)]
    if not questions:
        raise InputError(
            f"--question: must be among {', '.join([question.id for question in asked])}",
            code="files.question",
        )
    return questions


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return a file's content, or all of standard input. Raises InputError."""
    if path == STREAM:
        return standard_input().read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.cannot_read") from None


def count_lines(path: str) -> int:
    """Estimate how many lines a file has. Return 0 for an unreadable file: its reader reports the error."""
    # A pipe can be read once.
    if not os.path.isfile(path):
        return 0
    try:
        with open(path, "rb") as file:
            return sum([piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b"")])
    except OSError:
        return 0


def standard_input() -> BinaryIO:
    """Return the standard input, for `-`. Raises UsageError on a second call: no input would be left."""
    if sys.stdin in _read:
        raise UsageError(
            "standard input (-) can be read only once: name a file in one of the two places",
            code="files.stdin_twice",
        )
    _read[:] = [sys.stdin]
    return sys.stdin.buffer


def standard_output() -> TextIO:
    """Return standard output for a file's content: in UTF-8, whatever the terminal's encoding."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)
    return sys.stdout


def refuse_workbook(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a file's name has a spreadsheet's own format."""
    if os.fspath(path).lower().endswith(WORKBOOKS):
        raise InputError(
            f"{path}: ldpkit neither reads nor writes a spreadsheet's own format. Use .csv: "
            "the spreadsheet opens it, and writes it in UTF-8 with “Save as”",
            code="files.workbook",
        )


def refuse_existing(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a result's name is taken, except by an empty folder, or is of an unknown format."""
    refuse_workbook(path)
    if os.fspath(path).lower().endswith(UNWRITTEN):
        raise InputError(
            f"{path}: ldpkit does not write this format. Use another name, such as .ndjson, "
            ".json or .csv, and compress or convert that file",
            code="files.unwritten",
        )
    if path != STREAM and os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise _taken(path)


def _taken(path: str | os.PathLike[str]) -> InputError:
    return InputError(f"{path} is there already: name a new file, or delete that one", code="files.exists")


def refuse_table(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a file for JSON has a table's name."""
    if os.fspath(path).lower().endswith((".csv", ".parquet")):
        raise InputError(
            f"{path}: the output is JSON, not a table. Use a name with .ndjson or .json",
            code="files.no_table",
        )


def no_formula(text: str) -> str:
    """Return the text, quoted if a spreadsheet would compute it as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def sync(path: str | os.PathLike[str]) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: str | os.PathLike[str], is_new: bool = False, mode: int = 0o666) -> Iterator[TextIO]:
    """Yield a text file that gets its final name only when it is complete.

    It keeps the mode of the file that it replaces. is_new: fail if the name exists. mode: of a new file,
    restricted by the umask; 0o600 for reports of single people. Raises InputError if it cannot be written,
    for example on a full disk: nothing is left behind.
    The path - is standard output, which gets all of it at the end, or nothing.
    """
    if path == STREAM:
        with _to_standard_output() as file:
            yield file
        return
    if is_new:
        refuse_existing(path)
    if os.path.isdir(path):
        raise InputError(f"cannot write {path}: it is a folder", code="files.cannot_write")
    temporary = None
    try:
        folder = os.path.dirname(os.path.abspath(path))
        name = os.path.join(folder, f".ldpkit-{os.urandom(8).hex()}")
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        temporary = name
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            name_new(temporary, path)
        else:
            if os.path.exists(path):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            os.replace(temporary, path)
        temporary = None
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}", code="files.cannot_write"
        ) from None
    finally:
        if temporary is not None:
            os.unlink(temporary)


def name_new(temporary: str, path: str | os.PathLike[str]) -> None:
    """Give a finished file a name that does not exist yet. If two processes do so at once, one succeeds.

    Raises OSError.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links, such as on a USB stick.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            os.replace(temporary, path)
        except OSError:
            os.unlink(path)
            raise
    else:
        os.unlink(temporary)


@contextmanager
def _to_standard_output() -> Iterator[TextIO]:
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    with TemporaryFile("w+", encoding="utf-8", newline="") as file:
        yield file
        file.seek(0)
        copyfileobj(file, output := standard_output())
        output.flush()


def write_new(path: str | os.PathLike[str], text: str, mode: int = 0o666) -> None:
    """Write a durable new file, with `mode` from the start: other users cannot read it even for a moment.

    It gets its name when all of it is on the disk. Raises InputError if the name exists or the file cannot be
    written, for example on a full disk; then nothing is left behind.
    """
    with replacing(path, is_new=True, mode=mode) as file:
        file.write(text)
