"""Studies that take invited reports only: each ticket admits one report, and nothing links the two."""

import csv
import hmac
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from collector.daily import Upkeep
from collector.keys import hash_key
from collector.problems import ProblemError
from collector.reports.writer import Upload
from collector.tickets.codes import count_unused, delete_used_tickets, disable, make_tickets, revoke
from ldp_client import Device
from ldp_client.documents.errors import InputError
from ldpkit.cli import client
from schemas import Study
from tests import studies
from tests.kit import collectors
from tests.kit.answers import problem
from tests.kit.collectors import TICKET_KEY, build_report, build_study, conflicting, device_report
from tests.kit.commands import run
from tests.kit.errors import raises
from tests.kit.operators import URL, answering

REFUSED = (401, "ticket-needed")
INVALID = (401, "ticket-invalid")


def left(harness):
    return harness.write(count_unused, 1)


@pytest.mark.attack(14)
def test_one_commit_with_many_uploads_uses_each_ticket_once(either, study):
    """Two reports come with one ticket, one twice, one without, and one under the id of an invited one."""
    first, second, third = either.tickets(3)
    a, b, c, d, own = (build_report(study) for _ in range(5))

    def store(*sent):
        uploads = [
            Upload("habits", [either.collector.rules.find("habits", 1).pack(report)], word and hash_key(word))
            for report, word in sent
        ]
        outcomes = [outcome for (outcome,) in either.collector.writer._store(uploads)]
        return [one.kind.name if isinstance(one, ProblemError) else one.value for one in outcomes]

    said = store((a, first), (b, first), (c, second), (c, second), (d, None), (conflicting(own), None))
    assert said == ["stored", "ticket-spent", "stored", "duplicate", "ticket-needed", "ticket-needed"]
    assert store((conflicting(own), None), (own, third))[0] == "ticket-needed"
    assert store((d, first), (own, third)) == ["ticket-spent", "stored"]
    assert {report.id: report.payloads for report in either.exported()}[own.id] == own.payloads


def test_racing_workers_use_each_report_and_ticket_once(postgresql, make_harness, study):
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=20, ticket_key=TICKET_KEY) for _ in range(4)]
    harnesses[0].publish(study)
    for _ in range(3):
        for reports, expected in (
            ([build_report(study)] * 4, [200, 200, 200, 201]),
            ([build_report(study) for _ in harnesses], [201, 409, 409, 409]),
        ):
            with ThreadPoolExecutor(4) as pool:
                answers = pool.map(collectors.Harness.put, harnesses, reports, harnesses[0].tickets(1) * 4)
            assert sorted(answer.status_code for answer in answers) == expected


