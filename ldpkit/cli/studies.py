"""The commands for a study at a collector: publish, status, close, open, delete, expire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import InputError, RefusedError, StudyError, TransferError, UsageError
from ldp_client.words.text import counted, visible
from ldpkit.cli.client import Client, RefusalError, client_of, study_path
from ldpkit.cli.commands import DAY, collector_option, command, json_option, require_yes, yes_option
from ldpkit.cli.output import show, warn

if TYPE_CHECKING:
    from schemas import Study

FORBIDDEN = 403
# Each request deletes a hundred thousand reports.
MOST_REQUESTS = 10_000
ENDS_SUM = (
    "once shares are deleted at this node, its total can no longer be made, unless `ldpkit node close` has "
    "made it"
)


@command("publish", "publish study.json --collector https://ask.example.org")
@click.argument("study", metavar="STUDY.json")
@collector_option
@json_option
def publish(study: str, collector: str) -> None:
    """Publish a study, or a new version of one, at a collector.

    A study that a key signed which the collector trusts needs no operator's key.
    """
    from schemas.disk import read_bytes
    from schemas.warnings import require_keys, unstated_in_words, warnings_of

    # 1. Read the study, and check whether it could be answered and analysed.
    document = read_bytes(study)
    read, is_signed = _study_in(document, study)
    client = client_of(collector, "" if is_signed else "publishing a study that is not signed")
    for line in [*warnings_of(read), *unstated_in_words(read)]:
        warn(line)
    try:
        require_keys(read)
    except StudyError as error:
        raise InputError(f"{study}: {error}", code="publish.ticket_keys_missing") from None
    # 2. Publish it, and compare what the collector says that it published.
    answer = client.send("POST", "/v1/studies", document)
    names = {"id": read.id, "version": read.version, "digest": read.digest}
    if not names.items() <= _document(answer.body).items():
        raise TransferError(
            f"{client.url} did not confirm {read.id}: is that a collector?", code="server.answer_not_json"
        )
    # 3. Print the addresses.
    address, is_new = client.url + study_path(read.id), answer.status == 201
    has_page = read.protocol is None and read.respondent != "holder"
    page = f"{client.url}/s/{read.id}" if has_page else None
    again = "is published" if is_new else "was published before"
    lines = [f"{read.id}, version {read.version}, {again}; digest {read.digest}"]
    if page:
        lines.append(f"people answer at  {page}")
    lines.append(f"devices fetch     {address}")
    lines.append(f"how it goes       ldpkit status {read.id} --collector {client.url}")
    study_names = {"study": read.id, "version": read.version, "digest": read.digest}
    show(lines, {**study_names, "new": is_new, "people": page, "devices": address})


def _study_in(document: bytes, path: str) -> tuple[Study, bool]:
    """Read the study in a file; return it, and True if it is signed. Raises InputError."""
    from ldp_client.documents.signed import FORMAT
    from schemas import Study
    from schemas.study import SignedStudy

    is_signed = _document(document).get("format") == FORMAT
    try:
        return SignedStudy.from_json(document).study if is_signed else Study.from_json(document), is_signed
    except StudyError as error:
        raise InputError(f"{path}: {error}", code="publish.study_invalid") from None


def _document(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


@command("status", "status habits")
@click.argument("study", metavar="[STUDY_ID]", required=False)
@click.option("--log", is_flag=True, help="instead, the last actions of operators, each with its key and day")
@collector_option
@json_option
def status(study: str | None, log: bool, collector: str) -> None:
    """List a collector's studies, or print one's status: reports by day, refusals and warnings."""
    if study is not None and log:
        raise click.UsageError("STUDY_ID and --log exclude each other")
    client = client_of(collector, "a collector's status")
    if study is not None:
        show_answer(client, f"{study_path(study)}/status", lambda body: (body, _status_lines(body)))
    elif log:
        show_answer(client, "/v1/audit-log", lambda body: listed(body["entries"], _entry_line))
    else:
        show_answer(client, "/v1/studies", lambda body: listed(body["studies"], _study_line))


def show_answer(client: Client, path: str, read: Any) -> None:
    """Print what a server answers. read: returns the document, and its lines in columns."""
    document, lines = client.ask("GET", path, read)
    show((columns(line) for line in lines), document)


def columns(line: str) -> str:
    """Return a line in columns, without control sequences that another collector's words may have."""
    return "\t".join(map(visible, line.split("\t")))


