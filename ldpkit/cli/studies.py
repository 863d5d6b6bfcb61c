"""The commands for a study at a collector: publish, status, close, open, delete, expire."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import InputError, RefusedError, StudyError, TransferError, UsageError
from ldp_client.words.text import counted, visible
from ldpkit.cli.commands import (
    DAY,
    collector_option,
    command,
    json_option,
    require_yes,
    yes_option,
)
from ldpkit.cli.output import show, warn

if TYPE_CHECKING:
    from ldpkit.cli.client import Client
    from schemas import Study

FORBIDDEN = 403
# Each request deletes a hundred thousand reports.
MOST_REQUESTS = 10_000
# A large database is rewritten.
UPKEEP_SECONDS = 3600.0
# Lines of the audit log that a collector returns at most.
MOST_LINES = 10_000
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
    from ldp_client.files.disk import read_bytes
    from ldpkit.cli.client import client_of, study_path
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
    said = [f"{read.id}, version {read.version}, {again}; digest {read.digest}"]
    if page:
        said.append(f"people answer at  {page}")
    said.append(f"devices fetch     {address}")
    said.append(f"how it goes       ldpkit status {read.id} --collector {client.url}")
    found = {"study": read.id, "version": read.version, "digest": read.digest}
    show(said, {**found, "done": True, "new": is_new, "people": page, "devices": address})


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
@click.option("--log", is_flag=True, help="instead, what operators did, with which key, and when")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_LINES),
    metavar="N",
    help="lines of --log, the newest first (100)",
)
@collector_option
@json_option
def status(study: str | None, log: bool, limit: int | None, collector: str) -> None:
    """List a collector's studies, or print one's status: reports by day, refusals and warnings."""
    from ldpkit.cli.client import client_of, study_path

    if study is not None and log:
        raise click.UsageError("STUDY_ID and --log exclude each other")
    if limit is not None and not log:
        raise click.UsageError("--limit goes with --log")
    client = client_of(collector, "a collector's status")
    if log:
        found, lines = client.ask(
            "GET",
            f"/v1/audit-log?limit={limit or 100}",
            lambda body: _lined(body["entries"], _entry_in_one_line),
        )
    elif study is not None:
        found, lines = client.ask(
            "GET", f"{study_path(study)}/status", lambda body: (body, _status_in_lines(body))
        )
    else:
        found, lines = client.ask(
            "GET", "/v1/studies", lambda body: _lined(body["studies"], _study_in_one_line)
        )
        if not found:
            warn(f"{client.url} has no study")
    show(map(columns, lines), found)


def _lined(found: Any, line: Any) -> tuple[Any, list[str]]:
    return found, [line(one) for one in found]


def columns(line: str) -> str:
    """Return a line in columns, without control sequences that another collector's words may have."""
    return "\t".join(map(visible, line.split("\t")))


def _study_in_one_line(study: Mapping[str, Any]) -> str:
    is_open = study["state"] in ("open", "not open yet")
    state = f"{study['opens'] or '…'} to {study['closes'] or '…'}" if is_open else study["state"]
    return f"{study['id']}\tversion {study['version']}\t{state}\t{counted(study['reports'], 'report')}"


def _entry_in_one_line(entry: Mapping[str, Any]) -> str:
    return "\t".join([entry["at"], entry["key"], entry["action"], entry["study"] or "", entry["detail"]])


def _status_in_lines(status: Mapping[str, Any]) -> list[str]:
    left = status["days_left"]
    until = "" if left is None else f", {counted(left, 'day')} left with today"
    refused = ", ".join(f"{name} {number}" for name, number in status["refused"].items())
    versions = ", ".join(
        f"{one['version']} ({counted(one['reports'], 'report')})" for one in status["versions"]
    )
    lines = [
        f"{status['id']}: {status['title']}",
        f"state\t{status['state']}{until}; {status['opens'] or '…'} to {status['closes'] or '…'}",
        f"reports\t{status['reports']}",
        *(f"\t{one['day']}\t{one['reports']}" for one in status["by_day"]),
        f"version\t{status['version']}, of {versions}",
        f"refused\t{refused or 'nothing'} (since the collector started)",
        *(f"retention\t{_kept_in_one_line(one)}" for one in status["retention"]),
    ]
    if status["tickets_left"] is not None:
        lines.append(f"invited\t{counted(status['tickets_left'], 'ticket')} left")
    if status.get("issuer") is not None:
        lines.append(f"tokens\tof {status['issuer']}, one a report")
    return [*lines, *(f"look after: {line}" for line in status["attention"])]


