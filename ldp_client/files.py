"""Writing files so that a half-written one is never seen."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from schemas.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


@contextmanager
def replacing(path: str) -> "Iterator[TextIO]":
    """A text file that takes its final name only when everything was written."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".ldpkit-")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
