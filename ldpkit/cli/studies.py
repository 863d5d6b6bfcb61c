"""The commands for a study at a collector, and for the keys of the people who publish, read and operate."""

import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import click

from ldp_client.documents.errors import EXIT_OTHER, InputError, StudyError, TransferError
from ldp_client.documents.signed import FORMAT
from ldp_client.words.text import counted, visible
from ldpkit.cli.client import Client, study_path
from ldpkit.cli.commands import (
    DAY,
    collector_option,
    command,
    id_argument,
    json_option,
    require_yes,
    yes_option,
)
from ldpkit.cli.output import show, warn
from schemas.disk import read_bytes
from schemas.study import SignedStudy, read_study
from schemas.warnings import require_keys, unstated_in_words, warnings_of

# Each request deletes a hundred thousand reports.
MOST_REQUESTS = 10_000
# Certificates of 90 days are renewed when 30 are left: with fewer, renewal has failed.
CERTIFICATE_DAYS = 14
SECONDS = 10.0


@command("publish", "publish study.json --collector https://ask.example.org")
@click.argument("study", metavar="STUDY.json")
@collector_option
def publish(study: str, collector: Client) -> None:
    """Publish a study, signed or not, or a new version of one, at a collector."""
    # 1. Read the study, and check whether it could be answered and analysed.
    document = read_bytes(study)
    try:
        is_signed = FORMAT.encode() in document
        published = SignedStudy.from_json(document).study if is_signed else read_study(document)
        require_keys(published)
    except StudyError as error:
        raise InputError(f"{study}: {error}", code="publish.study_invalid") from None
    for line in [*warnings_of(published), *unstated_in_words(published)]:
        warn(line)
    # 2. Publish it, and compare what the collector says that it published.
    names = {"id": published.id, "version": published.version, "digest": published.digest}
    body = document if is_signed else published.canonical()
    answer = collector.send("POST", "/v1/studies", body)
    if not names.items() <= answer.document.items():
        raise TransferError(
            f"{collector.url} did not confirm {published.id}: is that a collector?",
            code="server.answer_not_json",
        )
    # 3. Print the addresses.
    again = "is published" if answer.status == 201 else "was published before"
    lines = [f"{published.id}, version {published.version}, {again}; digest {published.digest}"]
    if published.protocol is None and published.respondent != "holder":
        lines.append(f"people answer at  {collector.url}/s/{published.id}")
    lines.append(f"devices fetch     {collector.url}{study_path(published.id)}")
    lines.append(f"how it goes       ldpkit status {published.id} --collector {collector.url}")
    show(lines)


@command("status", "status habits")
@click.argument("study", metavar="[STUDY_ID]", required=False)
@click.option("--log", is_flag=True, help="instead, the last actions of operators, each with its key and day")
@click.option(
    "--health", is_flag=True, help="instead, what needs an operator's action; exit code 1 if anything does"
)
@collector_option
@json_option
def status(study: str | None, log: bool, health: bool, collector: Client) -> int:
    """List a collector's studies, or print one's status: reports by day, refusals and warnings."""
    if (study is not None) + log + health > 1:
        raise click.UsageError("STUDY_ID, --log and --health exclude each other")
    if health:
        names = ("name", "ok", "detail")
        checks = collector.ask(
            "GET",
            "/v1/health",
            lambda body: [{name: each[name] for name in names} for each in body["checks"]],
        )
        checks.append(_certificate(collector.url))
        # `ACT` marks what needs action. Another collector's words may have control sequences.
        lines = [
            "\t".join(
                ("ok" if each["ok"] else "ACT", visible(str(each["name"])), visible(str(each["detail"])))
            )
            for each in checks
        ]
        show(lines, checks)
        return 0 if all(check["ok"] for check in checks) else EXIT_OTHER
    if study is not None:
        show_answer(collector, f"{study_path(study)}/status", lambda body: body, _status_lines)
    elif log:
        show_answer(collector, "/v1/audit-log", lambda body: body["entries"], _entry_lines)
    else:
        show_answer(collector, "/v1/studies", lambda body: body["studies"], _study_lines)
    return 0