def _kept_in_one_line(kept: Mapping[str, Any]) -> str:
    until = f"until {kept['until']}" if kept["until"] else "after each one's day"
    stated = f"{counted(kept['days'], 'day')}, {until}"
    return "\t".join(
        [f"version {kept['version']}", stated, f"{kept['reports']} kept", f"{kept['overdue']} overdue"]
    )


@command("close", "close habits --yes")
@click.argument("study", metavar="STUDY_ID")
@yes_option
@collector_option
@json_option
def close(study: str, yes: bool, collector: str) -> None:
    """Close a study, so that it takes no reports until `ldpkit open` reopens it."""
    from ldpkit.cli.client import client_of

    client = client_of(collector, "closing a study")
    before = _status_of(client, study)
    hours = _hours_under_way(client, study, before)
    if hours:
        warn(
            f"reports to {study} leave up to {2 * hours} hours after they were made, uncounted until then: "
            "those under way are refused once it is closed, and lost where it stays so; publish a version "
            "with `closes` instead, or close it that much later"
        )
    require_yes(yes, f"closing {study} at {client.url}{_in_words(before)}")
    _change(client, study, "close", before, "is closed")


@command("open", "open habits --yes")
@click.argument("study", metavar="STUDY_ID")
@yes_option
@collector_option
@json_option
def reopen(study: str, yes: bool, collector: str) -> None:
    """Reopen a study that was closed."""
    from ldpkit.cli.client import client_of

    client = client_of(collector, "opening a study")
    before = _status_of(client, study)
    require_yes(yes, f"opening {study} at {client.url}{_in_words(before)}")
    _change(client, study, "open", before, "takes reports between its `opens` and `closes`")


def _change(client: Client, study: str, action: str, before: dict[str, Any] | None, done: str) -> None:
    from ldpkit.cli.client import study_path

    version = client.ask("POST", f"{study_path(study)}/{action}", lambda body: int(body["version"]), {})
    was = before and {"state": before["state"], "reports": before["reports"]}
    found = {"study": study, "version": version, "done": True, "before": was}
    show([f"{study}, version {version}, {done}"], found)


def _status_of(client: Client, study_id: str) -> dict[str, Any] | None:
    """Return a study's status, or None if the key may not read it. Raises RefusalError."""
    from ldpkit.cli.client import RefusalError, study_path

    try:
        return client.ask("GET", f"{study_path(study_id)}/status", _checked_status)
    except RefusalError as error:
        if error.status != FORBIDDEN:
            raise
        return None


def _checked_status(body: Any) -> dict[str, Any]:
    """Return a status whose formatting does not fail."""
    _status_in_lines(body)
    status: dict[str, Any] = body
    return status


def _in_words(status: Mapping[str, Any] | None) -> str:
    return f", {status['state']} with {counted(status['reports'], 'report')}" if status else ""


def _hours_under_way(client: Client, study_id: str, status: Mapping[str, Any] | None) -> int:
    """Return for how many hours at most a version's reports wait for their window.

    status: None if the key may not read it. Then only the current version counts.
    """
    from ldpkit.cli.client import study_path
    from schemas import Study

    versions = [""] if status is None else [f"?version={one['version']}" for one in status["versions"]]
    hours = [0]
    for version in versions:
        channel = Study.from_json(client.send("GET", study_path(study_id) + version).body).channel
        hours.append(channel.hours if channel else 0)
    return max(hours)


@command("delete", "delete habits --yes")
@click.argument("study", metavar="STUDY_ID")
@yes_option
@collector_option
@json_option
def delete(study: str, yes: bool, collector: str) -> None:
    """Close a study permanently and delete its reports."""
    from ldpkit.cli.client import client_of, study_path

    client = client_of(collector, "deleting a study")
    path = study_path(study)
    status = client.ask("GET", f"{path}/status", _checked_status)
    if status["summed"]:
        warn(f"{study} is a secure sum: {ENDS_SUM}")
    what = f"{counted(status['reports'], 'report')} of {study} at {client.url}"
    require_yes(yes, f"deleting {what}, and closing it permanently")
    deleted = _delete(client, "DELETE", path, None)
    said = f"{counted(deleted, 'report')} of {study} deleted, and the study closed permanently"
    show([said], {"study": study, "reports": status["reports"], "done": True, "deleted": deleted})


def _delete(client: Client, method: str, path: str, body: Any) -> int:
    """Delete reports, in as many requests as it takes; return how many. Raises TransferError."""
    total = 0
    for _ in range(MOST_REQUESTS):
        try:
            deleted, complete = client.ask(method, path, _deleted, body)
        except TransferError as error:
            if not total:
                raise
            raise TransferError(
                f"{total} reports were deleted, and not all: {error}; run it again",
                code="server.deleted_in_part",
            ) from error
        total += deleted
        if complete:
            return total
    raise TransferError(f"{client.url} goes on deleting without end", code="server.deletes_without_end")


