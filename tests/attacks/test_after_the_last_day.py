"""A report made in time is still waiting after the last day: it is never sent, or is asked for endlessly.

Defence: The device: reports "answered before" first, and `ldpkit answer` and the guide's gateway then
send the waiting report.
"""

from datetime import date, timedelta

import pytest

from ldp_client import Device
from ldp_client.device import device as devices
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting
from tests.portable.embedding_guide import code

TODAY = date.today()
STUDY = Study(studies.document(studies.YES_NO, closes=(TODAY + timedelta(1)).isoformat()))
YES = {"ever": True}


class Later(date):
    @classmethod
    def today(cls):
        return TODAY + timedelta(2)


@pytest.fixture
def too_late(monkeypatch):
    return lambda: monkeypatch.setattr(devices, "date", Later)


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as server:
        yield server


@pytest.fixture
def gateway(tmp_path, server):
    names = {"FOLDER": tmp_path, "COLLECTOR": server.url}
    exec(code("python", "answer_for").replace("flush()", "flush(attempts=1)"), names)
    return names["answer_for"]


def test_gateway_sends_waiting_report_after_last_day(server, gateway, too_late):
    server.statuses = [503]
    assert gateway("a", STUDY, YES) is False
    too_late()
    assert [gateway("a", STUDY, YES), gateway("a", STUDY, YES)] == [True, True]
    assert len(server.asked("PUT")) == 2


@pytest.mark.parametrize(("most", "state"), [("1.5", "open"), ("4", "closed")])
def test_answer_command_sends_waiting_reports_even_if_it_fails(tmp_path, server, monkeypatch, most, state):
    """Otherwise a report of another study would wait until the next successful answer."""
    monkeypatch.setattr(Device.flush, "__defaults__", (1, False))
    command = ["--set", "ever=yes", "--yes", "--folder", str(tmp_path), "--max-epsilon", most]
    server.statuses = [200, 503]
    assert main(["answer", f"{server.url}/v1/studies/survey", *command]) == 5
    server.content = Study({**STUDY.document, "id": "second"}).canonical()
    server.headers = {"LDPKit-Study": state}
    assert main(["answer", f"{server.url}/v1/studies/second", *command]) == 3
    assert len(server.asked("PUT")) == 2
    assert consenting(tmp_path, "4", server.url).ledger.queued() == []


def test_gateway_reports_success_if_stopped_after_sending(tmp_path, server, gateway):
    device = consenting(tmp_path / "a", "4", server.url)
    device.answer(STUDY, YES)
    device.flush()
    assert gateway("a", STUDY, YES) is True


def test_answer_after_last_day_is_refused(tmp_path, too_late):
    too_late()
    device = consenting(tmp_path, "4")
    with raises(RefusedError, "device.closed"):
        device.answer(STUDY, YES)
    assert device.epsilon_left == 4


def test_answer_command_run_again_sends_the_waiting_report(tmp_path, server, too_late, monkeypatch):
    monkeypatch.setattr(Device.flush, "__defaults__", (1, False))
    command = [
        "answer",
        "--max-epsilon",
        "8",
        f"{server.url}/v1/studies/survey",
        "--set",
        "ever=yes",
        "--yes",
    ]
    server.statuses = [200, 503]
    assert main([*command, "--folder", str(tmp_path)]) == 5
    too_late()
    assert main([*command, "--folder", str(tmp_path)]) == 3
    assert len(server.asked("PUT")) == 2
    with pytest.raises(AlreadyAnsweredError):
        consenting(tmp_path, "4", server.url).answer(STUDY, YES)
    assert consenting(tmp_path, "4", server.url).ledger.queued() == []
