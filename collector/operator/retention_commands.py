"""The commands `ldpkit retention list` and `run`, at a collector."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from collector.operator.at_a_collector import (
    add_certainty,
    add_json,
    add_remote,
    collector_of,
    require_yes,
    show,
)
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError, TransferError
from ldp_client.words.text import counted, visible

if TYPE_CHECKING:
    from collector.remote.operating import RemoteCollector


def add_retention(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "keep to what studies state of how long their reports are kept"
    actions = add_command(subparsers, "retention", text).add_subparsers(required=True, metavar="ACTION")
    text = "list how long each version's reports are kept, of those that state it, and how many are overdue"
    add_json(add_remote(actions, "list", text, "retention list", run_list_retention))
    text = "delete the reports that are overdue, as the server itself does each day"
    run = add_remote(actions, "run", text, "retention run habits --yes", run_run_retention)
    run.add_argument("study", nargs="?", metavar="STUDY_ID", help="of this study only (default: of each)")
    add_certainty(run)
    add_json(run)


def run_list_retention(arguments: argparse.Namespace) -> int:
    """ldpkit retention list [--json]"""
    from collector.operator.overview import kept_in_one_line

    found = collector_of(arguments, "a list of what studies state").retention()
    show(found, arguments.json, lambda lines: (f"{one['study']}\t{kept_in_one_line(one)}" for one in lines))
    if not found:
        print("no study there says how long its reports are kept", file=sys.stderr)
    return 0


def run_run_retention(arguments: argparse.Namespace) -> int:
    """ldpkit retention run [STUDY_ID] (--yes | --dry-run) [--json]"""
    collector = collector_of(arguments, "deleting reports")
    overdue = _overdue(collector.retention(), arguments.study)
    # Another collector's words may move the terminal's cursor.
    what = visible(", ".join(f"{counted(number, 'report')} of {study}" for study, number in overdue.items()))
    if not overdue or arguments.dry_run:
        said = (
            f"would delete {what} at {collector.url}" if overdue else f"nothing is overdue at {collector.url}"
        )
        show({"done": False, "overdue": overdue, "deleted": {}}, arguments.json, lambda _: [said])
        return 0
    require_yes(arguments, f"deleting {what} at {collector.url}, with their part of the summaries,")
    deleted: dict[str, int] = {}
    try:
        failed = _delete_each(collector, overdue, deleted, quiet=arguments.json)
    finally:
        # What was deleted is said, whatever became of the rest.
        done = len(deleted) == len(overdue)
        show({"done": done, "overdue": overdue, "deleted": deleted}, arguments.json, lambda _: ())
    if failed:
        why = "; ".join(f"{study}: {error}" for study, error in failed.items())
        raise TransferError(f"not all that is overdue was deleted: {why}", code="admin.overdue_not_deleted")
    return 0


def _delete_each(
    collector: RemoteCollector, studies: Iterable[str], deleted: dict[str, int], quiet: bool
) -> dict[str, TransferError]:
    """Delete what is overdue of each study; what the collector said of those where it could not.

    deleted: gets how many reports of which study. Raises TransferError where no answer comes any more.
    """
    from collector.remote.client import PassingError, RefusalError

    failed: dict[str, TransferError] = {}
    for study in studies:
        try:
            deleted[study] = collector.delete_overdue(study)
        except (PassingError, RefusalError) as error:
            if error.status is None:
                raise
            failed[study] = error
        else:
            if not quiet:
                print(visible(f"{counted(deleted[study], 'report')} of {study} deleted"))
    return failed


def _overdue(found: Iterable[Mapping[str, Any]], study: str | None) -> dict[str, int]:
    """How many reports are overdue, by study. Raises InputError for a study that states nothing."""
    named = [one for one in found if study in (None, one["study"])]
    if study is not None and not named:
        raise InputError(
            f"{study[:64]!r} is no study there that says how long its reports are kept",
            code="admin.no_stated_retention",
        )
    overdue: dict[str, int] = {}
    for one in named:
        if one["overdue"]:
            overdue[one["study"]] = overdue.get(one["study"], 0) + one["overdue"]
    return overdue
