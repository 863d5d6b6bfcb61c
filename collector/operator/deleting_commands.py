"""The commands `ldpkit upkeep`, `expire` and `delete`: they delete reports at a collector permanently."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from collector.operator.access_commands import day_of
from collector.operator.at_a_collector import (
    add_certainty,
    add_json,
    add_remote,
    add_study_change,
    collector_of,
    require_yes,
    show,
)
from ldp_client.documents.errors import InputError, TransferError, UsageError
from ldp_client.words.text import counted, visible

if TYPE_CHECKING:
    from collector.remote.operating import RemoteCollector

ENDS_SUM = (
    "once shares are deleted at this node, its total can no longer be made, unless `ldpkit node "
    "close` has made it"
)


def add_deleting_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "delete the reports that were kept for as long as their study states, or that came before a day"
    expire = add_remote(subparsers, "expire", text, "expire habits --before 2026-06-01 --yes", run_expire)
    text = "of this study only (default: of each that states how long)"
    expire.add_argument("study", nargs="?", metavar="STUDY_ID", help=text)
    text = "those from before this day (UTC), whatever the study states"
    expire.add_argument("--before", metavar="YYYY-MM-DD", help=text)
    add_certainty(expire)
    add_json(expire)
    add_study_change(subparsers, "delete", "close a study permanently and delete its reports", run_delete)
    text = "delete used tickets and the order of reports now, as a server does once a day"
    upkeep = add_remote(subparsers, "upkeep", text, "upkeep --recount", run_upkeep)
    text = "this day (UTC), if a clock was wrong: reports from future days are dated today"
    action = upkeep.add_mutually_exclusive_group()
    action.add_argument("--date", metavar="YYYY-MM-DD", help=text)
    text = "instead, count every stored report again, for the running summaries"
    action.add_argument("--recount", action="store_true", help=text)
    add_json(upkeep)


def run_upkeep(arguments: argparse.Namespace) -> int:
    """ldpkit upkeep [--date YYYY-MM-DD | --recount] [--json]"""
    day = None if arguments.date is None else day_of("--date", arguments.date).isoformat()
    wrong = collector_of(arguments, "upkeep").keep_up(day, arguments.recount)
    lines = [
        f"{one['study']}\tversion {one['version']}\tthe summary was wrong, and is right now" for one in wrong
    ]
    if arguments.recount and not wrong:
        lines = ["every summary was right"]
    show({"done": True, "wrong": wrong}, arguments.json, lambda _: lines)
    return 0


def run_expire(arguments: argparse.Namespace) -> int:
    """ldpkit expire [STUDY_ID] [--before YYYY-MM-DD] (--yes | --dry-run) [--json]"""
    before = _day_before(arguments)
    collector = collector_of(arguments, "deleting reports")
    if before is None:
        reports = _overdue(collector.retention(), arguments.study)
    else:
        days = collector.status(arguments.study)["by_day"]
        reports = {arguments.study: sum(day["reports"] for day in days if day["day"] < before)}
    # Words from another collector may contain control sequences of the terminal.
    what = visible(", ".join(f"{counted(number, 'report')} of {study}" for study, number in reports.items()))
    for study in [one["id"] for one in collector.studies() if one["summed"] and one["id"] in reports]:
        print(visible(f"{study} is a secure sum: {ENDS_SUM}"), file=sys.stderr)
    if not reports or arguments.dry_run:
        said = f"would delete {what}" if reports else "nothing is overdue"
        found = {"done": False, "reports": reports, "deleted": {}}
        show(found, arguments.json, lambda _: [f"{said} at {collector.url}"])
        return 0
    require_yes(arguments, f"deleting {what} at {collector.url}, with their part of the summaries,")
    if before is None:
        return _delete_each(collector, reports, arguments.json)
    deleted = {arguments.study: collector.expire(arguments.study, before)}
    lines = [f"{counted(number, 'report')} of {study} deleted" for study, number in deleted.items()]
    show({"done": True, "reports": reports, "deleted": deleted}, arguments.json, lambda _: lines)
    return 0


def _day_before(arguments: argparse.Namespace) -> str | None:
    """Return the day of --before. Raises UsageError for a future day, and without a study."""
    from collector.clock import utc_today

    if arguments.before is None:
        return None
    before = day_of("--before", arguments.before)
    if arguments.study is None:
        raise UsageError("--before needs a STUDY_ID", code="admin.expire_without_study")
    if before > utc_today():
        raise UsageError(
            f"--before {before} is still to come: today's reports would go too; see ldpkit delete",
            code="admin.expire_in_future",
        )
    return before.isoformat()


def _delete_each(collector: RemoteCollector, reports: Mapping[str, int], as_json: bool) -> int:
    """Delete the overdue reports of each study. Raises TransferError at the end if a deletion failed."""
    from collector.remote.client import PassingError, RefusalError

    deleted: dict[str, int] = {}
    failed: dict[str, TransferError] = {}
    try:
        for study in reports:
            try:
                deleted[study] = collector.expire(study)
            except (PassingError, RefusalError) as error:
                if error.status is None:
                    raise
                failed[study] = error
            else:
                if not as_json:
                    print(visible(f"{counted(deleted[study], 'report')} of {study} deleted"))
    finally:
        # Report the deletions that succeeded, even if others failed.
        done = len(deleted) == len(reports)
        show({"done": done, "reports": reports, "deleted": deleted}, as_json, lambda _: ())
    if failed:
        why = "; ".join(f"{study}: {error}" for study, error in failed.items())
        raise TransferError(f"not all was deleted at {collector.url}: {why}", code="admin.not_all_deleted")
    return 0


def _overdue(found: Iterable[Mapping[str, Any]], study: str | None) -> dict[str, int]:
    """Return the number of overdue reports by study. Raises InputError if `study` states no retention."""
    named = [one for one in found if study in (None, one["study"])]
    if study is not None and not named:
        raise InputError(
            f"{study[:64]!r} is no study there that states how long its reports are kept: name --before",
            code="admin.no_stated_retention",
        )
    overdue: dict[str, int] = {}
    for one in named:
        if one["overdue"]:
            overdue[one["study"]] = overdue.get(one["study"], 0) + one["overdue"]
    return overdue


def run_delete(arguments: argparse.Namespace) -> int:
    """ldpkit delete STUDY_ID (--yes | --dry-run) [--json]"""
    collector = collector_of(arguments, "deleting a study")
    status = collector.status(arguments.study)
    reports = status["reports"]
    what = f"{counted(reports, 'report')} of {arguments.study} at {collector.url}"
    named = {"study": arguments.study, "reports": reports}
    if status["summed"]:
        print(f"{arguments.study} is a secure sum: {ENDS_SUM}", file=sys.stderr)
    if arguments.dry_run:
        said = f"would delete {what}, and close it permanently"
        show({**named, "done": False, "deleted": 0}, arguments.json, lambda _: [said])
        return 0
    require_yes(arguments, f"deleting {what}, and closing it permanently")
    deleted = collector.delete(arguments.study)
    said = f"{counted(deleted, 'report')} of {arguments.study} deleted, and the study closed permanently"
    show({**named, "done": True, "deleted": deleted}, arguments.json, lambda _: [said])
    return 0
