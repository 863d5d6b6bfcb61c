"""Nothing stored at the collector links a report to a person or a moment.

There is no address, no time and no token with a report, and no order of arrival once the daily job is done.
The audit log is left out: it has what operators did, to the minute, and no report.
"""

import hashlib
import logging
import os
import re
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest
from scipy import stats
from sqlalchemy import text

from collector.tickets import redeem
from ldp_client.core.tokens import header_of
from tests.kit.collectors import build_report, build_study
from tests.ldp_client.issuers import channel_of, token_of

REPORTS, FEWER, TOKENS = 400, 30, 20
ADDRESS = "203.0.113.77"
HEADERS = {
    "User-Agent": "canary-agent/7.7",
    "X-Forwarded-For": "198.51.100.177",
    "Accept-Language": "tlh-x-canary",
}
# A time of day in words, and seconds since 1970 from 2017 to 2049 in several units.
TIME = re.compile(r"\d\d:\d\d|\d{8}T\d{4}")
UNITS = (1, 10**3, 10**6, 10**9)


def send(harness, report, **headers):
    """Send a report as a device does whose address and program are known."""
    response = harness.app.test_client().put(
        f"/v1/studies/{report.study}/reports/{report.id}",
        json=report.to_document(),
        headers={**HEADERS, **headers},
        environ_overrides={"REMOTE_ADDR": ADDRESS},
    )
    assert response.status_code == 201


def rows_of(harness):
    """Each table's rows, in no order that is asked for."""
    with closing(sqlite3.connect(harness.path)) as connection:
        connection.row_factory = sqlite3.Row
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        tables = {row["name"]: connection.execute(f"SELECT * FROM {row['name']}").fetchall() for row in names}
    return {name: [dict(row) for row in rows] for name, rows in tables.items() if name != "audit_log"}


def check_order(places):
    """The places of reports, in their order of arrival, do not follow that order."""
    assert abs(float(stats.spearmanr(range(len(places)), places)[0])) < 4 / len(places) ** 0.5


def is_time(value):
    """Whether a value is a moment finer than a day."""
    if isinstance(value, str):
        return TIME.search(value) is not None
    return isinstance(value, (int, float)) and any(1.5e9 <= value / unit < 2.5e9 for unit in UNITS)


def check_links(harness, log, count):
    """Nothing links reports to persons or moments after the daily job, and no address before it either."""
    study = build_study()
    assert harness.publish(study).status_code == 201
    reports = [build_report(study) for _ in range(count + 1)]
    with log.at_level(logging.DEBUG):
        for report in reports[:-1]:
            send(harness, report)
        before = harness.stored_bytes()
        # The daily job comes with the first report of the next day.
        harness.day += timedelta(1)
        send(harness, reports[-1])
    content, tables = harness.stored_bytes(), rows_of(harness)
    for canary in (ADDRESS, *HEADERS.values()):
        assert canary.encode() not in before + content
        assert canary not in log.text
    cells = [(name, key, row[key]) for name, rows in tables.items() for row in rows for key in row]
    assert [cell for cell in cells if is_time(cell[-1])] == []
    ids = [bytes.fromhex(report.id) for report in reports[:-1]]
    stored = [row["id"] for row in tables["reports"]]
    exported = [bytes.fromhex(report.id) for report in harness.exported()]
    for index in (stored.index, content.index, content.rindex, exported.index):
        check_order([index(report_id) for report_id in ids])


def test_collector_stores_no_address_time_or_order(make_harness, caplog):
    check_links(make_harness(lock_timeout=0.2), caplog, REPORTS)


@pytest.mark.parametrize(
    ("old", "new"), [("WITHOUT ROWID", ""), ("(", "(at INTEGER DEFAULT (strftime('%s')),")]
)
def test_a_planted_table_of_reports_is_found(make_harness, caplog, old, new):
    harness = make_harness()
    with closing(sqlite3.connect(harness.path)) as connection:
        (made,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'reports'").fetchone()
        connection.execute("DROP TABLE reports")
        connection.execute(made.replace(old, new, 1))
        connection.commit()
    with pytest.raises(AssertionError):
        check_links(harness, caplog, FEWER)


def check_tokens(harness):
    """No token stands beside its report, is stored whole, or follows the order of arrival."""
    study = build_study(channel=channel_of("https://issuer.example"))
    assert harness.publish(study).status_code == 201
    reports = [build_report(study) for _ in range(TOKENS + 1)]
    nonces = [os.urandom(32) for _ in reports]
    signed = [token_of(study, nonce=nonce) for nonce in nonces]
    for number, report in enumerate(reports):
        harness.day += timedelta(number == TOKENS)
        send(harness, report, Authorization=header_of(signed[number]))
    content, tables = harness.stored_bytes(), rows_of(harness)
    hashes = [hashlib.sha256(nonce).digest() for nonce in nonces]
    ids = {bytes.fromhex(report.id) for report in reports}
    for row in (set(row.values()) for rows in tables.values() for row in rows):
        assert not (row & ids and row & {*hashes, *nonces})
    for nonce, token in zip(nonces, signed, strict=True):
        assert nonce not in content
        assert token[-64:] not in content
    check_order([content.index(digest) for digest in hashes[:-1]])


def test_tokens_are_not_stored_with_reports(make_harness):
    check_tokens(make_harness())


def test_a_table_of_tokens_and_reports_is_found(make_harness, monkeypatch):
    """A planted fault: each token is kept with the report that it let in."""
    spend = redeem.spend

    def remember(session, study, by_nonce):
        session.execute(text("CREATE TABLE IF NOT EXISTS pairs (nonce BLOB, report BLOB)"))
        for nonce, report in by_nonce.items():
            values = {"nonce": nonce, "report": report.id}
            session.execute(text("INSERT INTO pairs VALUES (:nonce, :report)"), values)
        return spend(session, study, by_nonce)

    monkeypatch.setattr(redeem, "spend", remember)
    with pytest.raises(AssertionError):
        check_tokens(make_harness())
