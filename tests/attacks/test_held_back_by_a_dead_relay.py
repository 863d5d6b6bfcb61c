"""A relay that never returns keeps a device from fetching from its collector, or is mistaken for it."""

import random

import pytest

from ldp_client.cli import main
from ldp_client.device import beside, clock, held_back, sending
from ldp_client.device.exchange import exchange
from ldp_client.device.held_back import DAY, MOST_DAYS, holds_fetches
from ldp_client.device.ledger import Ledger
from ldp_client.device.pacing import note_visit
from ldp_client.device.relayed import Relayed
from ldp_client.documents.errors import TransferError
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting
from tests.oblivious.conftest import keys, relayed_study
from tests.oblivious.test_device import Relay

__all__ = ["keys"]
YES = {"ever": True}
HOUR = 3600
START = 21_000 * DAY
PLAIN = Study({**studies.document(studies.YES_NO), "id": "plain"})
# No server listens there.
GONE = "http://127.0.0.1:9/ldpkit"


@pytest.fixture
def collector():
    with Server() as collector:
        yield collector


@pytest.fixture
def relay():
    with Relay() as relay:
        yield relay


@pytest.fixture
def at(monkeypatch):
    def move(moment):
        monkeypatch.setattr(clock, "now", lambda: float(moment))

    monkeypatch.setattr(sending, "backoff", lambda _: 0.0)
    draws = random.Random(27)
    monkeypatch.setattr(beside, "CHANCE", draws)
    monkeypatch.setattr(held_back, "CHANCE", draws)
    move(START)
    return move


def waiting(folder, collector, study):
    """A device that answered a plain study, and one whose report is to leave through a relay."""
    device = consenting(folder, "9", collector.url)
    device.answer(PLAIN, YES)
    device.flush(1)
    device.answer(study, YES)
    collector.content = PLAIN.to_json().encode()
    collector.requests.clear()
    return device


def fetched(collector, folder):
    """Whether the command for the study without a relay fetches it again."""
    before = str(collector.requests).count("GET")
    url = f"{collector.url}/v1/studies/plain"
    assert main(["answer", url, "--set", "ever=yes", "--yes", "--folder", str(folder)]) != 0
    return str(collector.requests).count("GET") > before


def always_holds(device, collector):
    """Chance takes turns, where it may."""
    return all(holds_fetches(device.ledger, collector.url) for _ in range(64))


def daily(days, collector, relay, folder, at, start=START):
    """On which days the study was read, and on which the relay was tried."""
    read, tried = [], []
    for day in days:
        before = len(relay.requests)
        at(start + day * DAY + HOUR)
        read += [day] if fetched(collector, folder) else []
        tried += [day] if len(relay.requests) > before else []
    return read, tried


@pytest.mark.slow
@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_daily_command_fetches_its_study_after_a_month(tmp_path, collector, relay, keys, at, is_withdrawn):
    folder = tmp_path / "device"
    study = relayed_study(relay.url, keys)
    device = waiting(folder, collector, study)
    if is_withdrawn:
        daily(range(4), collector, relay, folder, at)
        device.withdraw(study.id)
    read, tried = daily([4, 5, *range(28, 70)], collector, relay, folder, at)
    assert min(read) >= MOST_DAYS
    # Both continue: the relay may come back.
    assert len(read) > 5
    assert len([day for day in tried if day > MOST_DAYS]) > 5
    # Never both: the report may have arrived.
    assert not {*read} & {*tried}


def test_nothing_is_fetched_in_the_hour_after_a_relay_attempt(tmp_path, collector, relay, keys, at):
    folder = tmp_path / "device"
    device = waiting(folder, collector, relayed_study(relay.url, keys))
    daily([0, 1, 2], collector, relay, folder, at)
    day = next(day for day in range(33, 99) if daily([day], collector, relay, folder, at)[1])
    moment = START + day * DAY + HOUR
    at(moment + HOUR - 1)
    assert always_holds(device, collector)
    at(moment + 2 * HOUR)
    assert not always_holds(device, collector)


@pytest.fixture
def behind(monkeypatch, relay):
    """The collector of what the relay takes, as that one sees it; any other relay is gone."""
    with Server() as behind:
        behind.serves = True

        def arrive(through, request, _most=0):
            if through._relay != relay.url:
                raise TransferError("gone")
            request.full_url = behind.url + request.selector
            return exchange(request)

        monkeypatch.setattr(Relayed, "exchange", arrive)
        yield behind