def listed(entries: Any, line: Any) -> tuple[Any, list[str]]:
    """Return entries, and a line for each."""
    return entries, [line(entry) for entry in entries]


def _study_line(study: Mapping[str, Any]) -> str:
    is_open = study["state"] in ("open", "not open yet")
    state = f"{study['opens'] or '…'} to {study['closes'] or '…'}" if is_open else study["state"]
    return f"{study['id']}\tversion {study['version']}\t{state}\t{counted(study['reports'], 'report')}"


def _entry_line(entry: Mapping[str, Any]) -> str:
    return "\t".join([entry["at"], entry["key"], entry["action"], entry["study"] or "", entry["detail"]])


def _status_lines(status: Mapping[str, Any]) -> list[str]:
    left = status["days_left"]
    until = "" if left is None else f", {counted(left, 'day')} left with today"
    refused = ", ".join(f"{name} {number}" for name, number in status["refused"].items())
    versions = ", ".join(
        f"{each['version']} ({counted(each['reports'], 'report')})" for each in status["versions"]
    )
    lines = [
        f"{status['id']}: {status['title']}",
        f"state\t{status['state']}{until}; {status['opens'] or '…'} to {status['closes'] or '…'}",
        f"reports\t{status['reports']}",
        *(f"\t{each['day']}\t{each['reports']}" for each in status["by_day"]),
        f"version\t{status['version']}, of {versions}",
        f"refused\t{refused or 'nothing'} (since the collector started)",
    ]
    for kept in status["retention"]:
        until = f"until {kept['until']}" if kept["until"] else "after each one's day"
        stated = f"version {kept['version']}\t{counted(kept['days'], 'day')}, {until}"
        lines.append(f"retention\t{stated}\t{kept['reports']} kept\t{kept['overdue']} overdue")
    if status["tickets_left"] is not None:
        lines.append(f"invited\t{counted(status['tickets_left'], 'ticket')} left")
    if status.get("issuer") is not None:
        lines.append(f"tokens\tof {status['issuer']}, one a report")
    return [*lines, *(f"look after: {line}" for line in status["attention"])]


def _status_of(client: Client, study_id: str) -> dict[str, Any]:
    """Return a study's status, whose lines can be made. Raises TransferError."""

    def read(body: Any) -> dict[str, Any]:
        _status_lines(body)
        return dict(body)

    return client.ask("GET", f"{study_path(study_id)}/status", read)


@command("close", "close habits --yes")
@click.argument("study", metavar="STUDY_ID")
@yes_option
@collector_option
def close(study: str, yes: bool, collector: str) -> None:
    """Close a study, so that it takes no reports until `ldpkit open` reopens it."""
    client = client_of(collector, "closing a study")
    hours = client.ask("GET", study_path(study), _hours_of_batches)
    if hours:
        warn(
            f"reports to {study} leave up to {2 * hours} hours after they were made, uncounted until "
            "then: those under way are refused once it is closed, and lost where it stays so; publish a "
            "version with `closes` instead, or close it that much later"
        )
    require_yes(yes, f"closing {study} at {client.url}")
    _change(client, study, "close", "is closed")


def _hours_of_batches(study: Any) -> int:
    return int(study.get("channel", {}).get("batches", {}).get("hours", 0))


@command("open", "open habits")
@click.argument("study", metavar="STUDY_ID")
@collector_option
def reopen(study: str, collector: str) -> None:
    """Reopen a study that was closed."""
    _change(client_of(collector, "opening a study"), study, "open", "takes reports if its days are not over")


def _change(client: Client, study: str, action: str, done: str) -> None:
    version = client.ask("POST", f"{study_path(study)}/{action}", lambda body: int(body["version"]), {})
    show([f"{study}, version {version}, {done}"])


@command("delete", "delete habits --yes")
@click.argument("study", metavar="STUDY_ID")
@yes_option
@collector_option
def delete(study: str, yes: bool, collector: str) -> None:
    """Close a study permanently and delete its reports."""
    client = client_of(collector, "deleting a study")
    try:
        status = _status_of(client, study)
    except RefusalError as error:
        if error.status == FORBIDDEN:
            # This request needs less than the next one.
            what = "deleting a study needs a key for it with the role operate"
            raise RefusalError(what, FORBIDDEN) from None
        raise
    if status["summed"]:
        warn(f"{study} is a secure sum: {ENDS_SUM}")
    what = f"{counted(status['reports'], 'report')} of {study} at {client.url}"
    require_yes(yes, f"deleting {what}, and closing it permanently")
    deleted = _delete(client, "DELETE", study_path(study), None)
    show([f"{counted(deleted, 'report')} of {study} deleted, and the study closed permanently"])


