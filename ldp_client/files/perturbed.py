"""The mark beside a file of answers that was perturbed: a second draw would count the same answers twice.

It says for which study, of which bytes, where the reports went and when, and has no answer. It is its owner's
alone: whoever has it can try answers that are few against the digest of the file.
"""

import hashlib
import json
import os
from datetime import datetime, timezone

from ldp_client.documents.errors import InputError
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.documents.study import Study

ENDING = ".perturbed"
_PIECE = 1 << 20


class Mark:
    """The mark of a file's bytes, as they are now, for one study. A pipe has none, and is never refused.

    Raises InputError where the file cannot be read.
    """

    def __init__(self, study: "Study", answers_path: str) -> None:
        self._answers = answers_path
        # By whatever name it is called.
        self._path = os.path.realpath(answers_path) + ENDING
        self._what = {"study": study.digest, "answers": ""}
        self._has_place = os.path.isfile(answers_path)
        if self._has_place:
            self._what["answers"] = _digest_of(answers_path)

    def refuse(self) -> None:
        """Raises InputError where these bytes were perturbed for the study, or the marks cannot be read."""
        for entry in self._entries():
            if {**entry, **self._what} == entry:
                reports, when = entry.get("reports", "?"), entry.get("when", "?")
                raise InputError(say("files.perturbed", file=self._answers, reports=reports, when=when))

    def _entries(self) -> "list[dict[str, str]]":
        try:
            with open(self._path, encoding="utf-8") as file:
                entries = [json.loads(line) for line in file]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(say("files.cannot_read", path=self._path, reason=error.strerror)) from None
        except ValueError:
            entries = [None]
        if not all([isinstance(entry, dict) for entry in entries]):
            raise InputError(say("files.no_mark", file=self._path))
        return entries

    def note(self, reports_path: str) -> None:
        """Add this draw, durably, before its reports get their name. Raises InputError."""
        when = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = {**self._what, "reports": os.path.abspath(reports_path), "when": when}
        if not self._has_place:
            return
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(say("files.cannot_mark", path=self._path, reason=error.strerror)) from None


def _digest_of(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        raise InputError(say("files.cannot_read", path=path, reason=error.strerror)) from None
    return digest.hexdigest()
