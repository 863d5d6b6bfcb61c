"""A ticket gives a report its public values, and lets no other values in."""

from __future__ import annotations

import pytest

from collector.tickets.codes import delete_used_tickets, disable, make_tickets, revoke
from ldp_client.documents.errors import InputError
from tests.collector.answered import problem
from tests.kit.collectors import build_study, count_tickets, device_report
from tests.kit.errors import raises

REGION = {"id": "region", "choices": ["north", 'the "south", {"digest":"', "west"]}
STRATUM = {"id": "stratum", "choices": ["town", "country"], "source": "ticket"}


INVITED = build_study(public=[REGION, STRATUM])


def report_of(study, **values):
    return device_report(study, region="north", **values)


def put(harness, report, ticket=None):
    headers = {} if ticket is None else {"LDPKit-Ticket": ticket}
    path = f"/v1/studies/habits/reports/{report.id}"
    body = report.to_json()
    return harness.app.test_client().put(path, data=body, content_type="application/json", headers=headers)


def made(harness, count, **public):
    with harness.collector.database.write() as session:
        return make_tickets(session, "habits", count, b"", public)


REFUSED = (401, "ticket-needed")
INVALID = (401, "ticket-invalid")


@pytest.fixture
def invited(empty):
    empty.publish(INVITED)
    return empty


def test_ticket_supplies_its_public_values(invited):
    (town,), (country,) = made(invited, 1, stratum="town"), made(invited, 1, stratum="country")
    one, other = report_of(INVITED), report_of(INVITED)
    assert problem(put(invited, one)) == REFUSED
    assert [put(invited, one, town).status_code for _ in range(3)] == [201, 200, 200]
    assert put(invited, one).status_code == 200
    assert put(invited, other, country).status_code == 201
    assert {report.id: report.public["stratum"] for report in invited.exported()} == {
        one.id: "town",
        other.id: "country",
    }
    invited.withdraw(one.id)
    assert problem(put(invited, one, town)) == (410, "report-withdrawn")


def left(harness):
    with harness.collector.database.read() as session:
        return count_tickets(session, 1)


def test_report_that_contradicts_its_ticket_is_rejected(invited):
    (ticket,) = made(invited, 1, stratum="town")
    wrong, right = report_of(INVITED, stratum="country"), report_of(INVITED, stratum="town")
    answer = put(invited, wrong, ticket)
    assert (problem(answer), answer.json["field"]) == (INVALID, "public.stratum")
    assert left(invited) == 1
    assert put(invited, right, ticket).status_code == 201
    assert invited.exported()[0].public["stratum"] == "town"


def test_report_without_the_tickets_value_is_rejected(invited):
    """Not before a ticket exists, not in a batch, and not after an attempt to lift the restriction."""
    reports = [report_of(INVITED), report_of(INVITED, stratum="town")]
    assert [problem(put(invited, report)) for report in reports] == [REFUSED] * 2
    assert len(invited.post([report.to_document() for report in reports]).json["failed"]) == 2
    made(invited, 1, stratum="town")
    with invited.collector.database.write() as session:
        with raises(InputError, "ticket.disable_carries_values", "habits"):
            disable(session, "habits", "ann")
        assert count_tickets(session, 1) == 1
        revoke(session, "habits", "ann")
        assert count_tickets(session, 1) == 0
    assert [problem(put(invited, report)) for report in reports] == [REFUSED] * 2
    later = build_study(2, public=[REGION, {**STRATUM, "choices": ["town", "village"]}])
    (older,) = made(invited, 1, stratum="country")
    invited.publish(later)
    answer = put(invited, report_of(later), older)
    assert (problem(answer), answer.json["field"]) == (INVALID, "public.stratum")
    assert left(invited) == 1
    assert invited.exported() == []


def test_used_tickets_are_deleted_in_batches_per_stratum(invited):
    """A used ticket that is deleted alone could be linked to its stratum's only new report."""
    for stratum, count in (("town", 12), ("country", 9)):
        used = made(invited, count, stratum=stratum)
        for ticket in used:
            assert put(invited, report_of(INVITED), ticket).status_code == 201
    with invited.collector.database.write() as session:
        assert delete_used_tickets(session, 1, b"") == 12
        assert delete_used_tickets(session, 1, b"") == 0
    for ticket in used:
        assert put(invited, report_of(INVITED), ticket).status_code == 409
    (tenth,) = made(invited, 1, stratum="country")
    put(invited, report_of(INVITED), tenth)
    with invited.collector.database.write() as session:
        assert delete_used_tickets(session, 1, b"") == 10
