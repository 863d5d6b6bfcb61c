"""The command `ldpkit export`: it fetches a study's reports, or their summary, into a new file or place."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from email.message import Message
from typing import Any, TypeVar
from urllib.parse import urlencode

from ldp_client.documents.errors import DocumentError, StudyError, TransferError
from ldp_client.documents.report import MAX_BYTES
from ldp_client.words.text import counted
from ldpkit.cli.client import Client, PassingError, pause, study_path
from ldpkit.cli.commands import collector_option, command, id_argument, out_option
from ldpkit.cli.output import progress, show, warn
from ldpkit.cli.report_files import MOST_AROUND, TABLES, DatedReport, write_reports, write_table
from schemas import Report, Study
from schemas.disk import write_new
from schemas.export_end import DELETIONS_HEADER, WITHDRAWN_HEADER, end_line, is_end_line
from summaries.progress import Step

Read = TypeVar("Read", bound=Report)
REPORTS_BETWEEN_LINES = 1000
SUMMARY_SECONDS = 300.0
# A summary of a million choices has some ten MiB.
MOST_SUMMARY_BYTES = 256 << 20


@command("export", "export habits --out reports.ndjson")
@id_argument
@out_option(
    "a new file: *.ndjson; a table for people, *.csv or *.parquet; *.json, a summary for `ldpkit fit`; for "
    "a dataset of many files an empty folder, whose name ends in /, or an address such as s3://bucket/x"
)
@collector_option
def export(study: str, out: str, collector: Client) -> None:
    """Fetch a study's reports from a collector; needs a key that may read.

    A table has columns of what each report says, and the day on which it came.
    """
    # 1. Fetch a summary.
    is_place = "://" in out or out.endswith("/") or os.path.isdir(out)
    if out.lower().endswith(".json") and not is_place:
        summary = fetch_summary(collector, study)
        write_new(out, json.dumps(summary) + "\n")
        lines = [f"the summary of version {summary.get('version')} is in {out}; *.ndjson has the reports"]
        if summary.get("version") != 1:
            lines.append("it has no report of earlier versions, which an export of reports has")
        show(lines)
        return
    # 2. Or reports.
    starts: list[Message] = []

    def find(version: int, digest: str) -> Study:
        return fetch_study(collector, study, version, digest)

    where = out
    if out.lower().endswith(TABLES) and not is_place:
        from summaries.decoding import Decoding

        decoding = Decoding(find)
        dated = fetch(collector, study, "dated", DatedReport.from_line, starts)
        count = write_table(_counted(dated), out, decoding)
        for question in decoding.undecoded:
            warn(f"{question} has no decoded columns: only `ldpkit fit` reads its reports")
    elif is_place:
        from ldpkit.cli.dataset import write_dataset

        parts = write_dataset(_counted(fetch_reports(collector, study, starts)), study, out, find)
        count, where = sum(part.reports for part in parts), f"{counted(len(parts), 'file')} in {out}"
    else:
        count = write_reports(_counted(fetch_reports(collector, study, starts)), out)
    lines = [f"{counted(count, 'report')} in {where}"]
    stated = [headers.get(WITHDRAWN_HEADER, "") for headers in starts]
    if withdrawn := max([int(number) for number in stated if number.isdecimal()], default=0):
        were = "report was" if withdrawn == 1 else "reports were"
        lines.append(f"{withdrawn} {were} withdrawn up to now: delete older copies, which may have them")
    show(lines)


def _counted(reports: Iterable[Read]) -> Iterator[Read]:
    """Yield the reports and print progress; how many are left is unknown."""
    tell = progress()
    for count, report in enumerate(reports, 1):
        yield report
        if count % REPORTS_BETWEEN_LINES == 0:
            tell(Step(f"{counted(count, 'report')} fetched", 0, 1))


def fetch_reports(client: Client, study_id: str, starts: list[Message] | None = None) -> Iterator[Report]:
    """Yield every report of a study in the order of the ids, resuming when a connection breaks.

    Args:
        client: the collector.
        study_id: the study.
        starts: gets the headers of each answer, which state how many reports were withdrawn.

    Raises:
        TransferError: the collector refuses, or cannot be reached in 5 attempts that bring nothing new.
    """
    return fetch(client, study_id, "ndjson", Report.from_json, [] if starts is None else starts)


def fetch(
    client: Client, study_id: str, form: str, parse: Callable[[bytes], Read], starts: list[Message]
) -> Iterator[Read]:
    """Yield every report in a form of exports. Raises as `fetch_reports`."""
    after, failed = "", 0
    while True:
        query = {"format": form}
        if after:
            query |= {"after": after, "deletions": starts[-1].get(DELETIONS_HEADER, "")}
        lines = client.lines(
            f"{study_path(study_id)}/export?{urlencode(query)}", MAX_BYTES + MOST_AROUND, starts.append
        )
        try:
            for report in whole_export(lines, parse):
                if report.id <= after:
                    raise TransferError(
                        f"report {report.id} came again: is the query lost on the way?",
                        code="server.report_came_twice",
                    )
                after, failed = report.id, 0
                yield report
            return
        except PassingError as error:
            failed += 1
            pause(failed, error)


def whole_export(lines: Iterable[bytes], parse: Callable[[bytes], Read]) -> Iterator[Read]:
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


def fetch_summary(client: Client, study_id: str) -> dict[str, Any]:
    """Return the summary of the current version's reports.

    Raises TransferError if the collector refuses or cannot be reached, and for an answer that is no summary.
    """
    path = f"{study_path(study_id)}/summary"

    def read(body: Any) -> dict[str, Any]:
        if not body["format"].startswith("ldpkit.summary/"):
            raise ValueError
        return dict(body)

    return client.ask("GET", path, read, most=MOST_SUMMARY_BYTES, seconds=SUMMARY_SECONDS)


def fetch_study(client: Client, study_id: str, version: int, digest: str) -> Study:
    """Return the published document that reports answer.

    Raises TransferError if the collector refuses or cannot be reached, or if it is another document.
    """
    path = f"{study_path(study_id)}?version={version}"
    try:
        study = Study.from_json(client.send("GET", path).body)
    except StudyError as error:
        raise TransferError(
            f"what came from {client.url} is no study: {error}", code="server.not_a_study"
        ) from None
    if study.digest != digest:
        raise TransferError(
            f"what came from {client.url} is not the study with digest {digest}", code="server.other_study"
        )
    return study
