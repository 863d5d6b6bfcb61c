"""Watches the statements of a database, also those that SQLite's driver runs without SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event

ENDS = ("COMMIT", "ROLLBACK")


def before_each(engine: Engine, call: Callable[[], object]) -> None:
    """Call something before each statement of an engine, except the ends of transactions."""

    def trace(driver: Any, *_: object) -> None:
        driver.set_trace_callback(lambda text: text.startswith(ENDS) or call())

    if engine.dialect.name == "sqlite":
        event.listen(engine, "checkout", trace)
    else:
        event.listen(engine, "before_cursor_execute", lambda *_: call())
