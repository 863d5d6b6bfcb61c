"""Fetch an export over HTTP and check that it is complete; or fetch the running summary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from email.message import Message
from typing import TypeVar
from urllib.parse import quote, urlencode

from collector.exports.dated import MOST_AROUND, DatedReport
from collector.remote.client import (
    Allowance,
    PassingError,
    Patience,
    ask,
    require_address,
    require_private,
    stream,
)
from ldp_client.documents.errors import DocumentError, StudyError, TransferError
from ldp_client.documents.report import MAX_BYTES
from ldp_client.documents.study import MAX_BYTES as STUDY_BYTES
from schemas import Report, Study
from schemas.export_end import DELETIONS_HEADER, WITHDRAWN_HEADER, end_line, is_end_line

DEADLINE_SECONDS = 300.0
# A summary of a million choices has some ten MiB.
MOST_SUMMARY_BYTES = 256 << 20
WHO = "the collector"
Read = TypeVar("Read", bound=Report)


class Start:
    """The collector's statements at the beginning of an export.

    Attributes:
        withdrawn: how many reports were withdrawn since the last export.
        deletions: the count of deletions, to be sent when the export is resumed.
    """

    deletions: str | None = None
    withdrawn = 0

    def note(self, headers: Message) -> None:
        """Read them from an answer's headers."""
        self.deletions = headers.get(DELETIONS_HEADER)
        withdrawn = headers.get(WITHDRAWN_HEADER, "0")
        self.withdrawn = max(self.withdrawn, int(withdrawn) if withdrawn.isdecimal() else 0)


def fetch_reports(base_url: str, study_id: str, token: str, start: Start | None = None) -> Iterator[Report]:
    """Yield every report of a study in the order of the ids, resuming when a connection breaks.

    start: receives the collector's statements at the beginning of the export. Raises InputError for a URL
    that a key must not go to, TransferError when the collector refuses or cannot be reached in 5 attempts
    that bring nothing new, or sends too slowly.
    """
    return _fetch(base_url, study_id, token, "ndjson", Report.from_json, start or Start())


def fetch_dated(
    base_url: str, study_id: str, token: str, start: Start | None = None
) -> Iterator[DatedReport]:
    """Yield every report with the day on which it arrived, as `fetch_reports` does."""
    return _fetch(base_url, study_id, token, "dated", DatedReport.from_line, start or Start())


def _fetch(
    base_url: str, study_id: str, token: str, form: str, parse: Callable[[bytes], Read], start: Start
) -> Iterator[Read]:
    require_private(base_url)
    require_address(base_url)
    after = ""
    patience, allowance = Patience(), Allowance()
    while True:
        try:
            url = _export_url(base_url, study_id, form, after, start.deletions)
            for report in _fetch_once(url, token, allowance, start, parse):
                if report.id <= after:
                    raise TransferError(
                        f"report {report.id} came again: is the query lost on the way?",
                        code="server.report_came_twice",
                    )
                patience.renew()
                after = report.id
                yield report
            return
        except PassingError as error:
            patience.wait(error)


def fetch_summary(base_url: str, study_id: str, token: str) -> str:
    """Return the summary of the current version's reports, as JSON text.

    Raises InputError for a URL that a key must not go to. Raises TransferError if the collector refuses or
    cannot be reached, and for an answer that is no summary, such as a proxy's page.
    """
    require_private(base_url)
    require_address(base_url)
    url = f"{_study_url(base_url, study_id)}/summary"
    try:
        text: str = ask(url, token, WHO, MOST_SUMMARY_BYTES, DEADLINE_SECONDS).body.decode()
        if not json.loads(text)["format"].startswith("ldpkit.summary/"):
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise TransferError(
            f"what came from {base_url} is no summary: is that a collector?", code="server.not_a_summary"
        ) from None
    return text


def fetch_study(base_url: str, study_id: str, version: int, digest: str) -> Study:
    """Return the published document that reports answer.

    Raises InputError and TransferError as `fetch_summary`, and TransferError if the digest differs.
    """
    require_private(base_url)
    require_address(base_url)
    url = f"{_study_url(base_url, study_id)}?version={version}"
    try:
        study = Study.from_json(ask(url, "", WHO, STUDY_BYTES, DEADLINE_SECONDS).body)
    except StudyError as error:
        raise TransferError(f"what came from {url} is no study: {error}", code="server.not_a_study") from None
    if study.digest != digest:
        raise TransferError(
            f"what came from {url} is not the study with digest {digest}", code="server.other_study"
        )
    return study


def _export_url(base_url: str, study_id: str, form: str, after: str, deletions: str | None) -> str:
    resumed = {"after": after} if after else {}
    if after and deletions is not None:
        resumed["deletions"] = deletions
    query = urlencode({"format": form, **resumed})
    return f"{_study_url(base_url, study_id)}/export?{query}"


def _study_url(base_url: str, study_id: str) -> str:
    return f"{base_url.rstrip('/')}/v1/studies/{quote(study_id, safe='')}"


def _fetch_once(
    url: str, token: str, allowance: Allowance, start: Start, parse: Callable[[bytes], Read]
) -> Iterator[Read]:
    with stream(url, token, WHO, allowance, start.note) as pieces:
        yield from _whole_export(_lines(pieces), parse)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends; the last may have none. Raises TransferError above any report's length."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        size += len(first)
        if max(size, *map(len, others), 0) > MAX_BYTES + MOST_AROUND:
            raise TransferError(
                f"{WHO} sent a line of more than {MAX_BYTES} bytes: no report is longer",
                code="server.line_too_long",
            )
        held.append(first)
        if others:
            yield b"".join(held) + b"\n"
            yield from (line + b"\n" for line in others[:-1])
            held, size = [others[-1]], len(others[-1])
    if size:
        yield b"".join(held)


def _whole_export(lines: Iterator[bytes], parse: Callable[[bytes], Read]) -> Iterator[Read]:
    """Yield the reports before the end line. Raises PassingError if the end line is missing or disagrees."""
    count = 0
    for line in lines:
        if not line.endswith(b"\n"):
            break
        if line == end_line(count).encode():
            return
        if is_end_line(line):
            raise TransferError(
                f"the export ends after {count} reports, but its last line says otherwise",
                code="server.export_end_differs",
            )
        try:
            yield parse(line)
        except DocumentError as error:
            raise TransferError(
                f"the collector sent what is not a report: {error}", code="server.not_a_report"
            ) from None
        count += 1
    raise PassingError(f"the export was cut off after {count} reports")
