"""Fetching an export over HTTP, and knowing that nothing of it is missing; or the running summary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from collector.remote.client import Allowance, PassingError, Patience, ask, stream
from ldp_client.documents.errors import DocumentError, InputError, TransferError
from ldp_client.documents.export_end import FORMAT as END_FORMAT
from ldp_client.documents.export_end import end_line
from ldp_client.documents.report import MAX_BYTES
from schemas import Report

DEADLINE_SECONDS = 300.0
# A summary of a million choices has some ten.
MOST_SUMMARY_BYTES = 256 << 20
WHO = "the collector"


def fetch_reports(base_url: str, study_id: str, token: str) -> Iterator[Report]:
    """Every report of a study in the order of the ids, resumed where a connection breaks.

    Raises InputError for a URL that is not HTTP, TransferError when the collector refuses or
    cannot be reached in 5 attempts that bring nothing new, or sends too slowly.
    """
    _require_http(base_url)
    after = ""
    patience, allowance = Patience(), Allowance()
    while True:
        try:
            for report in _fetch_once(_export_url(base_url, study_id, after), token, allowance):
                if report.id <= after:
                    raise TransferError(f"report {report.id} came again: is the query lost on the way?")
                patience.renew()
                after = report.id
                yield report
            return
        except PassingError as error:
            patience.wait(error)


def fetch_summary(base_url: str, study_id: str, token: str) -> str:
    """The summary of the current version's reports, as JSON text.

    Raises InputError for a URL that is not HTTP, TransferError when the collector refuses or is away, and
    for an answer that is no summary: a page in between, or a proxy's.
    """
    _require_http(base_url)
    url = f"{_study_url(base_url, study_id)}/summary"
    try:
        text: str = ask(url, token, WHO, MOST_SUMMARY_BYTES, DEADLINE_SECONDS).decode()
        if not json.loads(text)["format"].startswith("ldpkit.summary/"):
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise TransferError(f"what came from {base_url} is no summary: is that a collector?") from None
    return text


def _export_url(base_url: str, study_id: str, after: str) -> str:
    url = f"{_study_url(base_url, study_id)}/export"
    return f"{url}?after={after}" if after else url


def _study_url(base_url: str, study_id: str) -> str:
    return f"{base_url.rstrip('/')}/v1/studies/{quote(study_id, safe='')}"


def _require_http(url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"{url!r} is not an http or https URL")


def _fetch_once(url: str, token: str, allowance: Allowance) -> Iterator[Report]:
    with stream(url, token, WHO, allowance) as pieces:
        yield from _whole_export(_lines(pieces))


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Lines with their ends; the last one may have none. Raises TransferError above any report's length."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        size += len(first)
        if max(size, *map(len, others), 0) > MAX_BYTES:
            raise TransferError(f"{WHO} sent a line of more than {MAX_BYTES} bytes: no report is longer")
        held.append(first)
        if others:
            yield b"".join(held) + b"\n"
            yield from (line + b"\n" for line in others[:-1])
            held, size = [others[-1]], len(others[-1])
    if size:
        yield b"".join(held)


def _whole_export(lines: Iterator[bytes]) -> Iterator[Report]:
    """The reports before the end line. Raises PassingError when there is no end line or it disagrees."""
    count = 0
    for line in lines:
        if not line.endswith(b"\n"):
            break
        if line == end_line(count).encode():
            return
        if END_FORMAT.encode() in line:
            raise TransferError(f"the export ends after {count} reports, but its last line says otherwise")
        yield _parse_report(line)
        count += 1
    raise PassingError(f"the export was cut off after {count} reports")


def _parse_report(line: bytes) -> Report:
    try:
        return Report.from_json(line)
    except DocumentError as error:
        raise TransferError(f"the collector sent what is not a report: {error}") from None
