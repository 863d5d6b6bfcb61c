"""Where a life can be cut short, and how to break a ledger so that this shows.

Each kind of point is prepared in the process that is to die: its n-th point ends it.
"""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from typing import Any
from urllib.request import OpenerDirector

KILLED = 9


def at_statement(point: int) -> None:
    seen = [0]

    def count_down(_statement: str) -> None:
        seen[0] += 1
        if seen[0] == point:
            os._exit(KILLED)

    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(count_down)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]


def at_request(point: int) -> None:
    """An odd point: before a request; an even one: the collector has it, the device does not know."""
    seen, opened = [0], OpenerDirector.open

    def boundary() -> None:
        seen[0] += 1
        if seen[0] == point:
            os._exit(KILLED)

    def open_(self: OpenerDirector, *arguments: Any, **options: Any) -> Any:
        boundary()
        response = opened(self, *arguments, **options)
        boundary()
        return response

    OpenerDirector.open = open_  # type: ignore[method-assign]


def at_write(point: int) -> None:
    """For a process that runs under tests/kit/disk.c."""
    os.environ["FAILING_DISK_DIES_AT"] = str(point)


KINDS = {"statement": at_statement, "request": at_request, "power": at_write}


def break_flushing() -> None:
    class Careless(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(statement.replace("EXTRA", "OFF"), *values)

    sqlite3.connect = partial(sqlite3.connect, factory=Careless)