def _delete(client: Client, method: str, path: str, body: Any) -> int:
    """Delete reports, in as many requests as it takes; return how many. Raises TransferError."""
    total = 0
    for _ in range(MOST_REQUESTS):
        try:
            deleted, is_complete = client.ask(method, path, _deleted, body)
        except TransferError as error:
            if not total:
                raise
            raise TransferError(
                f"{total} reports were deleted, and not all: {error}; run it again",
                code="server.deleted_in_part",
            ) from error
        total += deleted
        if is_complete:
            return total
    raise TransferError(f"{client.url} goes on deleting without end", code="server.deletes_without_end")


def _deleted(body: Any) -> tuple[int, bool]:
    """Return how many reports a request deleted, and whether all are deleted. Raises ValueError."""
    deleted, is_complete = int(body["deleted"]), body["complete"] is True
    if deleted < 1 and not is_complete:
        raise ValueError
    return deleted, is_complete


@command("expire", "expire habits --before 2026-06-01 --yes")
@click.argument("study", metavar="[STUDY_ID]", required=False)
@click.option("--before", type=DAY, help="those from before this day (UTC), whatever the study states")
@yes_option
@collector_option
def expire(study: str | None, before: date | None, yes: bool, collector: str) -> None:
    """Delete reports that were kept for as long as their study states, or that came before a day.

    Without STUDY_ID: the overdue reports of each study that states how long.
    """
    # 1. Find the reports.
    if before is not None and study is None:
        raise UsageError("--before needs a STUDY_ID", code="admin.expire_without_study")
    if before is not None and before > datetime.now(UTC).date():
        raise UsageError(
            f"--before {before} is still to come: today's reports would go too; see ldpkit delete",
            code="admin.expire_in_future",
        )
    client = client_of(collector, "deleting reports")
    if study is not None and before is not None:
        days = _status_of(client, study)["by_day"]
        reports = {study: sum(day["reports"] for day in days if str(day["day"]) < before.isoformat())}
        asked = {"before": before.isoformat()}
    else:
        reports, asked = client.ask("GET", "/v1/retention", lambda body: _overdue(body, study)), {}
        if study is not None and not reports:
            raise InputError(
                f"{study[:64]!r} is no study there that states how long its reports are kept: name --before",
                code="admin.no_stated_retention",
            )
        reports = {name: number for name, number in reports.items() if number}
    if not reports:
        show([f"nothing is overdue at {client.url}"])
        return
    # 2. Ask.
    for summed in client.ask(
        "GET", "/v1/studies", lambda body: [each["id"] for each in body["studies"] if each["summed"]]
    ):
        if summed in reports:
            warn(visible(f"{summed} is a secure sum: {ENDS_SUM}"))
    what = ", ".join(f"{counted(number, 'report')} of {name}" for name, number in reports.items())
    since = "" if before is None else f" from before {before}"
    require_yes(yes, f"deleting {what}{since} at {client.url}, with their part of the summaries,")
    # 3. Delete them, of each study.
    failed: dict[str, TransferError] = {}
    for name in reports:
        try:
            deleted = _delete(client, "POST", f"{study_path(name)}/expire", asked)
            show([visible(f"{counted(deleted, 'report')} of {name} deleted")])
        except TransferError as error:
            failed[name] = error
    if failed:
        why = "; ".join(f"{name}: {error}" for name, error in failed.items())
        is_refused = any(isinstance(error, RefusalError) for error in failed.values())
        kind = RefusedError if is_refused else TransferError
        raise kind(f"not all was deleted at {client.url}: {why}", code="admin.not_all_deleted")


def _overdue(body: Any, study: str | None) -> dict[str, int]:
    """Return the number of overdue reports by study, of those that state how long they keep reports."""
    overdue: dict[str, int] = {}
    for kept in body["retention"]:
        if study in (None, kept["study"]):
            overdue[str(kept["study"])] = overdue.get(kept["study"], 0) + int(kept["overdue"])
    return overdue