def _certificate(url: str) -> dict[str, Any]:
    """Return the check of the collector's certificate, as clients see it."""
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        detail = "not looked at: --collector is an http address"
        return {"name": "certificate", "ok": True, "detail": detail}
    try:
        with socket.create_connection((parts.hostname, parts.port or 443), SECONDS) as plain:
            context = ssl.create_default_context()
            with context.wrap_socket(plain, server_hostname=parts.hostname) as encrypted:
                ends = ssl.cert_time_to_seconds(str((encrypted.getpeercert() or {})["notAfter"]))
    except OSError as error:
        raise TransferError(
            f"cannot read the certificate of {url}: {error}", code="server.no_certificate"
        ) from None
    days = int((ends - time.time()) // 86_400)
    is_fine = days >= CERTIFICATE_DAYS
    advice = "" if is_fine else ": renew it"
    return {"name": "certificate", "ok": is_fine, "detail": f"{counted(days, 'day')} left{advice}"}


def show_answer(
    collector: Client, path: str, part: Callable[[Any], Any], lines: Callable[[Any], list[str]]
) -> None:
    """Print what a server answers. part: of its document. lines: returns the part's lines, with tabs."""
    document, texts = collector.ask("GET", path, lambda body: (part(body), lines(part(body))))
    # Another collector's words may have control sequences.
    show(("\t".join(map(visible, line.split("\t"))) for line in texts), document)


def _study_lines(studies: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for study in studies:
        is_open = study["state"] in ("open", "not open yet")
        state = f"{study['opens'] or '…'} to {study['closes'] or '…'}" if is_open else study["state"]
        reports = counted(study["reports"], "report")
        lines.append(f"{study['id']}\tversion {study['version']}\t{state}\t{reports}")
    return lines


def _entry_lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    names = ("at", "key", "action", "study", "detail")
    return ["\t".join([entry[name] or "" for name in names]) for entry in entries]


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


@command("close", "close habits --yes")
@id_argument
@yes_option
@collector_option
def close(study: str, yes: bool, collector: Client) -> None:
    """Close a study, so that it takes no reports until `ldpkit open` reopens it."""

    def hours_of_batches(document: Any) -> int:
        return int(document.get("channel", {}).get("batches", {}).get("hours", 0))

    hours = collector.ask("GET", study_path(study), hours_of_batches)
    if hours:
        warn(
            f"reports to {study} leave up to {2 * hours} hours after they were made. Reports under way are "
            "refused once it is closed. Close it that much later, or publish a version with `closes`"
        )
    require_yes(yes, f"closing {study} at {collector.url}")
    _change(collector, study, "close", "is closed")


@command("open", "open habits")
@id_argument
@collector_option
def open_(study: str, collector: Client) -> None:
    """Reopen a study that was closed."""
    _change(collector, study, "open", "takes reports if its days are not over")


def _change(collector: Client, study: str, action: str, done: str) -> None:
    version = collector.ask("POST", f"{study_path(study)}/{action}", lambda body: int(body["version"]), {})
    show([f"{study}, version {version}, {done}"])


@command("delete", "delete habits --before 2026-06-01 --yes")
@id_argument
@click.option("--before", type=DAY, help="only reports from before this day (UTC): the study stays as it is")
@yes_option
@collector_option
def delete(study: str, before: datetime | None, yes: bool, collector: Client) -> None:
    """Close a study permanently and delete its reports."""
    path, day = study_path(study), None if before is None else before.date().isoformat()

    def count(status: Any) -> tuple[int, bool]:
        """Return how many reports to delete, and whether the study is a secure sum."""
        by_day = [int(each["reports"]) for each in status["by_day"] if day and str(each["day"]) < day]
        return sum(by_day) if day else int(status["reports"]), status["summed"]

    reports, is_summed = collector.ask("GET", f"{path}/status", count)
    if is_summed:
        warn(
            f"{study} is a secure sum: once shares are deleted at this node, its total can no longer be "
            "made, unless `ldpkit node close` has made it"
        )
    reports_of = f"{counted(reports, 'report')} of {study}"
    if day is None:
        require_yes(yes, f"deleting {reports_of} at {collector.url}, and closing it permanently")
        deleted, more = _delete(collector, "DELETE", path, None), ", and the study closed permanently"
    else:
        require_yes(yes, f"deleting {reports_of} from before {day} at {collector.url}")
        deleted, more = _delete(collector, "POST", f"{path}/expire", {"before": day}), ""
    show([f"{counted(deleted, 'report')} of {study} deleted{more}"])


def _delete(collector: Client, method: str, path: str, body: Any) -> int:
    """Delete reports, in as many requests as it takes; return how many. Raises TransferError."""

    def read(answer: Any) -> tuple[int, bool]:
        """Return how many reports a request deleted, and whether all are deleted."""
        deleted, is_complete = int(answer["deleted"]), answer["complete"] is True
        if deleted < 1 and not is_complete:
            raise ValueError
        return deleted, is_complete

    total = 0
    for _ in range(MOST_REQUESTS):
        try:
            deleted, is_complete = collector.ask(method, path, read, body)
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
    raise TransferError(f"{collector.url} goes on deleting without end", code="server.deletes_without_end")


@command("keys", "keys ann --role read --study habits")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "--role",
    type=click.Choice(["publish", "read", "operate"]),
    help="make a key that may publish, read, or do both",
)
@click.option("--study", multiple=True, metavar="STUDY_ID", help="the new key's only studies; repeatable")
@click.option("--expires", type=DAY, help="the new key's last day, in UTC")
@click.option("--revoke", is_flag=True, help="make the key NAME useless")
@yes_option
@collector_option
def keys(
    name: str | None,
    role: str | None,
    study: tuple[str, ...],
    expires: datetime | None,
    revoke: bool,
    yes: bool,
    collector: Client,
) -> None:
    """List a collector's keys, or make or revoke one. Needs the operator's token.

    A new key is shown once.
    """
    # 1. Check the options.
    if (name is None) == (role is not None or revoke) or (role is not None and revoke):
        raise click.UsageError("give NAME with --role, NAME with --revoke, or neither for a list")
    if role is None and (study or expires):
        raise click.UsageError("--study and --expires go with --role")
    last_day = expires and expires.date().isoformat()
    if last_day and last_day < datetime.now(UTC).date().isoformat():
        raise click.UsageError(f"--expires {last_day}: is over")
    # 2. List, revoke or make.
    if name is None:
        show_answer(collector, "/v1/keys", lambda body: body["keys"], _key_lines)
    elif revoke:
        require_yes(yes, f"revoking the key {name} at {collector.url}")
        collector.send("DELETE", f"/v1/keys/{quote(name, safe='')}", again=False)
        show([f"{name} is revoked"])
    else:
        asked = {"name": name, "role": role, "studies": list(study), "expires": last_day}
        document = {member: value for member, value in asked.items() if value}
        key, warnings = collector.ask("POST", "/v1/keys", _made, document, again=False)
        for line in warnings:
            warn(visible(line))
        show([key])


def _made(body: Any) -> tuple[str, list[str]]:
    """Return a new key and warnings. Raises ValueError for a key as collectors do not make it."""
    key = body["key"]
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError
    return key, [str(line) for line in body["warnings"]]


def _key_lines(keys: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for key in keys:
        studies = "all studies" if key["studies"] is None else ", ".join(key["studies"])
        until = "no last day" if key["expires"] is None else f"until {key['expires']}"
        used = "never used" if key["used"] is None else f"used on {key['used']}"
        lines.append("\t".join([key["name"], key["role"], studies, until, used]))
    return lines
