"""The client with which an operator's commands talk to a collector over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collector.remote import answers
from collector.remote.client import (
    RefusalError,
    ask,
    require_address,
    require_one_key,
    require_private,
)
from ldp_client.device.requests import CLOSED, STUDY_STATE
from ldp_client.documents.errors import TransferError

if TYPE_CHECKING:
    from schemas import Study

JSON = "application/json"
WHO = "the collector"
SECONDS = 60.0
# A large database is rewritten.
UPKEEP_SECONDS = 3600.0
# Enough for ten thousand tickets, or lines of the audit log.
MOST_BYTES = 16 << 20
# Each request deletes a hundred thousand reports.
MOST_REQUESTS = 10_000
UNKNOWN = 404


class RemoteCollector:
    """The collector at an address, with the operator's key ("" for none).

    Its methods raise RefusalError if the collector refuses, TransferError if it cannot be reached or the
    answer is not a collector's, and InputError if a key must not go to the address, or the token is not a
    single key.
    """

    def __init__(self, url: str, token: str) -> None:
        require_private(url)
        require_address(url)
        require_one_key(token)
        self.url = url.rstrip("/")
        self._token = token

    @property
    def has_key(self) -> bool:
        """Whether requests carry a key."""
        return bool(self._token)

    def page_of(self, study_id: str) -> str:
        """Return the address of the page where people answer a study."""
        return f"{self.url}/s/{quote(study_id, safe='')}"

    def address_of(self, study_id: str) -> str:
        """Return the address where devices fetch a study."""
        return f"{self.url}{_path(study_id)}"

    def studies(self) -> list[dict[str, Any]]:
        """Return the list of studies, in the form of `listed`."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/studies", answers.STUDIES)["studies"]
        return found

    def status(self, study_id: str) -> dict[str, Any]:
        """Return one study's status, in the form of `status_of`."""
        found: dict[str, Any] = self._json("GET", f"{_path(study_id)}/status", answers.STATUS)
        return found

    def published(self, study_id: str, version: int | None = None) -> bytes | None:
        """Return the document of a version, by default the current one; None if it is not published."""
        return self.served(study_id, version)[0]

    def served(self, study_id: str, version: int | None = None) -> tuple[bytes | None, bool]:
        """Return the result of `published`, and True if the study is served as closed."""
        wanted = "" if version is None else f"?version={version}"
        try:
            answer = ask(self.url + _path(study_id) + wanted, "", WHO, MOST_BYTES, SECONDS)
        except RefusalError as error:
            if error.status == UNKNOWN:
                return None, False
            raise
        return answer.body, answer.headers.get(STUDY_STATE) == CLOSED

    def publish(self, document: bytes, study: Study) -> None:
        """Publish a study, signed or not.

        study: the study in the document. Raises TransferError if the collector says that it published another
        study.
        """

        def read(body: Any) -> None:
            found = answers.PUBLISHED(body)
            if (found["id"], found["version"], found["digest"]) != (study.id, study.version, study.digest):
                raise ValueError

        self._json("POST", "/v1/studies", read, document)

    def close(self, study_id: str) -> int:
        """Close a study; return its version."""
        return int(self._json("POST", f"{_path(study_id)}/close", answers.VERSION, b"{}")["version"])

    def reopen(self, study_id: str) -> int:
        """Reopen a closed study; return its version."""
        return int(self._json("POST", f"{_path(study_id)}/open", answers.VERSION, b"{}")["version"])

    def retention(self) -> list[dict[str, Any]]:
        """Return the retention of each version that states one."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/retention", answers.RETENTION)["retention"]
        return found

    def expire(self, study_id: str, before: str | None = None) -> int:
        """Delete a study's reports from before a day, by default its overdue reports; return how many."""
        body = _bytes({} if before is None else {"before": before})
        return self._delete("POST", f"{_path(study_id)}/expire", body)

    def delete(self, study_id: str) -> int:
        """Close a study permanently and delete its reports; return how many."""
        return self._delete("DELETE", _path(study_id), None)

    def _delete(self, method: str, path: str, body: bytes | None) -> int:
        deleted: int = 0
        for _ in range(MOST_REQUESTS):
            try:
                now, complete = self._json(method, path, _deleted, body)
            except TransferError as error:
                if deleted:
                    raise TransferError(
                        f"{deleted} reports were deleted, and not all: {error}; run it again",
                        code="server.deleted_in_part",
                    ) from error
                raise
            deleted += now
            if complete:
                return deleted
        raise TransferError(f"{self.url} goes on deleting without end", code="server.deletes_without_end")

    def invite(self, study_id: str, count: int, public: dict[str, str]) -> tuple[list[str], list[str]]:
        """Make tickets; return them, and warnings about what they carry."""
        asked = {
            "count": count,
            "public": [{"field": name, "value": public[name]} for name in sorted(public)],
        }
        path = f"{_path(study_id)}/tickets"

        def read(body: Any) -> tuple[list[str], list[str]]:
            found = answers.TICKETS(body)
            if len(found["tickets"]) != count:
                raise ValueError
            return found["tickets"], found["warnings"]

        found: tuple[list[str], list[str]] = self._json("POST", path, read, _bytes(asked), False)
        return found

    def revoke_tickets(self, study_id: str) -> None:
        """Forget a study's tickets, so that only new ones admit reports."""
        self._json("POST", f"{_path(study_id)}/tickets/revoke", lambda body: body["id"], b"{}")

    def disable_tickets(self, study_id: str) -> None:
        """Forget a study's tickets and admit reports without tickets."""
        self._json("POST", f"{_path(study_id)}/tickets/disable", lambda body: body["id"], b"{}")

    def keep_up(self, day: str | None, recount: bool) -> list[dict[str, Any]]:
        """Run the daily upkeep now; return the versions whose summary was wrong, if reports are recounted.

        day: today's date, if the collector's clock is in doubt.
        """
        asked = _bytes({"recount": recount} if day is None else {"recount": recount, "date": day})
        found = self._json("POST", "/v1/upkeep", answers.UPKEEP, asked, False, UPKEEP_SECONDS)
        wrong: list[dict[str, Any]] = found["wrong"]
        return wrong

    def keys(self) -> list[dict[str, Any]]:
        """Return every key, by name."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/keys", answers.KEYS)["keys"]
        return found

    def add_key(self, **asked: Any) -> tuple[str, list[str]]:
        """Make a key; return it, and warnings about its rights.

        asked: name and role, and studies and expires if the key is restricted.
        """
        document = _bytes({name: value for name, value in asked.items() if value is not None})
        found = self._json("POST", "/v1/keys", answers.KEY, document, False)
        return found["key"], found["warnings"]

    def remove_key(self, name: str) -> None:
        """Make a key useless."""
        self._json("DELETE", f"/v1/keys/{quote(name, safe='')}", lambda body: body["removed"], again=False)

    def audit_log(self, limit: int, since: str | None) -> list[dict[str, Any]]:
        """Return the last lines of the audit log, the newest first."""
        path = f"/v1/audit-log?limit={limit}" + (f"&since={since}" if since else "")
        found: list[dict[str, Any]] = self._json("GET", path, answers.ENTRIES)["entries"]
        return found

    def _json(
        self,
        method: str,
        path: str,
        read: Callable[[Any], Any],
        body: bytes | None = None,
        again: bool = True,
        seconds: float = SECONDS,
    ) -> Any:
        url = self.url + path
        answer = ask(url, self._token, WHO, MOST_BYTES, seconds, body, JSON, method, again)
        try:
            return read(json.loads(answer.body))
        except (ValueError, TypeError, LookupError, RecursionError):
            raise TransferError(
                f"what came from {self.url} is no answer of a collector: is that one?",
                code="server.answer_not_json",
            ) from None


def _deleted(body: Any) -> tuple[int, bool]:
    """Return how many reports a request deleted, and whether all are deleted.

    Raises ValueError if a request deleted none although some are left.
    """
    found = answers.DELETED(body)
    if not found["deleted"] and not found["complete"]:
        raise ValueError
    return found["deleted"], found["complete"]


def _path(study_id: str) -> str:
    return f"/v1/studies/{quote(study_id, safe='')}"


def _bytes(document: Any) -> bytes:
    return json.dumps(document).encode()