@pytest.mark.attack(12)
def test_a_collector_gets_no_names(inviting, tmp_path, monkeypatch):
    """With names in its database, a collector could join people and their reports."""
    monkeypatch.chdir(tmp_path)
    names, bodies, plain = ["Ada", "Bo"], [], client.exchange
    Path("people.csv").write_text("".join(f"{name}\n" for name in ("name", *names)))

    def exchange(asked, *more):
        bodies.append(asked.data or b"")
        return plain(asked, *more)

    monkeypatch.setattr(client, "exchange", exchange)
    with answering(inviting.app):
        run("invite", "habits", "--names", "people.csv", "--out", "out.csv", "--collector", URL)
    assert b"Ada" not in b"".join(bodies)
    with open("out.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == names
    assert {inviting.put(build_report(build_study()), line["ticket"]).status_code for line in lines} == {201}


def rows(harness, table):
    return len(harness.sql(f"SELECT 1 FROM {table}"))


@pytest.mark.attack(12)
def test_used_hashes_tags_and_nonces_are_overwritten(inviting, study):
    """Read in a database's files what links used tickets to reports."""
    pairs = answered(inviting, study, 12)
    hidden = [bytes(row.spending)[:16] for row in inviting.sql("SELECT spending FROM studies")]
    hidden += [bytes(row.mark) for row in inviting.sql("SELECT mark FROM spent")]
    hidden += [hash_key(ticket) for _, ticket in pairs]

    def found():
        content = inviting.stored_bytes()
        assert pairs[0][1].encode() not in content
        return [each in content for each in hidden]

    assert found() == [True] * 25
    # The first report of a day, refused or not, has what was used on the day before deleted.
    inviting.day += timedelta(1)
    assert inviting.post([build_report(study).to_document()]).status_code == 200
    assert found() == [False] * 25


def answered(harness, study, count):
    """Pairs of a report and its ticket, in the order in which they were sent."""
    words = harness.tickets(count)
    pairs = [(build_report(study), word) for word in words]
    for report, word in pairs:
        assert harness.put(report, word).status_code == 201
    return pairs


@pytest.mark.attack(12)
def test_sqlite_log_does_not_link_tickets_to_reports(inviting, study):
    """A thief has the file, its log, and the operator's list of who got which ticket.

    The log shows the database as it was after each commit.
    """

    def column(statement):
        return {bytes(row[0]) for row in inviting.sql(statement)}

    def state():
        return column("SELECT hash FROM tickets"), column("SELECT mark FROM spent")

    words, (nonce,) = inviting.tickets(20), column("SELECT substr(spending, 1, 16) FROM studies")
    states = [state()]
    for word in words:
        assert inviting.put(build_report(study), word).status_code == 201
        states.append(state())
    key = hmac.digest(b"", nonce, "sha256")
    for word, ((tickets, marks), (kept, later)) in zip(words, pairwise(states)):
        assert (kept, len(later - marks)) == (tickets, 1)
        assert hmac.digest(key, b"mark" + hash_key(word), "sha256") not in later
    assert inviting.write(delete_used_tickets, 1, TICKET_KEY.encode()) == 20
    assert state() == (set(), set())


def test_tickets_are_used_once_also_after_upkeep(either, study):
    """Fewer than ten used ones are not deleted: a few would point to their reports."""

    def upkeep():
        either.day += timedelta(1)
        Upkeep(either.collector.database, lambda: either.day, TICKET_KEY.encode()).run(either.day)
        return rows(either, "tickets"), rows(either, "spent"), left(either)

    pairs = answered(either, study, 9)
    assert upkeep() == (9, 9, 0)
    pairs += answered(either, study, 3)
    (extra,) = either.tickets(1)
    assert upkeep() == (1, 0, 1)
    for report, word in pairs:
        assert either.put(build_report(study), word).status_code == 401
        assert either.put(report, word).status_code == 200
    assert either.put(build_report(study), extra).status_code == 201


def test_another_ticket_key_admits_no_report_twice(make_harness, either, study):
    """A second machine without the settings file, or a file that was lost."""
    ((_, word), *_) = answered(either, study, 12)
    (fresh,) = either.tickets(1)
    other = make_harness(database=either.collector.settings.database, ticket_key="another ticket key")
    for given in (word, fresh):
        answer = other.put(build_report(study), given)
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    Upkeep(other.collector.database, lambda: other.day + timedelta(3), b"another ticket key").run_if_due()
    assert left(either) == 1
    assert either.put(build_report(study), fresh).status_code == 201


CARRYING, OPEN_AGAIN = build_study(2, public=[collectors.REGION, collectors.STRATUM]), build_study(3)


@pytest.fixture
def carrying(inviting):
    """A collector whose second version of `habits` takes a value from each ticket."""
    assert inviting.publish(CARRYING).status_code == 201
    return inviting


def report_of(study=CARRYING, **values):
    return device_report(study, region="north", **values)


def test_ticket_supplies_its_public_values(carrying):
    (town,), (country,) = carrying.tickets(1, stratum="town"), carrying.tickets(1, stratum="country")
    one, other = report_of(), report_of()
    assert problem(carrying.put(one, "no ticket of ours")) == INVALID
    assert [carrying.put(one, ticket).status_code for ticket in (town, town, None)] == [201, 200, 200]
    contradiction = carrying.put(report_of(stratum="town"), country)
    assert (problem(contradiction), contradiction.json["field"]) == (INVALID, "public.stratum")
    assert left(carrying) == 1
    assert carrying.put(other, country).status_code == 201
    strata = {report.id: report.public["stratum"] for report in carrying.exported()}
    assert strata == {one.id: "town", other.id: "country"}
    carrying.withdraw(one.id)
    assert problem(carrying.put(one, town)) == (410, "report-withdrawn")


def test_report_without_the_tickets_value_is_rejected(carrying, study):
    """Not before a ticket exists, and not after it is revoked.

    A device of the first version answered when no ticket was needed, and cannot get one.
    """
    new = [report_of(), report_of(stratum="town")]
    for change in (None, partial(carrying.tickets, 1, stratum="town"), partial(act, carrying, revoke)):
        if change:
            change()
        assert [problem(carrying.put(report)) for report in new] == [REFUSED] * 2
        early, late = device_report(study), device_report(study)
        outcome = carrying.post([report.to_document() for report in (*new, late)]).json
        assert (outcome["stored"], [one["id"] for one in outcome["failed"]]) == (1, [one.id for one in new])
        assert carrying.put(early).status_code == 201
    assert left(carrying) == 0
    later = build_study(3, public=[collectors.REGION, {**collectors.STRATUM, "choices": ["town", "village"]}])
    (older,) = carrying.tickets(1, stratum="country")
    carrying.publish(later)
    answer = carrying.put(report_of(later), older)
    assert (problem(answer), answer.json["field"]) == (INVALID, "public.stratum")
    assert left(carrying) == 1


def test_used_tickets_are_deleted_in_batches_per_stratum(carrying):
    """A used ticket that is deleted alone could be linked to its stratum's only new report."""

    def deleted():
        return carrying.write(delete_used_tickets, 1, TICKET_KEY.encode())

    for stratum, count in (("town", 12), ("country", 9)):
        used = carrying.tickets(count, stratum=stratum)
        assert {carrying.put(report_of(), ticket).status_code for ticket in used} == {201}
    assert [deleted(), deleted()] == [12, 0]
    assert {carrying.put(report_of(), ticket).status_code for ticket in used} == {409}
    (tenth,) = carrying.tickets(1, stratum="country")
    carrying.put(report_of(), tenth)
    assert deleted() == 10


def act(harness, change):
    """What an operator does with a study's tickets."""
    harness.write(change, "habits", "ann")
    harness.collector.current.forget("habits")


def test_page_asks_for_ticket_exactly_if_intake_requires_it(inviting, study):
    for current, change, needed in (
        (study, None, False),
        (study, partial(inviting.tickets, 1), True),
        (study, partial(act, inviting, revoke), True),
        (study, partial(act, inviting, disable), False),
        (CARRYING, partial(inviting.publish, CARRYING), True),
        (CARRYING, partial(inviting.tickets, 1, stratum="town"), True),
        (OPEN_AGAIN, partial(inviting.publish, OPEN_AGAIN), False),
    ):
        if change:
            change()
        answer = inviting.put(device_report(current, **({"region": "north"} if current is CARRYING else {})))
        assert ('id="for:answers"' in inviting.client.get("/s/habits").text) == needed
        assert (problem(answer) == REFUSED) if needed else (answer.status_code == 201)


def test_lift_is_refused_while_earlier_tickets_are_valid(carrying):
    """A device answered the previous version and uploads late."""
    (word,) = carrying.tickets(1, stratum="town")
    late = report_of()
    for study in (CARRYING, OPEN_AGAIN):
        carrying.publish(study)
        with raises(InputError, "ticket.disable_carries_values", "habits"):
            act(carrying, disable)
    assert carrying.put(device_report(OPEN_AGAIN)).status_code == 201
    assert carrying.put(late, word).status_code == 201
    for change in (revoke, disable):
        act(carrying, change)
    # The operator would take the study for one that only invited people can answer.
    with raises(InputError, "ticket.none_to_revoke"):
        act(carrying, revoke)


def test_invite_without_a_key_or_after_the_end_is_refused(make_harness, study):
    """Servers with the key would reject every report, and no operator could invite again."""

    def invite(harness):
        return harness.exit_code("invite", "habits", "--count", "1")

    keyless, harness = make_harness("keyless.sqlite3"), make_harness(ticket_key=TICKET_KEY)
    keyless.publish(study)
    assert invite(keyless) == 3
    assert keyless.put(build_report(study)).status_code == 201
    for version, days, code in ((1, 30, 3), (2, 3, 0)):
        closes = (harness.day - timedelta(days)).isoformat()
        harness.publish(build_study(version, closes=closes))
        assert invite(harness) == code
    harness.close()
    assert invite(harness) == 3


@pytest.mark.attack(12)
def test_upkeep_of_other_studies_runs_despite_a_lost_key(make_harness, inviting, study):
    """One study's ticket key is lost, and the used tickets of all other studies would stay."""
    before, other = make_harness(ticket_key="a key that is lost"), build_study(id="lost")
    before.publish(other)
    for word in before.write(make_tickets, "lost", 12, b"a key that is lost"):
        assert before.put(build_report(other), word).status_code == 201
    answered(inviting, study, 12)
    refused = inviting.upkeep()
    assert problem(refused) == (422, "statement-invalid")
    assert "study lost: setting ticket_key" in refused.get_json()["detail"]
    assert rows(inviting, "tickets") == rows(inviting, "spent") == 12
    assert inviting.exit_code("invite", "lost", "--revoke-all") == 0
    assert inviting.upkeep().status_code == 200


def test_a_ticket_lets_one_device_in(inviting, study, tmp_path, serve):
    """A used one costs nothing and can be replaced; the ledger forgets the one that was used."""
    first, second = inviting.tickets(2)
    devices = [Device(tmp_path / name, "8", serve(inviting.app), require_consent=False) for name in "ab"]
    for device, sent in zip(devices, (1, 0)):
        device.answer(study, collectors.ANSWERS, first)
        assert device.flush(attempts=1).sent == sent
    (before,) = devices[1].ledger.queued()
    devices[1].give_ticket(study.id, second)
    (after,) = devices[1].ledger.queued()
    assert after.body == before.body
    assert devices[1].flush(attempts=1).sent == 1
    assert second.encode() not in (tmp_path / "b" / "ledger.sqlite3").read_bytes()


@pytest.mark.parametrize(
    ("tickets", "given", "kept"),
    [("AB", ("B", "A"), "AB"), ("AB", ("C",), "AC"), ("AB", ("C", ""), ["", ""]), (["", "B"], ("C",), "CB")],
)
def test_new_ticket_goes_to_one_waiting_report(tmp_path, tickets, given, kept):
    """First to a report without one, and to none if a report has it already."""
    device = Device(tmp_path / "device", "8", "http://127.0.0.1:9", require_consent=False)
    for version, ticket in zip((1, 2), tickets):
        study = Study(studies.document(studies.MEMOIZED, version=version))
        device.answer(study, {study.questions[0].id: study.questions[0].choices[0]}, ticket)
    for word in given:
        device.give_ticket(study.id, word)
    assert {queued.version: queued.ticket for queued in device.ledger.queued()} == {1: kept[0], 2: kept[1]}
