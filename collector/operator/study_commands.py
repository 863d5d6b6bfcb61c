"""The commands `ldpkit publish`, `status`, `close` and `open`, which talk to a collector."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from collector.operator.access_commands import LINES, add_log_arguments, day_of
from collector.operator.at_a_collector import (
    OVER,
    STATES,
    add_json,
    add_remote,
    add_study_change,
    collector_of,
    require_yes,
    show,
    token_of,
)
from collector.settings import TOKEN_VARIABLE
from ldp_client.documents.errors import InputError, StudyError, UsageError
from ldp_client.files.disk import read_bytes
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.remote.operating import RemoteCollector
    from schemas import Study

FORBIDDEN, UNKNOWN = 403, 404


def add_study_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "publish a study, or a new version of one, at a collector"
    publish = add_remote(subparsers, "publish", text, "publish study.json --collector https://…", run_publish)
    publish.add_argument("study", metavar="STUDY.json", help="signed or not")
    publish.add_argument("--dry-run", action="store_true", help="only print what would be done")
    add_json(publish)
    text = "list a collector's studies, or print one's status: reports by day, refusals and reasons"
    status = add_remote(subparsers, "status", text, "status habits", run_status)
    shown = status.add_mutually_exclusive_group()
    shown.add_argument("study", nargs="?", metavar="STUDY_ID", help="this study (default: a line for each)")
    shown.add_argument("--state", choices=STATES, help="a line for each study in this state")
    shown.add_argument("--log", action="store_true", help="what operators did, with which key, and when")
    add_log_arguments(status, "with --log: ")
    add_json(status)
    add_study_change(subparsers, "close", "close a study, so that it takes no reports", run_close)
    add_study_change(subparsers, "open", "reopen a study that was closed", run_open)


def run_publish(arguments: argparse.Namespace) -> int:
    """ldpkit publish STUDY.json [--collector URL] [--dry-run] [--json]"""
    from collector.remote.operating import RemoteCollector
    from schemas.channel_warnings import issuer_warnings
    from schemas.paper_sheet import refuse_taken
    from schemas.study_warnings import taken_in_words, unstated_in_words, warnings_of

    document = read_bytes(arguments.study)
    study = _study_in(document, arguments.study)
    # Check first whether the study could be analysed.
    refuse_taken(study)
    token = arguments.token or os.environ.get(TOKEN_VARIABLE) or ""
    if not token and not _is_signed(document):
        token_of(arguments, "publishing a study that is not signed")
    collector = RemoteCollector(arguments.collector, token)
    warned = [*warnings_of(study), *taken_in_words(study), *issuer_warnings(study, arguments.collector)]
    for line in [*warned, *unstated_in_words(study)]:
        print(line, file=sys.stderr)
    before, is_closed = collector.served(study.id)
    is_new = before != study.canonical()
    if is_new:
        _require_keys(study, arguments.study)
    said, links = [], []
    if arguments.dry_run:
        said = [_what_would_happen(study, before, _state_of(collector, study.id))]
        if is_new:
            _refuse_keys_there(collector, study, before or b"", arguments.study)
    if not arguments.dry_run:
        collector.publish(document, study)
        again = "is published" if is_new else "was published before"
        said = [f"{study.id}, version {study.version}, {again}; digest {study.digest}"]
        links = _links(study, collector)
    if is_closed:
        links.append(_closed_in_words(study, collector))
    places = {"people": _page_of(study, collector), "devices": collector.address_of(study.id)}
    named = {"study": study.id, "version": study.version, "digest": study.digest}
    done = {"done": not arguments.dry_run, "new": is_new, "closed": is_closed}
    show({**named, **done, **places}, arguments.json, lambda _: said, links)
    return 0


def _require_keys(study: Study, path: str) -> None:
    """Raise InputError if reports of some people of a new study could never arrive."""
    from schemas.channel_warnings import require_keys

    try:
        require_keys(study)
    except StudyError as error:
        raise InputError(f"{path}: {error}", code="publish.ticket_keys_missing") from None


def _refuse_keys_there(collector: RemoteCollector, study: Study, before: bytes, path: str) -> None:
    """Raise InputError if another study's current version has the same token key.

    Only studies that the operator's key may read are checked; publishing checks all versions of all studies.

    before: the current version of this study.
    """
    from collector.remote.client import RefusalError
    from collector.studies.ticket_keys import has_key_of, keys_in, keys_of

    new = keys_of(study) - keys_in(before)
    try:
        listed = collector.studies() if new and collector.has_key else []
    except RefusalError as error:
        if error.status != FORBIDDEN:
            raise
        return
    for other in [one["id"] for one in listed if one["id"] != study.id]:
        if new & keys_in(collector.published(other) or b""):
            raise InputError(f"{path}: {has_key_of(other, study)}", code="publish.ticket_key_of_other_study")


def _state_of(collector: RemoteCollector, study_id: str) -> str:
    """Return a study's state, or "" if the key may not read it or the study is unknown.

    Raises RefusalError for a key that is wrong, removed or expired, because publishing would fail with it
    too. The key's role is checked when it publishes.
    """
    from collector.remote.client import RefusalError

    try:
        return str(collector.status(study_id)["state"]) if collector.has_key else ""
    except RefusalError as error:
        if error.status not in (FORBIDDEN, UNKNOWN):
            raise
        return ""


def _closed_in_words(study: Study, collector: RemoteCollector) -> str:
    """Return a warning that a published study is closed, with the command that helps."""
    what = "status" if study.protocol is not None else "open"
    return (
        f"{study.id} takes no reports, it is closed: `ldpkit {what} {study.id} --collector {collector.url}`"
    )


def _page_of(study: Study, collector: RemoteCollector) -> str | None:
    """Return the page where people answer, or None if the study has no page."""
    return None if study.protocol is not None or study.respondent == "holder" else collector.page_of(study.id)


def _links(study: Study, collector: RemoteCollector) -> list[str]:
    """Return the next addresses and commands for a published study. A node of a secure sum has no pages."""
    devices = f"devices fetch     {collector.address_of(study.id)}"
    page = _page_of(study, collector)
    people = [f"people answer at  {page}"] if page else []
    return [*people, devices, f"how it goes       ldpkit status {study.id} --collector {collector.url}"]


def _study_in(document: bytes, path: str) -> Study:
    """Read the study in a file, signed or not. Raises InputError."""
    from schemas import Study
    from schemas.study import SignedStudy

    try:
        return SignedStudy.from_json(document).study if _is_signed(document) else Study.from_json(document)
    except StudyError as error:
        raise InputError(f"{path}: {error}", code="publish.study_invalid") from None


def _is_signed(document: bytes) -> bool:
    from collector.studies.publishing import is_signed

    try:
        return is_signed(json.loads(document))
    except (ValueError, RecursionError):
        return False


def _what_would_happen(study: Study, before: bytes | None, state: str) -> str:
    from schemas import Study

    if before is None:
        return f"would publish {study.id}, version {study.version}, which is new there"
    if before == study.canonical():
        return f"{study.id}, version {study.version}, is published already: nothing would change"
    current = Study.from_json(before).version
    if current >= study.version:
        raise InputError(
            f"version {current} of {study.id} is published, and this is version {study.version}: raise it",
            code="publish.version_not_raised",
        )
    if state in OVER:
        advice = "; open it first, if it can be opened" if state == "closed" else ""
        raise InputError(
            f"study {study.id} was {state}: it takes no new version{advice}", code="publish.study_ended"
        )
    return f"would publish version {study.version} of {study.id} in the place of version {current}"


def run_status(arguments: argparse.Namespace) -> int:
    """ldpkit status [STUDY_ID | --state STATE | --log [--since YYYY-MM-DD] [--limit N]] [--json]"""
    from collector.operator import overview

    if not arguments.log and (arguments.since or arguments.limit):
        raise UsageError("--since and --limit go with --log", code="admin.limit_without_log")
    if arguments.log:
        since = None if arguments.since is None else day_of("--since", arguments.since).isoformat()
        log = collector_of(arguments, "the audit log").audit_log(arguments.limit or LINES, since)
        show(log, arguments.json, lambda entries: map(overview.entry_in_one_line, entries))
        return 0
    if arguments.study is not None:
        status = collector_of(arguments, "a study's status").status(arguments.study)
        show(status, arguments.json, overview.in_lines)
        return 0
    studies = collector_of(arguments, "a list of studies").studies()
    chosen = [study for study in studies if arguments.state in (None, study["state"])]
    show(chosen, arguments.json, lambda some: map(overview.in_one_line, some))
    if not chosen:
        state = f" in the state {arguments.state!r}" if studies else ""
        print(f"{arguments.collector} has no study{state}", file=sys.stderr)
    return 0


def run_close(arguments: argparse.Namespace) -> int:
    """ldpkit close STUDY_ID (--yes | --dry-run) [--json]"""
    collector = collector_of(arguments, "closing a study")
    status = _status_of(collector, arguments.study)
    what = f"closing {arguments.study} at {collector.url}{_in_words(status)}"
    if under_way := _under_way(collector, arguments.study, status):
        print(under_way, file=sys.stderr)
    if arguments.dry_run:
        is_over = status is not None and status["state"] in OVER
        then = "it would take no reports; `ldpkit open` reverses that"
        said = f"{what}: {'it takes none already, and nothing would change' if is_over else then}"
        return _show_change(arguments, status, None, said)
    require_yes(arguments, what)
    version = collector.close(arguments.study)
    return _show_change(arguments, status, version, f"{arguments.study}, version {version}, is closed")


def _under_way(collector: RemoteCollector, study_id: str, status: dict[str, Any] | None) -> str:
    """Return a warning about reports that closing would lose, if a version sends in windows; else "".

    status: None if the key may not read it. Then only the current version is checked.
    """
    from schemas import Study

    versions = [None] if status is None else [one["version"] for one in status["versions"]]
    texts = [collector.published(study_id, version) for version in versions]
    channels = [Study.from_json(text).channel for text in texts if text is not None]
    hours = max((channel.hours for channel in channels if channel is not None), default=0)
    if not hours:
        return ""
    return (
        f"reports to {study_id} leave up to {2 * hours} hours after they were made, uncounted until "
        "then: those under way are refused once it is closed, and lost where it stays so; publish a version "
        "with `closes` instead, or close it that much later"
    )


def run_open(arguments: argparse.Namespace) -> int:
    """ldpkit open STUDY_ID (--yes | --dry-run) [--json]"""
    collector = collector_of(arguments, "opening a study")
    status = _status_of(collector, arguments.study)
    what = f"opening {arguments.study} at {collector.url}{_in_words(status)}"
    if arguments.dry_run:
        return _show_change(arguments, status, None, f"{what}: {_what_opening_does(status)}")
    require_yes(arguments, what)
    version = collector.reopen(arguments.study)
    said = f"{arguments.study}, version {version}, takes reports between its `opens` and `closes`"
    return _show_change(arguments, status, version, said)


def _what_opening_does(status: dict[str, Any] | None) -> str:
    """Return what opening would do, in words. Raises InputError for a study that stays closed."""
    if status is not None and status["state"] in OVER[1:]:
        raise InputError(
            f"study {status['id']} was {status['state']}: it stays closed", code="publish.stays_closed"
        )
    if status is not None and status["state"] not in OVER:
        return "it was not closed, and nothing would change"
    return "it would take reports again, unless it is a secure sum"


def _show_change(
    arguments: argparse.Namespace, before: dict[str, Any] | None, version: int | None, said: str
) -> int:
    """Print the result of a change. before: the status before it. version: None if nothing was done."""
    found = {"study": arguments.study, "version": version, "done": version is not None}
    was = before and {"state": before["state"], "reports": before["reports"]}
    show({**found, "before": was}, arguments.json, lambda _: [said])
    return 0


def _status_of(collector: RemoteCollector, study_id: str) -> dict[str, Any] | None:
    """Return a study's status, or None if the key may not read it. Raises RefusalError."""
    from collector.remote.client import RefusalError

    try:
        return collector.status(study_id)
    except RefusalError as error:
        if error.status != FORBIDDEN:
            raise
        return None


def _in_words(status: dict[str, Any] | None) -> str:
    return f", {status['state']} with {counted(status['reports'], 'report')}" if status else ""
