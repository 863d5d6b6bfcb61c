"""Which answers settle a report or a withdrawal: those of the collector that published the study."""

from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime

import pytest

from ldp_client.device import verdicts
from schemas import Study
from tests import studies
from tests.ldp_client.devices import IDENTITY, STUDY, YES, consenting, problem

DATES = "http.server.BaseHTTPRequestHandler.date_time_string"


def answered(folder, server, study=STUDY):
    """A device that fetched a study and answered it, and the report's id."""
    device = consenting(folder, "4", server.url)
    server.content = study.canonical()
    device.fetch(study.id)
    return device, device.answer(study, YES)


def refuse(server, name, digest, status=410):
    kind, text = problem(name, digest)
    server.refusals, server.statuses = {status: (kind, text)}, [status]


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    "name", ["report-invalid", "report-conflict", "report-withdrawn", "study-closed", "study-unknown"]
)
@pytest.mark.parametrize("digest", ["", "ab" * 32])
def test_refusal_of_another_study_drops_no_report(tmp_path, server, name, digest):
    """A collector refuses a report in the name of another study, or of none."""
    device, _ = answered(tmp_path, server)
    refuse(server, name, digest)
    flushed = device.flush(attempts=1)
    assert (flushed.waiting, flushed.refused) == (1, [])
    assert name in flushed.reason
    assert device.flush(attempts=1).sent == 1


@pytest.mark.attack(10)
@pytest.mark.parametrize("answer", ["refusal", "receipt"])
@pytest.mark.parametrize("identity", ["", "nonsense", "f" * 32])
def test_another_collector_at_the_same_address_settles_nothing(tmp_path, server, answer, identity):
    """A collector on another database, or a portal that echoes requests, answers at the study's address."""
    device, _ = answered(tmp_path, server)
    server.identity = identity
    if answer == "refusal":
        refuse(server, "report-withdrawn", STUDY.digest)
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting, flushed.refused) == (0, 1, [])
    server.identity = IDENTITY
    assert device.flush(attempts=1).sent == 1
    device.withdraw(STUDY.id)
    server.identity = identity
    device.fetch(STUDY.id)
    assert device.flush(attempts=1).undeleted == 1
    server.identity = IDENTITY
    assert device.flush(attempts=1).deleted == 1


@pytest.mark.attack(10)
@pytest.mark.parametrize("lost", ["upload", "refusal"])
def test_second_collector_cannot_become_publisher_after_an_upload(tmp_path, server, lost):
    """The answer to an upload was lost; then another collector serves the study at that address."""
    device, _ = answered(tmp_path, server)
    server.statuses = [502]
    assert device.flush(attempts=1).waiting == 1
    if lost == "refusal":
        refuse(server, "report-withdrawn", STUDY.digest)
        assert len(device.flush(attempts=1).refused) == 1
    server.identity = "f" * 32
    device.fetch(STUDY.id)
    assert device.flush(attempts=1).sent == 0
    assert device.withdraw(STUDY.id) == 1
    assert device.flush(attempts=1).undeleted == 1
    server.identity = IDENTITY
    assert device.flush(attempts=1).deleted == 1


def test_refusal_by_the_publishing_collector_drops_the_report_and_stays_charged(tmp_path, server):
    device, report_id = answered(tmp_path, server)
    refuse(server, "report-withdrawn", STUDY.digest)
    (refused,) = device.flush(attempts=3).refused
    assert report_id in refused
    assert "report-withdrawn" in refused
    assert (device.ledger.queued(), device.epsilon_left) == ([], 3)
    assert len(server.asked("PUT")) == 1


def test_device_asks_collector_whether_it_published_an_unfetched_study(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    refuse(server, "report-withdrawn", STUDY.digest)
    server.content = b"{}"
    assert device.flush(attempts=1).waiting == 1
    server.statuses, server.content = [410], STUDY.canonical()
    assert len(device.flush(attempts=1).refused) == 1
    assert server.asked("GET") == ["/v1/studies/survey?version=1"] * 2


@pytest.mark.attack(11)
def test_collector_without_the_study_settles_no_deletion(tmp_path, server):
    """A collector that never had the report says that it is deleted; the device did not fetch the study."""
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    server.statuses = [502]
    assert device.flush(attempts=1).waiting == 1
    assert device.withdraw(STUDY.id) == 1
    server.identity, server.content = "f" * 32, b"{}"
    flushed = device.flush(attempts=1)
    assert (flushed.deleted, flushed.undeleted) == (0, 1)
    server.identity, server.content = IDENTITY, STUDY.canonical()
    assert device.flush(attempts=1).deleted == 1


@pytest.mark.attack(11)
def test_deletion_at_another_path_with_another_collector_settles_nothing(tmp_path, server):
    """One host serves a test collector next to the real one, and the device is opened at the wrong path."""
    device, _ = answered(tmp_path, server)
    assert device.flush().sent == 1
    server.identity = "b" * 32
    other = consenting(tmp_path, "4", f"{server.url}/test")
    other.withdraw(STUDY.id)
    assert [other.flush().undeleted, other.flush().undeleted] == [1, 1]


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    ("shift", "collectors_shift", "is_final"),
    [
        (30, None, False),
        (31, None, True),
        (31, 30, False),
        (20, 900, False),
        (900, 20, False),
        (31, 31, True),
    ],
)
def test_report_of_closed_study_is_dropped_after_30_days_by_both_clocks(
    tmp_path, server, monkeypatch, shift, collectors_shift, is_final
):
    """A collector closes a study by mistake, or a clock is wrong, so that reports would be dropped."""
    last = date.today()
    study = Study(studies.document(studies.YES_NO, closes=last.isoformat()))
    device, _ = answered(tmp_path, server, study)
    today = type("Today", (date,), {"today": classmethod(lambda _: last + timedelta(shift))})
    monkeypatch.setattr(verdicts, "date", today)
    noon = datetime(last.year, last.month, last.day, 12, tzinfo=UTC)
    moment = None if collectors_shift is None else noon + timedelta(collectors_shift)
    header = "never" if moment is None else format_datetime(moment, usegmt=True)
    monkeypatch.setattr(DATES, lambda *_: header)
    refuse(server, "study-closed", study.digest)
    flushed = device.flush(attempts=1)
    assert (len(flushed.refused), flushed.waiting) == (int(is_final), int(not is_final))
    if not is_final:
        assert (last + timedelta(30)).isoformat() in flushed.reason


def test_report_of_closed_study_without_last_day_is_kept(tmp_path, server):
    device, _ = answered(tmp_path, server)
    refuse(server, "study-closed", STUDY.digest)
    flushed = device.flush(attempts=1)
    assert (flushed.refused, flushed.waiting) == ([], 1)
    assert len(device.ledger.queued()) == 1
