"""The mark beside a file of answers that was perturbed: a second draw would count the same answers twice.

It says what was asked of the file in which study, where the reports went, or which device has them, and when,
and has no answer. While a draw is under way a lock stands beside it.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from errno import EACCES

from ldp_client.documents.errors import InputError, LdpkitError, LedgerError
from ldp_client.documents.sections import names_in
from ldp_client.documents.spoken import in_each_plain
from ldp_client.files.disk import STREAM
from ldp_client.words.text import letters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.device.ledger import Ledger
    from ldp_client.documents.study import Study

ENDING = ".perturbed"
LOCK = ".perturbing"
_SHORT = 16


class Mark:
    """What is known of a file's earlier draws, by its place. A pipe has none, and is refused.

    A file that grew, was edited or saved again may be of the same people: its bytes are not asked. Nor are a
    study's version and title: what counts is a question that was asked before, by its id or its text, also
    where it would now stand in clear.

    holder: as the ledger of the device that draws has it, which knows better what it drew itself. A new
    device in the same folder is another. "" without a device, and before its first draw.
    """

    def __init__(self, study: "Study", answers_path: str, holder: str = "") -> None:
        self.answers_path = answers_path
        self._holder = holder
        # By whatever name it is called.
        place = os.path.realpath(answers_path)
        self._path, self._lock = place + ENDING, place + LOCK
        self._study, self._asked = study, _asked(study)
        self._has_place = os.path.isfile(answers_path)
        # How long the marks were before this draw's; None where it has none yet.
        self._before: "int | None" = None

    @contextmanager
    def drawing(self, reports_path: str, again: bool) -> "Iterator[None]":
        """Draw noise within: alone, and for nobody twice unless again. A failed draw leaves no mark.

        Raises InputError.
        """
        if os.path.realpath(reports_path) in (self._path, self._lock):
            raise InputError.say("files.is_mark", path=reports_path)
        self._refuse_no_file()
        if not self._has_place:
            # Reading it says what is wrong.
            yield
            return
        with self._alone():
            self.refuse(again)
            try:
                yield
            except BaseException:
                self._take_back(reports_path)
                raise

    @contextmanager
    def answering(self, device: "Ledger", again: bool) -> "Iterator[None]":
        """The same of a device that answers within, durably: the mark is there before any noise is drawn.

        It goes again where the device refuses. However else it ends, the ledger may have the report.
        """
        self._refuse_no_file()
        with self._alone():
            self.refuse(again)
            self._holder = device.name_holder()
            self.note(device.folder)
            try:
                yield
            except LedgerError:
                raise
            except LdpkitError:
                self._forget_last()
                raise

    def check(self, again: bool) -> None:
        """Before a person is asked: `answering` could begin now. It leaves nothing. Raises InputError."""
        if not self._has_place:
            self._refuse_no_file()
            return
        with self._alone():
            self.refuse(again)
            if os.path.exists(self._path) and not os.access(self._path, os.W_OK):
                raise self._cannot_mark(PermissionError(EACCES, os.strerror(EACCES)))

    def refuse(self, again: bool) -> None:
        """Raises InputError where the file was drawn from before, and it is not to be again."""
        self._refuse_no_file()
        self._refuse_in_clear()
        if not again:
            self._refuse()

    def _refuse_no_file(self) -> None:
        """A pipe has no place for a mark."""
        if not self._has_place and os.path.exists(self.answers_path) and not os.path.isdir(self.answers_path):
            raise InputError.say("cli.answers_in_a_file")

    @contextmanager
    def _alone(self) -> "Iterator[None]":
        self._take()
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(self._lock)

    def _take(self) -> None:
        """Of two processes one gets the lock, which none but it deletes."""
        try:
            os.close(os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise InputError.say("files.perturbing", file=self.answers_path, lock=self._lock) from None
        except OSError as error:
            raise self._cannot_mark(error) from None

    def _refuse_in_clear(self) -> None:
        """Whoever draws again does not mean that what had noise leaves without it."""
        if not self._study.public:
            return
        for entry in self._entries():
            if entry.get("id", self._study.id) != self._study.id:
                continue
            known = entry.get("names") or ()
            for field, names in _in_clear(self._study).items():
                if any([name in known for name in names]):
                    when = entry.get("when", "?")
                    raise InputError.say("files.turned", file=self.answers_path, field=field, when=when)

    def _refuse(self) -> None:
        for entry in self._entries():
            if self._may_be_the_same(entry):
                reports, when = entry.get("reports", "?"), entry.get("when", "?")
                key = "files.answered" if "device" in entry else "files.perturbed"
                raise InputError.say(key, file=self.answers_path, reports=reports, when=when)

    def _may_be_the_same(self, entry: "dict[str, Any]") -> bool:
        """Whether the draw was of this study's id, with a question of these; so it is if it does not say."""
        asked = entry.get("asked")
        if entry.get("id", self._study.id) != self._study.id:
            return False
        if self._holder and entry.get("device") == self._holder:
            return False
        return not isinstance(asked, list) or any([one in self._asked for one in asked])

    def _entries(self) -> "list[dict[str, Any]]":
        try:
            with open(self._path, encoding="utf-8") as file:
                entries = [json.loads(line) for line in file]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError.say("files.cannot_read", path=self._path, reason=error.strerror) from None
        except ValueError:
            entries = [None]
        if not all([isinstance(one, dict) and isinstance(one.get("names", []), list) for one in entries]):
            raise InputError.say("files.no_mark", file=self._path)
        return entries

    def note(self, reports_path: str) -> None:
        """Add this draw, durably, just before its reports get their name. Raises InputError."""
        if not self._has_place:
            return
        entry = {
            "study": self._study.digest,
            "id": self._study.id,
            "version": self._study.version,
            "asked": self._asked,
            "names": _names(self._study),
            "reports": os.path.abspath(reports_path),
            "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        if self._holder:
            entry["device"] = self._holder
        try:
            self._append(json.dumps(entry) + "\n")
        except OSError as error:
            raise self._cannot_mark(error) from None

    def _append(self, line: str) -> None:
        """All of a line, durably, or nothing of it. Raises OSError."""
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                self._before = os.fstat(file.fileno()).st_size
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            # Behind the closing, which writes what was left.
            self._forget_last()
            raise

    def _take_back(self, reports_path: str) -> None:
        """No mark stays of reports that do not stand. Where that fails it errs to the side of refusing."""
        # Of a stream nobody knows how much was read.
        if self._before is None or reports_path == STREAM:
            return
        if os.path.isfile(reports_path) and os.path.getsize(reports_path):
            return
        self._forget_last()

    def _forget_last(self) -> None:
        if self._before is None:
            return
        with suppress(OSError):
            if self._before:
                os.truncate(self._path, self._before)
            else:
                os.unlink(self._path)

    def _cannot_mark(self, error: OSError) -> InputError:
        return InputError.say("files.cannot_mark", path=self._path, reason=error.strerror)


def _asked(study: "Study") -> "list[str]":
    """Every question's id, and short digests of its texts, whatever their case, blanks and punctuation."""
    texts = {one["text"] for each in in_each_plain(study) for one in each["questions"] if one.get("text")}
    return sorted({question.id for question in study.questions}) + sorted({_digest(text) for text in texts})


def _names(study: "Study") -> "list[str]":
    """Short digests of what only noise hides, by which a later version's public field may be recognised."""
    documents = in_each_plain(study)
    names = {name for one in documents for asked in study.questions for name in names_in(one, asked.id)}
    return sorted({_digest(name) for name in names}.difference(*_in_clear(study).values()))


def _in_clear(study: "Study") -> "dict[str, set[str]]":
    """For each public field the same of its id and texts."""
    found: "dict[str, set[str]]" = {field.id: {_digest(field.id)} for field in study.public}
    for document in in_each_plain(study) if study.public else ():
        for one in document["public"]:
            found[one["id"]].update([_digest(text) for text in (one.get("text"),) if text])
    return found


def _digest(text: str) -> str:
    return "=" + hashlib.sha256(letters(text).encode("utf-8", "surrogatepass")).hexdigest()[:_SHORT]
