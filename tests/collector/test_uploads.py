"""One report a request, and many."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, event, text

TYPE = "urn:ldpkit:problem:"


def rows(harness):
    with create_engine(f"sqlite:///{harness.path}").connect() as connection:
        return connection.execute(text("SELECT * FROM reports")).all()


def outcome(response):
    document = response.get_json(force=True)
    return response.status_code, document["type"].removeprefix(TYPE), document.get("field")


def test_a_report_is_stored_once(habits, study, make_report):
    report = make_report(study)
    assert habits.put(report).status_code == 201
    again = habits.put(report)
    assert again.status_code == 200
    assert again.get_json() == {"id": report.id, "result": "duplicate"}
    assert habits.exported() == [report]


def test_a_row_holds_id_version_day_and_packed_payloads(habits, study, make_report):
    report = make_report(study)
    habits.put(report)
    (row,) = rows(habits)
    packed = b"".join(report.payloads[question] for question in ("hours", "fruit", "ever"))
    assert row == (1, bytes.fromhex(report.id), 1, "2026-06-15", packed)


def test_another_report_under_the_same_id_is_a_conflict(habits, study, make_report):
    report = make_report(study)
    habits.put(report)
    payloads = {**report.payloads, "hours": bytes([0, 0, 0, report.payloads["hours"][3] ^ 1])}
    response = habits.put(make_report(study, id=report.id, payloads=payloads))
    assert outcome(response) == (409, "report-conflict", "id")
    assert habits.exported() == [report]


def test_same_id_in_two_studies_is_stored_as_two_reports(habits, study, make_study, make_report):
    other = make_study(id="other")
    habits.publish(other)
    report = make_report(study)
    assert habits.put(report).status_code == 201
    assert habits.put(make_report(other, id=report.id)).status_code == 201


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"digest": "0" * 64}, "digest"),
        ({"payloads": {"hours": b"\0\0\0\1", "fruit": b"\0"}}, "payloads.ever"),
        (
            {"payloads": {"hours": b"\0\0\0\1", "fruit": b"\0", "ever": b"\0", "nosuch": b"\0"}},
            "payloads.nosuch",
        ),
        ({"payloads": {"hours": b"\0\0\1", "fruit": b"\0", "ever": b"\0"}}, "payloads.hours"),
        ({"payloads": {"hours": b"\0\0\0\1", "fruit": b"\x08", "ever": b"\0"}}, "payloads.fruit"),
        ({"payloads": {"hours": b"\0\0\0\1", "fruit": b"\0", "ever": b"\2"}}, "payloads.ever"),
    ],
)
def test_an_invalid_report_is_refused_with_its_field(habits, study, make_report, changes, field):
    assert outcome(habits.put(make_report(study, **changes))) == (422, "report-invalid", field)
    assert habits.exported() == []


def test_the_address_and_the_report_must_agree(habits, study, make_study, make_report):
    report = make_report(study)
    address = f"/v1/studies/habits/reports/{os.urandom(16).hex()}"
    assert outcome(habits.client.put(address, json=report.to_document())) == (422, "report-invalid", "id")
    habits.publish(make_study(id="other"))
    address = f"/v1/studies/other/reports/{report.id}"
    assert outcome(habits.client.put(address, json=report.to_document())) == (422, "report-invalid", "study")


def test_a_report_of_an_earlier_version_is_still_taken(habits, study, make_study, make_report):
    early, late = make_report(study), make_report(study)
    habits.put(early)
    later = make_study(version=2, questions=study.document["questions"][:1])
    habits.publish(later)
    new = make_report(later)
    assert [habits.put(report).status_code for report in (early, late, new)] == [200, 201, 201]
    assert sorted(report.id for report in habits.exported()) == sorted([early.id, late.id, new.id])
    assert {report.id: report for report in habits.exported()}[new.id] == new


def test_a_version_that_was_replaced_can_still_be_fetched(habits, study, make_study):
    later = make_study(version=3)
    habits.publish(later)
    assert habits.client.get("/v1/studies/habits?version=1").data == study.canonical()
    assert habits.client.get("/v1/studies/habits?version=3").data == later.canonical()
    assert habits.client.get("/v1/studies/habits?version=2").status_code == 404
    for wrong in ("0", "x", "1.0", "٣", "9" * 30):
        response = habits.client.get("/v1/studies/habits", query_string={"version": wrong})
        assert outcome(response) == (422, "parameter-invalid", "version")


def test_closed_study_rejects_new_reports_and_accepts_repeats(habits, study, make_report):
    stored = make_report(study)
    habits.put(stored)
    habits.close()
    assert habits.put(stored).status_code == 200
    assert outcome(habits.put(make_report(study))) == (410, "study-closed", None)
    assert habits.exported() == [stored]


def test_a_study_opens_a_day_early_and_closes_a_week_late(empty, make_study, make_report):
    study = make_study(opens="2026-06-10", closes="2026-06-20")
    empty.publish(study)
    opens, closes = empty.day - timedelta(5), empty.day + timedelta(5)
    seen = []
    for day in (opens - timedelta(2), opens - timedelta(1), closes + timedelta(7), closes + timedelta(8)):
        empty.day = day
        seen.append(empty.put(make_report(study)).status_code)
    assert seen == [425, 201, 201, 410]


def test_the_days_after_the_close_can_be_set(make_harness, make_study, make_report):
    harness = make_harness(grace_days=1)
    study = make_study(closes="2026-06-14")
    harness.publish(study)
    assert harness.put(make_report(study)).status_code == 201
    harness.day += timedelta(1)
    assert harness.put(make_report(study)).status_code == 410


def test_early_report_gets_retry_after(empty, make_study, make_report):
    study = make_study(opens="2026-07-01")
    empty.publish(study)
    response = empty.put(make_report(study))
    assert outcome(response) == (425, "study-not-open", None)
    assert int(response.headers["Retry-After"]) > 0


@pytest.mark.parametrize("days", [{"opens": "0001-01-01"}, {"closes": "9999-12-31"}])
def test_first_and_last_calendar_days_are_handled(empty, make_study, make_report, days):
    study = make_study(**days)
    empty.publish(study)
    assert empty.put(make_report(study)).status_code == 201


def test_concurrent_duplicates_make_one_row(habits, study, make_report):
    report = make_report(study)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: habits.put(report).status_code, range(32)))
    assert sorted(statuses) == [200] * 31 + [201]
    assert len(rows(habits)) == 1


def test_concurrent_conflicts_store_exactly_one(habits, study, make_report):
    report_id = os.urandom(16).hex()
    rivals = []
    for number in range(16):
        payloads = {"hours": number.to_bytes(4, "big"), "fruit": b"\1", "ever": b"\1"}
        rivals.append(make_report(study, id=report_id, payloads=payloads))
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda rival: habits.put(rival).status_code, rivals))
    assert sorted(statuses) == [201] + [409] * 15
    assert habits.exported() == [rivals[statuses.index(201)]]


def test_two_processes_on_one_file_wait_for_each_other(make_harness, study, make_report):
    pair = [make_harness(lock_timeout=20) for _ in range(2)]
    pair[0].publish(study)
    reports = [make_report(study) for _ in range(200)]
    uploads = [(pair[number % 2], report) for number, report in enumerate(reports)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda upload: upload[0].put(upload[1]).status_code, uploads))
    assert statuses == [201] * 200


def test_a_batch_is_inserted_in_the_order_of_the_ids(habits, study, make_report):
    seen = []

    def record(_connection, _cursor, statement, rows, *_rest):
        seen.extend(row[1] for row in rows if "INSERT INTO reports" in statement)

    event.listen(habits.app.extensions["ldpkit"].database.engine, "before_cursor_execute", record)
    habits.post([make_report(study).to_document() for _ in range(20)])
    assert len(seen) == 20
    assert seen == sorted(seen)


def test_a_batch_is_counted(habits, study, make_report):
    known = make_report(study)
    habits.put(known)
    fresh = [make_report(study) for _ in range(1500)]
    batch = [report.to_document() for report in [known, *fresh]]
    response = habits.post(batch)
    assert response.status_code == 200
    assert response.get_json() == {"stored": 1500, "duplicates": 1, "failed": []}
    assert habits.post(batch).get_json() == {"stored": 0, "duplicates": 1501, "failed": []}
    assert len(rows(habits)) == 1501


def test_a_bad_report_does_not_refuse_the_rest(habits, study, make_report):
    good = make_report(study)
    impossible = make_report(study, payloads={**good.payloads, "ever": b"\7"})
    conflicting = make_report(study, id=good.id, payloads={**good.payloads, "hours": b"\1\2\3\4"})
    batch = [impossible.to_document(), good.to_document(), {"id": "x"}, 7, conflicting.to_document()]
    result = habits.post(batch).get_json()
    assert result["stored"] == 1
    assert result["duplicates"] == 0
    failures = [(entry["id"], entry["type"].removeprefix(TYPE), entry["field"]) for entry in result["failed"]]
    assert failures == [
        (impossible.id, "report-invalid", "reports[0].payloads.ever"),
        ("x", "report-invalid", "reports[2].format"),
        (None, "report-invalid", "reports[3]"),
        (good.id, "report-conflict", "reports[4].id"),
    ]
    assert all(entry["detail"] for entry in result["failed"])
    assert habits.exported() == [good]


def test_a_report_twice_in_one_batch_is_stored_once(habits, study, make_report):
    document = make_report(study).to_document()
    assert habits.post([document, document]).get_json() == {"stored": 1, "duplicates": 1, "failed": []}


def test_a_batch_to_a_closed_study_keeps_what_is_stored(habits, study, make_report):
    stored, late = make_report(study), make_report(study)
    habits.put(stored)
    habits.close()
    result = habits.post([late.to_document(), stored.to_document()]).get_json()
    assert (result["stored"], result["duplicates"]) == (0, 1)
    assert [(entry["id"], entry["type"]) for entry in result["failed"]] == [(late.id, TYPE + "study-closed")]


def test_empty_batch_is_accepted(habits):
    assert habits.post([]).get_json() == {"stored": 0, "duplicates": 0, "failed": []}


@pytest.mark.parametrize(
    ("body", "field"), [([], "reports"), ({}, "reports"), ({"reports": {}}, "reports"),
                        ({"reports": [], "more": 1}, "more")]
)  # fmt: skip
def test_malformed_batch_is_rejected_with_its_field(habits, body, field):
    response = habits.client.post("/v1/studies/habits/reports", json=body)
    assert outcome(response) == (422, "batch-invalid", field)
