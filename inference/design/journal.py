"""What an interrupted run of many tasks has found: a file to which each result is added at once."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
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

    def read(self, digests: Collection[str]) -> Found:
        """What is known of works with these digests; a line that was cut off is deleted.

        Raises InputError for a file that is something else, or is of other parameters.
        """
        if self.path is None or not self.path.exists():
            return {}
        try:
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
            raise InputError(f"{self.path} is not what an interrupted run left: move it away") from None
        if any(digest not in digests for digest, _, _ in found):
            raise InputError(
                f"{self.path} is what a run with other parameters or versions left: repeat that one, "
                "move the file away, or name another --out"
            )
        return {(digest, number): value for digest, number, value in found}

    def keep(self, digest: str, number: int, found: Any) -> None:
        """Add a result, on the disk before this returns. Raises InputError where that cannot be written."""
        if self.path is None:
            return
        line = json.dumps({"format": FORMAT, "parameters": digest, "task": number, "found": found})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritten(error) from None

    def done(self) -> None:
        """Delete the file: all is written where it belongs."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _unwritten(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self.path}: {error.strerror or error}")


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
