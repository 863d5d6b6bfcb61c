"""The fast layer answers what the plain views answer: the same requests to both, byte for byte."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.collector.answered import Pair
from tests.collector.conftest import build_report, build_study


@pytest.fixture
def pair(make_harness, study):
    made = Pair(make_harness("fast.sqlite3"), make_harness("plain.sqlite3"))
    made.publish(study)
    # The first upload of each version goes the plain way, which builds its mechanisms.
    assert made.put(build_report(study)) == "201 CREATED"
    assert made.taken == 0
    return made


def test_new_known_and_conflicting_reports(pair, study, make_report):
    report = make_report(study)
    changed = make_report(study, id=report.id, payloads={**report.payloads, "hours": b"\1\2\3\4"})
    answers = [pair.put(one) for one in (report, report, changed)]
    assert answers == ["201 CREATED", "200 OK", "409 CONFLICT"]
    assert pair.taken == 3


def test_batches(pair, study, make_report):
    reports = [make_report(study) for _ in range(20)]
    changed = make_report(study, id=reports[0].id, payloads={**reports[0].payloads, "hours": b"\1\2\3\4"})
    assert pair.post(reports)["stored"] == 20
    assert pair.post([*reports, changed, make_report(study)])["failed"][0]["id"] == changed.id
    assert pair.post(reports[:1])["duplicates"] == 1
    assert pair.taken == 3
    pair.post([])


def test_closed_and_withdrawn(pair, study, make_report):
    gone, late = make_report(study), make_report(study)
    pair.put(gone)
    for harness in (pair.fast, pair.plain):
        harness.withdraw(gone.id)
    assert pair.put(gone) == "410 GONE"
    for harness in (pair.fast, pair.plain):
        harness.close()
    assert pair.put(late) == "410 GONE"
    assert [entry["id"] for entry in pair.post([late, gone])["failed"]] == [late.id, gone.id]


def test_early_report_is_425_and_foreign_report_is_422(pair, make_study, study, make_report):
    early = make_study(id="early", opens=(pair.fast.day + timedelta(30)).isoformat())
    pair.publish(early)
    assert [pair.put(make_report(early), "early") for _ in range(2)] == ["425 TOO EARLY"] * 2
    report = make_report(study)
    assert pair.put(report, "early") == "422 UNPROCESSABLE ENTITY"
    assert pair.put(report, report_id="0" * 32) == "422 UNPROCESSABLE ENTITY"
    assert pair.put(report, "nosuch") == "422 UNPROCESSABLE ENTITY"


def test_other_versions_mixed_in_one_batch(pair, study, make_report):
    later = build_study(2, questions=study.document["questions"][:1])
    pair.publish(later)
    mixed = [make_report(later), make_report(study), make_report(later)]
    assert pair.post(mixed)["stored"] == 3
    assert pair.put(make_report(later)) == "201 CREATED"


def test_a_rate_limit_and_an_overload(make_harness, study, make_report):
    pair = Pair(*(make_harness(name, upload_rate=0.001) for name in ("a.sqlite3", "b.sqlite3")))
    pair.publish(study)
    answers = [pair.put(make_report(study)) for _ in range(2)]
    assert answers == ["201 CREATED", "429 TOO MANY REQUESTS"]


@pytest.mark.parametrize(
    "options",
    [
        {"content_type": "application/json; charset=utf-8"},
        {"content_type": "text/plain"},
        {"content_type": ""},
        {"headers": {"Content-Encoding": "gzip"}},
        {"headers": {"Content-Length": "10"}},
        {"headers": {"Content-Length": "x"}},
        {"headers": {"Content-Length": "99999999999"}},
        {"headers": {"Content-Length": "9" * 5000}},
    ],
)
def test_unusual_requests(pair, study, make_report, options):
    report = make_report(study)
    options.setdefault("content_type", "application/json")
    pair.send("PUT", f"/v1/studies/habits/reports/{report.id}", report.to_json(), **options)


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(
    place=st.integers(0, 10**4), noise=st.binary(max_size=3), removed=st.integers(0, 3), many=st.booleans()
)
def test_damaged_bodies(pair, study, place, noise, removed, many):
    report_id = os.urandom(16).hex()
    body = build_report(study, id=report_id).to_json().encode()
    path = "/v1/studies/habits/reports"
    if many:
        body = b'{"reports":[' + body + b"," + build_report(study).to_json().encode() + b"]}"
    place %= len(body)
    damaged = body[:place] + noise + body[place + removed :]
    pair.send(*(("POST", path) if many else ("PUT", f"{path}/{report_id}")), damaged)


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "application/json;charset=UTF-8"]
)
def test_a_media_type_with_its_charset_is_taken(pair, study, make_report, content_type):
    report = make_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    assert pair.send("PUT", path, report.to_json(), content_type)[0] == "201 CREATED"
    assert pair.taken == 1