@pytest.mark.slow
@pytest.mark.parametrize("has_other", [True, False])
def test_nothing_is_fetched_in_the_hour_after_a_relayed_report(
    tmp_path, collector, relay, behind, keys, at, has_other
):
    """Also while another report waits for a relay that has long been gone."""
    folder = tmp_path / "device"
    device = waiting(folder, collector, relayed_study(relay.url, keys))
    if has_other:
        gone = {**relayed_study(GONE, keys).document, "id": "gone"}
        at(START - 50 * DAY)
        device.answer(Study(gone), YES)
        for day in range(-49, 0):
            at(START + day * DAY)
            device.flush(1)
    for moment in range(START + DAY, START + 20 * DAY, DAY):
        at(moment)
        device.flush(1)
        if behind.asked("PUT"):
            break
    # As the command does that runs next.
    at(moment + 60)
    device.flush(1)
    assert not fetched(collector, folder)
    at(moment + HOUR - 1)
    assert always_holds(device, collector)
    at(moment + 2 * HOUR)
    assert not always_holds(device, collector)


@pytest.mark.slow
def test_pending_deletion_blocks_fetching_as_long_as_a_report(tmp_path, collector, relay, keys, at):
    study = relayed_study(relay.url, keys)
    device = waiting(tmp_path / "device", collector, study)
    for day in range(40):
        at(START + day * DAY)
        device.flush(1)
    at(START + 40 * DAY)
    assert not always_holds(device, collector)
    device.withdraw(study.id)
    for day in (40, 41, 42, 43):
        at(START + day * DAY)
        device.flush(1)
    at(START + (MOST_DAYS + 40) * DAY)
    assert always_holds(device, collector)
    at(START + (MOST_DAYS + 44) * DAY)
    assert not always_holds(device, collector)


def test_number_of_ledger_writes_does_not_grow_with_the_queue(
    tmp_path, collector, relay, keys, at, monkeypatch
):
    written, genuine = [], Ledger.writing

    def writing(ledger):
        written[-1] += 1
        return genuine(ledger)

    document = relayed_study(relay.url, keys).document
    for number in (1, 6):
        at(START)
        device = consenting(tmp_path / str(number), "9", collector.url)
        for place in range(number):
            device.answer(Study({**document, "id": f"study-{place}"}), YES)
        at(max(report.due for report in device.ledger.queued()))
        with device.ledger.writing() as connection:
            # All of them are held back.
            note_visit(connection)
        written.append(0)
        with monkeypatch.context() as context:
            context.setattr(Ledger, "writing", writing)
            device.flush(1)
        with device.ledger.reading() as connection:
            assert connection.execute("SELECT COUNT(*) FROM due_since").fetchone() == (number,)
    assert written[0] == written[1]


def test_clock_moved_back_does_not_block_fetching_longer(tmp_path, collector, relay, keys, at):
    folder = tmp_path / "device"
    device = waiting(folder, collector, relayed_study(relay.url, keys))
    daily([0, 1, 2, 40, 41, 42], collector, relay, folder, at)
    at(START - 1000 * DAY)
    assert holds_fetches(device.ledger, collector.url)
    at(START + 200 * DAY)
    assert not always_holds(device, collector)


def test_due_day_is_deleted_once_report_is_sent(tmp_path, collector, relay, keys, at):
    folder = tmp_path / "device"
    device = waiting(folder, collector, relayed_study(relay.url, keys))
    daily(range(5), collector, relay, folder, at)
    with device.ledger.writing() as connection:
        assert connection.execute("SELECT COUNT(*) FROM due_since").fetchone() == (1,)
        connection.execute("UPDATE reports SET state = 'sent'")
    device.flush(1)
    with device.ledger.reading() as connection:
        assert connection.execute("SELECT COUNT(*) FROM due_since").fetchone() == (0,)


def test_refusal_states_after_how_many_days_it_ends(tmp_path, collector, relay, keys, at, capsys):
    at(START + HOUR)
    folder = tmp_path / "device"
    waiting(folder, collector, relayed_study(relay.url, keys))
    assert not fetched(collector, folder)
    assert f"due for {MOST_DAYS} days" in capsys.readouterr().err


def test_unreachable_relay_is_named_in_the_reason(tmp_path, collector, keys, at):
    device = waiting(tmp_path / "device", collector, relayed_study(GONE, keys))
    at(device.ledger.queued()[0].due + 3 * HOUR)
    assert f"nothing came through its relay {GONE} (" in device.flush(1).reason
