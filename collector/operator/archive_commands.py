"""`ldpkit admin archive` and `delete-study`: reports that leave the database, for an archive or for good."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager
from datetime import date
from typing import TYPE_CHECKING

from collector.operator.at_a_collector import add_certainty, require_yes
from collector.operator.dataset_commands import add_parallel, order_of
from collector.settings import settings_with
from ldp_client.commands.output import Step, add_output, progress_of, show
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.exports.dataset import Order
    from collector.operator.archiving import Archived, Standing
    from collector.storage.database import Database

# What it is that somebody is to be sure of.
FOR_GOOD = (
    "it stays closed for good, its reports leave the database, and a device that withdraws gets its receipt "
    "only once this command was run again"
)
RESTORED = (
    "what the database counts and the archive lacks is forgotten, as withdrawn since the backup; a copy of a "
    "database that goes on must not do so, as it would change the other's archive"
)


def opened_database(arguments: argparse.Namespace) -> AbstractContextManager[Database]:
    """The database that a command names."""
    from collector.storage.migrating import opened

    settings = settings_with(database=arguments.database)
    return opened(settings.database, settings.busy_timeout)


def add_archive_arguments(parser: argparse.ArgumentParser) -> None:
    """Register archive's arguments."""
    parser.add_argument("study", metavar="STUDY_ID")
    text = (
        "a folder, or an address such as s3://bucket/studies: as `ldpkit export --format parquet` writes to"
    )
    parser.add_argument("--to", required=True, metavar="ADDRESS", help=text)
    text = "the archive is known by another address, from which it, or its place, was moved to this one"
    parser.add_argument("--moved", action="store_true", help=text)
    text = (
        "this database was restored from a backup, in the place of the one that went on with the archive, "
        "which is right: count what is there (never in a copy beside it)"
    )
    parser.add_argument("--restored", action="store_true", help=text)
    add_parallel(parser)
    add_certainty(parser)
    add_output(parser)


def run_archive(arguments: argparse.Namespace) -> int:
    """ldpkit admin archive ID --to ADDRESS (--yes | --dry-run) [--moved] [--restored] [--buckets N] …"""
    from collector.operator.archive_restored import require_archived
    from collector.operator.archiving import archive, settled, standing_of

    order = settled(order_of(arguments, arguments.to))
    with opened_database(arguments) as database:
        standing = standing_of(database, order.study, order.address, arguments.moved)
        if arguments.restored:
            require_archived(database, order.study, standing.address)
        what = f"{_in_words(standing, order, database)}: {RESTORED if arguments.restored else FOR_GOOD}"
        if arguments.dry_run:
            said = {**_document(order, None), "stored": standing.stored, "archived": standing.archived}
            show(arguments, [what], said)
            return 0
        if standing.address is None or arguments.restored:
            require_yes(arguments, f"{what}; this")
        progress = progress_of(arguments)

        def tell(verb: str, done: int, total: int) -> None:
            progress(Step(f"{counted(done, 'report')} {verb}", done, max(total, 1)))

        done = archive(database, order, tell, arguments.moved, arguments.restored)
    show(arguments, _lines(order, standing, done), _document(order, done))
    return 0


def _in_words(standing: Standing, order: Order, database: Database) -> str:
    if standing.address is None:
        stored = counted(standing.stored, "report")
        return f"archiving {order.study} ({stored} in {database.shown}) in {order.address}"
    rest = counted(standing.stored, "report")
    where = order.address
    if standing.address != order.address:
        where += f", where it was moved from {standing.address}"
    return f"going on with the archive of {order.study} in {where} ({rest} still in {database.shown})"


def _lines(order: Order, standing: Standing, done: Archived) -> list[str]:
    reports, files = counted(done.manifest.reports, "report"), counted(len(done.manifest.parts), "file")
    lines = [f"{reports} of {order.study} in {files} in {order.address}"]
    if done.dropped:
        lines.append(
            f"each file was read again; {counted(done.dropped, 'report')} left the database, whose files "
            "forget them with the next upkeep (`ldpkit admin upkeep`)"
        )
    if standing.address is not None:
        withdrawn = counted(done.withdrawn, "withdrawn report")
        lines.append(f"{withdrawn} left the archive; their devices get their receipts from now on")
    if standing.address not in (None, order.address):
        lines.append(
            f"this is where the archive lies from now on: a copy of it that is left in {standing.address} is "
            "reached by no withdrawal"
        )
    return lines


def _document(order: Order, done: Archived | None) -> dict[str, object]:
    place: dict[str, object] = {"study": order.study, "address": order.address, "done": done is not None}
    if done is None:
        return place
    counts = {"reports": done.manifest.reports, "dropped": done.dropped, "withdrawn": done.withdrawn}
    return {**place, **counts}


def run_delete(arguments: argparse.Namespace) -> int:
    """ldpkit admin delete-study STUDY_ID (--yes | --dry-run)"""
    from collector.operator.retention import count_reports
    from collector.storage.one_writer import only_writer

    with opened_database(arguments) as database:
        address, archived = _archive_of(database, arguments.study)
        number = count_reports(database, arguments.study, date.max) + archived
        found, where = counted(number, "report"), database.shown
        if address is not None:
            where += f" and in its archive, {address}"
        warn_of_a_sum(database, arguments.study)
        if arguments.dry_run:
            print(f"{found} would be deleted in {where}, and the study closed for good")
            return 0
        require_yes(arguments, f"deleting every report of {arguments.study} ({found}) in {where}")
        with only_writer(database, arguments.study):
            deleted = _deleted(database, arguments.study, address)
        print(f"{counted(deleted, 'report')} deleted in {where}")
    return 0


def _deleted(database: Database, study_id: str, address: str | None) -> int:
    """Delete a study, with its archive where it has one; how many reports."""
    from collector.operator.retention import delete_study

    deleted = 0
    if address is not None:
        from collector.operator.archiving import delete_archive

        deleted = delete_archive(database, study_id, address)
    return deleted + delete_study(database, study_id)


def _archive_of(database: Database, study_id: str) -> tuple[str | None, int]:
    """Where a study is archived, and how many of its reports are there alone."""
    from collector.storage import queries
    from collector.storage.archived import archived_counts

    with database.read() as session:
        state = queries.study_state(session, study_id)
        if state is None or state.archived is None:
            return None, 0
        return state.archived, sum(archived_counts(session, state.number).values())


def warn_of_a_sum(database: Database, study_id: str) -> None:
    """Say what deleting shares would end."""
    from collector.operator.retention import ended_by_deleting

    if ended := ended_by_deleting(database, study_id):
        print(ended, file=sys.stderr)
