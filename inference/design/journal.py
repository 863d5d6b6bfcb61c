"""What an interrupted run of many tasks has found: a file to which each result is added at once."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from ldp_client.documents.errors import InputError

FORMAT = "ldpkit.journal/1"
Found = dict[tuple[str, int], Any]


class Journal:
    """Results by the digest of their parameters and the number of their task, a line of JSON each.

    path: of the file, None to keep nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock: int | None = None

    def read(self, digests: Collection[str]) -> Found:
        """What is known of works with these digests; a line that was cut off is deleted.

        From then on until `end` the file is this run's. Raises InputError for a file that is another run's,
        is something else, or is of other parameters.
        """
        if self.path is None:
            return {}
        try:
            self._hold(self.path)
            whole = self.path.read_bytes()
            end = whole.rfind(b"\n") + 1
            found = [_line(line) for line in whole[:end].splitlines()]
            if not found and not _begins(whole):
                raise ValueError
            if end < len(whole):
                os.truncate(self.path, end)
        except OSError as error:
            raise self._unwritten(error) from None
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.path} is not what an interrupted run left: move it away", code="plan.journal_invalid"
            ) from None
        if any(digest not in digests for digest, _, _ in found):
            raise InputError(
                f"{self.path} is what a run with other parameters or versions left: repeat that one, "
                "move the file away, or name another --out",
                code="plan.journal_of_other_run",
            )
        return {(digest, number): value for digest, number, value in found}

    def keep(self, digest: str, number: int, found: Any) -> None:
        """Add a result, on the disk before this returns. Raises InputError where that cannot be written."""
        if self.path is None:
            return
        line = json.dumps({"format": FORMAT, "parameters": digest, "task": number, "found": found})
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritten(error) from None

    def done(self) -> None:
        """Delete the file, unless another run goes on with it: all is written where it belongs."""
        if self.path is None:
            return
        with suppress(InputError):
            self._hold(self.path)
            self.path.unlink(missing_ok=True)
        self.end()

    def end(self) -> None:
        """Let another run have the file; one without a result is deleted."""
        if self.path is None or self._lock is None:
            return
        if _is_at(self.path, self._lock) and not os.fstat(self._lock).st_size:
            self.path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None

    def _hold(self, path: Path) -> None:
        """Keep other runs away, by a lock that ends with this process. Raises OSError, InputError."""
        while self._lock is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise InputError(
                    f"{path}: another run is writing it: wait for that one, or name another --out",
                    code="plan.journal_in_use",
                ) from None
            # Who had it may have deleted it since it was opened.
            if _is_at(path, lock):
                self._lock = lock
            else:
                os.close(lock)

    def _unwritten(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self.path}: {error.strerror or error}", code="files.not_writable")


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open file is what lies there."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _line(line: bytes) -> tuple[str, int, Any]:
    """Digest, number and result of one line. Raises ValueError, KeyError or TypeError for another."""
    document = json.loads(line)
    digest, number = document["parameters"], document["task"]
    if document["format"] != FORMAT or type(number) is not int or not isinstance(digest, str):
        raise ValueError
    return digest, number, document["found"]


def _begins(text: bytes) -> bool:
    """Whether it may be the beginning of a journal's first line."""
    start = json.dumps({"format": FORMAT})[:-1].encode()
    return text.startswith(start) or start.startswith(text)
