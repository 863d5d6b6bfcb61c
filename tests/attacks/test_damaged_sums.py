"""Damage the running summary's rows, so that reports are miscounted or a recount cannot mend them."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.collector.answered import problem
from tests.collector.commands import run
from tests.collector.conftest import build_report, build_study

STUDY = build_study()


@pytest.fixture
def counted(make_harness, database_url):
    harness = make_harness(database=database_url, busy_timeout=10)
    harness.url = database_url
    harness.publish(STUDY)
    harness.post([build_report(STUDY).to_document() for _ in range(5)])
    return harness


@pytest.mark.parametrize("damage", [bytes(8), bytes(16), bytes(3), b""])
def test_sums_of_another_length_are_never_read_and_counted_again(counted, damage, capsys):
    """NumPy adds a single number to every one of a vector."""
    right = counted.summary().text
    with counted.collector.database.write() as session:
        session.execute(text("UPDATE sums SET sums = :damage"), {"damage": damage})
    late = build_report(STUDY)
    assert problem(counted.summary()) == problem(counted.put(late)) == (503, "unavailable")
    assert len(counted.exported()) == 5
    run("admin", "recount", "--database", counted.url)
    assert "habits\tversion 1\tthe summary was wrong, and is right now" in capsys.readouterr().out
    assert counted.summary().text == right
    assert counted.put(late).status_code == 201
    assert counted.summary().json["questions"]["ever"]["n"] == 6
