"""`ldpkit admin delete-study`: a study's reports leave the database for good."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager
from datetime import date
from typing import TYPE_CHECKING

from collector.operator.at_a_collector import require_yes
from collector.settings import settings_with
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.storage.database import Database


def opened_database(arguments: argparse.Namespace) -> AbstractContextManager[Database]:
    """The database that a command names."""
    from collector.storage.migrating import opened

    settings = settings_with(database=arguments.database)
    return opened(settings.database, settings.busy_timeout)


def run_delete(arguments: argparse.Namespace) -> int:
    """ldpkit admin delete-study STUDY_ID (--yes | --dry-run)"""
    from collector.operator.retention import count_reports, delete_study

    with opened_database(arguments) as database:
        found = counted(count_reports(database, arguments.study, date.max), "report")
        where = database.shown
        warn_of_a_sum(database, arguments.study)
        if arguments.dry_run:
            print(f"{found} would be deleted in {where}, and the study closed for good")
            return 0
        require_yes(arguments, f"deleting every report of {arguments.study} ({found}) in {where}")
        deleted = delete_study(database, arguments.study)
        print(f"{counted(deleted, 'report')} deleted in {where}")
    return 0


def warn_of_a_sum(database: Database, study_id: str) -> None:
    """Say what deleting shares would end."""
    from collector.operator.retention import ended_by_deleting

    if ended := ended_by_deleting(database, study_id):
        print(ended, file=sys.stderr)
