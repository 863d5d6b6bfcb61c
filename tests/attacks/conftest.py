"""Collectors to attack: the fixtures of the collector's own tests."""

from tests.collector.conftest import (
    database_url,
    empty,
    habits,
    make_harness,
    make_report,
    make_study,
    postgresql,
    start_server,
    study,
    token,
)

__all__ = [
    "database_url",
    "empty",
    "habits",
    "make_harness",
    "make_report",
    "make_study",
    "postgresql",
    "start_server",
    "study",
    "token",
]
