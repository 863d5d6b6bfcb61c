"""Deleting reports as an operator does, straight on a database."""

from datetime import date

from collector import retention
from collector.audit_log import BY_TOKEN
from collector.db import Database
from collector.reports.rules import RuleBook


def delete_reports(database: Database, study_id: str, before: date | None = None) -> int:
    """Delete a study's reports that came before a day, or all; how many."""
    find = RuleBook(database).find
    return retention.delete_reports(database.act, find, study_id, before, BY_TOKEN)


def delete_study(database: Database, study_id: str) -> int:
    """Close a study for good and delete its reports; how many."""
    return retention.delete_study(database.act, RuleBook(database).find, study_id, BY_TOKEN)
