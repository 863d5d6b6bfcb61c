"""Let a server's clock be wrong once, so that its database keeps the order in which later reports came."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from collector.storage.upkeep import Upkeep
from tests.collector.conftest import build_report

REPORTS = 12


@pytest.fixture
def kept(make_harness, postgresql, study):
    harness = make_harness(database=postgresql.new_database(), busy_timeout=10)
    harness.publish(study)
    return harness


def send(harness, study):
    """Reports, the largest id first: never in the order of the ids."""
    reports = sorted((build_report(study) for _ in range(REPORTS)), key=lambda report: report.id)
    assert {harness.put(report).status_code for report in reversed(reports)} == {201}


def days_in_order(harness):
    with harness.collector.database.read() as session:
        rows = session.execute(text("SELECT day, id FROM reports ORDER BY ctid")).all()
    ids = {day: [bytes(row.id) for row in rows if row.day == day] for day, _ in rows}
    return {day for day, found in ids.items() if found == sorted(found)}


@pytest.mark.parametrize("ahead", [1, 365])
def test_a_clock_that_was_ahead_hides_order_again(kept, study, caplog, ahead):
    right = kept.day
    send(kept, study)
    kept.day = right + timedelta(ahead)
    kept.put(build_report(study))
    kept.day = right
    send(kept, study)
    kept.day += timedelta(1)
    send(kept, study)
    assert days_in_order(kept) >= {right}
    assert ("a clock was wrong" in caplog.text) == (ahead > 1)


def test_upkeep_by_hand_orders_all_days(kept, study):
    """Today's too: nothing more may come before the disk is handed on."""
    send(kept, study)
    assert days_in_order(kept) == set()
    Upkeep(kept.collector.database, lambda: kept.day, b"").run(kept.day, even_if_done=True)
    assert days_in_order(kept) == {kept.day}


def test_workers_that_start_an_upkeep_at_once(kept):
    """One does the first, and the others find it done."""
    database, day = kept.collector.database, kept.day
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: Upkeep(database, lambda: day, b"").run(day), range(4)))
    assert sum(done) == 1
