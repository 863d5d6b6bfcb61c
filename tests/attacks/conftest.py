"""Collectors and nodes to attack: the fixtures of their own tests."""

from tests.collector.conftest import (
    database_url,
    empty,
    habits,
    log_everything,
    make_harness,
    make_report,
    make_study,
    postgresql,
    start_server,
    study,
    token,
)
from tests.secure_sum.conftest import network

__all__ = [
    "database_url",
    "empty",
    "habits",
    "log_everything",
    "make_harness",
    "make_report",
    "make_study",
    "network",
    "postgresql",
    "start_server",
    "study",
    "token",
]

# The invitation key of the places in which they run.
KEY = "the key of this place"
