"""What an operator does with tickets: page, intake and commands agree about who is admitted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from collector.tickets.codes import SPENT, disable, make_tickets, revoke
from ldp_client.answering import perturb_answers
from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from tests.collector.answered import problem
from tests.kit.collectors import ANSWERS, build_report, build_study, count_tickets
from tests.kit.collectors import TICKET_KEY as KEY

STRATUM = {"id": "stratum", "choices": ["town", "country"], "source": "ticket"}
PLAIN, CARRYING, OPEN_AGAIN = build_study(), build_study(2, public=[STRATUM]), build_study(3)
REFUSED = (401, "ticket-needed")
LOST, OTHER, KEPT = (build_study(id=name) for name in ("lost", "other", "kept"))
USES = 12


@pytest.fixture
def place(make_harness):
    harness = make_harness(ticket_key=KEY)
    assert harness.publish(PLAIN).status_code == 201
    return harness


def answered(study):
    return perturb_answers(study, mechanisms_of(study), ANSWERS)


def act(harness, change, *arguments):
    with harness.collector.database.write() as session:
        found = change(session, "habits", *arguments)
    harness.collector.current.forget("habits")
    return found


def page_asks(harness):
    return 'id="for:answers"' in harness.client.get("/s/habits").text


def test_tickets_of_later_version_block_no_earlier_report(place):
    """Its device answered when no ticket was needed, and cannot get one."""
    place.publish(CARRYING)
    late = [answered(PLAIN) for _ in range(3)]
    assert place.put(late[0]).status_code == 201
    (word,) = act(place, make_tickets, 1, KEY.encode(), {"stratum": "town"})
    assert place.put(late[1]).status_code == 201
    assert problem(place.put(answered(CARRYING))) == REFUSED
    mixed = [late[2].to_document(), answered(CARRYING).to_document()]
    outcome = place.post(mixed).json
    assert (outcome["stored"], [one["id"] for one in outcome["failed"]]) == (1, [mixed[1]["id"]])
    new = answered(CARRYING)
    assert place.put(new, word).status_code == 201
    assert {report.id for report in place.exported()} == {new.id, *(report.id for report in late)}


def test_page_asks_for_ticket_exactly_if_intake_requires_it(place):
    def agree(study, needed):
        answer = place.put(answered(study))
        assert page_asks(place) == needed
        assert (problem(answer) == REFUSED) if needed else (answer.status_code == 201)

    agree(PLAIN, needed=False)
    act(place, make_tickets, 1, KEY.encode())
    agree(PLAIN, needed=True)
    act(place, revoke, "ann")
    agree(PLAIN, needed=True)
    act(place, disable, "ann")
    agree(PLAIN, needed=False)
    place.publish(CARRYING)
    agree(CARRYING, needed=True)
    act(place, make_tickets, 1, KEY.encode(), {"stratum": "town"})
    agree(CARRYING, needed=True)
    place.publish(OPEN_AGAIN)
    agree(OPEN_AGAIN, needed=False)


def test_lift_is_refused_while_earlier_tickets_are_valid(place, capsys):
    """A device answered the previous version and uploads late."""
    place.publish(CARRYING)
    (word,) = act(place, make_tickets, 1, KEY.encode(), {"stratum": "town"})
    late = answered(CARRYING)
    place.publish(OPEN_AGAIN)
    assert place.exit_code("invite", "habits", "--disable") == 3
    assert "nothing was changed" in capsys.readouterr().err
    assert place.put(answered(OPEN_AGAIN)).status_code == 201
    assert place.put(late, word).status_code == 201
    for what in ("--revoke-all", "--disable"):
        assert place.exit_code("invite", "habits", what) == 0


def test_revoking_no_tickets_is_refused(place, capsys):
    """The operator would take the study for one that only invited people can answer."""
    place.publish(OPEN_AGAIN)
    assert place.exit_code("invite", "habits", "--revoke-all") == 3
    assert "everybody may answer it" in capsys.readouterr().err


def test_invite_after_the_last_day_or_the_close_is_refused(make_harness, capsys):
    place = make_harness(ticket_key=KEY)
    for version, days, code in ((1, 30, 3), (2, 3, 0)):
        closes = place.day - timedelta(days)
        place.publish(Study({**PLAIN.document, "version": version, "closes": closes.isoformat()}))
        assert place.exit_code("invite", "habits", "--count", "1") == code
        shown = capsys.readouterr()
        assert (shown.out == "", f"ended on {closes}" in shown.err) == (code == 3, code == 3)
    place.close()
    assert place.exit_code("invite", "habits", "--count", "2") == 3
    assert capsys.readouterr().out == ""


def use(harness, study, key):
    """Make tickets under a key, and use them all."""
    with harness.collector.database.write() as session:
        words = make_tickets(session, study.id, USES, key.encode())
    assert {harness.put(build_report(study), word).status_code for word in words} == {201}


def tags(harness):
    with harness.collector.database.read() as session:
        return len(session.execute(SPENT.select()).all())


@pytest.fixture
def moved(make_harness, database_url):
    """A place whose settings were lost after a study had used its tickets."""
    before = make_harness(database=database_url, ticket_key="a key that is lost", lock_timeout=10)
    before.publish(LOST)
    use(before, LOST, "a key that is lost")
    before.close(LOST.id)
    before.collector.close()
    harness = make_harness(database=database_url, ticket_key=KEY, lock_timeout=10)
    harness.url = database_url
    for study in (OTHER, KEPT):
        harness.publish(study)
    use(harness, KEPT, KEY)
    return harness


def order_of(harness):
    """The ids of the open study's reports in the order of PostgreSQL's table."""
    rows = (
        "SELECT r.id FROM reports r JOIN studies s ON s.number = r.study WHERE s.id = 'other' ORDER BY r.ctid"
    )
    with harness.collector.database.read() as session:
        return [bytes(row.id).hex() for row in session.execute(text(rows))]


@pytest.mark.attack(12)
def test_upkeep_of_other_studies_runs_despite_a_lost_key(moved, caplog):
    """One study's ticket key is lost, and the order of all other studies' reports would stay."""
    sent = sorted((build_report(OTHER) for _ in range(USES)), key=lambda report: report.id, reverse=True)
    assert {moved.put(report).status_code for report in sent} == {201}
    moved.day += timedelta(1)
    assert moved.put(build_report(OTHER)).status_code == 201
    assert "the daily upkeep: used tickets could not be deleted" in caplog.text
    assert "study lost: setting ticket_key" in caplog.text
    assert "study kept" not in caplog.text
    assert tags(moved) == USES
    if "postgresql" in moved.url:
        old = {report.id for report in sent}
        assert [found for found in order_of(moved) if found in old] == sorted(old)


def test_upkeep_fails_until_tickets_of_lost_key_are_forgotten(moved):
    refused = moved.upkeep()
    assert refused.status_code >= 400
    said = refused.get_json()["detail"]
    assert "study lost: setting ticket_key" in said
    assert "all other upkeep was done" in said
    assert tags(moved) == USES
    assert moved.exit_code("invite", "lost", "--revoke-all") == 0
    assert moved.upkeep().status_code == 200
    with moved.collector.database.read() as session:
        assert count_tickets(session, 1) == 0
