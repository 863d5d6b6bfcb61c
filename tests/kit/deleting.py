"""Deleting reports as an operator does, straight on a database."""

from collector import retention
from collector.audit_log import BY_TOKEN
from collector.reports.rules import RuleBook


def delete_reports(database, study_id, before=None):
    """Delete a study's reports that came before a day, or all; how many."""
    find = RuleBook(database).find
    return retention.delete_reports(database.act, find, study_id, before, BY_TOKEN)


def delete_study(database, study_id):
    """Close a study for good and delete its reports; how many."""
    return retention.delete_study(database.act, RuleBook(database).find, study_id, BY_TOKEN)