def _deleted(body: Any) -> tuple[int, bool]:
    """Return how many reports a request deleted, and whether all are deleted. Raises ValueError."""
    deleted, complete = int(body["deleted"]), body["complete"] is True
    if deleted < 1 and not complete:
        raise ValueError
    return deleted, complete


@command("expire", "expire habits --before 2026-06-01 --yes")
@click.argument("study", metavar="[STUDY_ID]", required=False)
@click.option("--before", type=DAY, help="those from before this day (UTC), whatever the study states")
@yes_option
@collector_option
@json_option
def expire(study: str | None, before: date | None, yes: bool, collector: str) -> None:
    """Delete reports that were kept for as long as their study states, or that came before a day.

    Without STUDY_ID: the overdue reports of each study that states how long.
    """
    from ldpkit.cli.client import PassingError, RefusalError, client_of, study_path

    # 1. Which reports go.
    if before is not None and study is None:
        raise UsageError("--before needs a STUDY_ID", code="admin.expire_without_study")
    if before is not None and before > datetime.now(UTC).date():
        raise UsageError(
            f"--before {before} is still to come: today's reports would go too; see ldpkit delete",
            code="admin.expire_in_future",
        )
    client = client_of(collector, "deleting reports")
    summed = client.ask(
        "GET", "/v1/studies", lambda body: {one["id"]: one["summed"] for one in body["studies"]}
    )
    if study is not None and before is not None:
        reports = {study: _reports_before(client, study, before)}
        what = f"{counted(reports[study], 'report')} of {study} from before {before}"
    else:
        found = client.ask("GET", "/v1/retention", lambda body: _overdue(body["retention"], study))
        reports = {name: number for name, number in found.items() if number}
        what = ", ".join(f"{counted(number, 'report')} of {name}" for name, number in reports.items())
    if not reports:
        show([f"nothing is overdue at {client.url}"], {"done": False, "reports": {}, "deleted": {}})
        return
    for name in reports:
        if summed.get(name):
            warn(visible(f"{name} is a secure sum: {ENDS_SUM}"))
    require_yes(yes, f"deleting {what} at {client.url}, with their part of the summaries,")
    # 2. Delete them, of each study.
    deleted: dict[str, int] = {}
    failed: dict[str, TransferError] = {}
    is_refused = False
    for name in reports:
        body = {} if before is None else {"before": before.isoformat()}
        try:
            deleted[name] = _delete(client, "POST", f"{study_path(name)}/expire", body)
        except TransferError as error:
            failed[name] = error
            is_refused = is_refused or isinstance(error, RefusalError)
            if isinstance(error, PassingError) and error.status is None:
                break
    # 3. Print the deletions that succeeded, even if others failed.
    done = {"done": not failed, "reports": reports, "deleted": deleted}
    show(
        (visible(f"{counted(number, 'report')} of {name} deleted") for name, number in deleted.items()), done
    )
    if failed:
        why = "; ".join(f"{name}: {error}" for name, error in failed.items())
        kind = RefusedError if is_refused else TransferError
        raise kind(f"not all was deleted at {client.url}: {why}", code="admin.not_all_deleted")


def _reports_before(client: Client, study: str, before: date) -> int:
    from ldpkit.cli.client import study_path

    status = client.ask("GET", f"{study_path(study)}/status", _checked_status)
    return sum(one["reports"] for one in status["by_day"] if str(one["day"]) < before.isoformat())


def _overdue(retention: Iterable[Mapping[str, Any]], study: str | None) -> dict[str, int]:
    """Return the number of overdue reports by study. Raises InputError if `study` states no retention."""
    overdue: dict[str, int] = {}
    for one in retention:
        if study in (None, one["study"]):
            overdue[str(one["study"])] = overdue.get(one["study"], 0) + int(one["overdue"])
    if study is not None and not overdue:
        raise InputError(
            f"{study[:64]!r} is no study there that states how long its reports are kept: name --before",
            code="admin.no_stated_retention",
        )
    return overdue


@command("upkeep", "upkeep")
@click.option("--date", "day", type=DAY, help="today's date (UTC), if the server's clock is in doubt")
@collector_option
@json_option
def upkeep(day: date | None, collector: str) -> None:
    """Run the daily upkeep now: it deletes used tickets and the order of reports."""
    from ldpkit.cli.client import client_of

    body = {} if day is None else {"date": day.isoformat()}
    client = client_of(collector, "upkeep")
    client.ask("POST", "/v1/upkeep", lambda found: found["done"], body, again=False, seconds=UPKEEP_SECONDS)
    show([], {"done": True})
