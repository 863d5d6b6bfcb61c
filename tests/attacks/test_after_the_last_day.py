"""What was answered in time waits beyond the study's last day: it is held back, or asked for without end.

Defence: The device: says "answered before" first, and `ldpkit answer` and the guide's gateway then send it.
"""

from datetime import date, timedelta

import pytest

from ldp_client import Device
from ldp_client.cli import main
from ldp_client.device import device as devices
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError
from schemas import Study
from tests import studies
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


def test_the_gateway_of_the_guide_sends_it_and_is_done(server, gateway, too_late):
    server.statuses = [503]
    assert gateway("a", STUDY, YES) is False
    too_late()
    assert [gateway("a", STUDY, YES), gateway("a", STUDY, YES)] == [True, True]
    assert len(server.asked("PUT")) == 2


@pytest.mark.parametrize(("most", "state"), [("1.5", "open"), ("4", "closed")])
def test_the_command_sends_what_waits_whatever_keeps_it_from_answering(
    tmp_path, server, monkeypatch, most, state
):
    """Else a report of another study would wait for as long as nothing more is answered."""
    monkeypatch.setattr(Device.flush, "__defaults__", (1, False))
    command = ["--set", "ever=yes", "--yes", "--folder", str(tmp_path), "--max-epsilon", most]
    server.statuses = [200, 503]
    assert main(["answer", f"{server.url}/v1/studies/survey", *command]) == 5
    server.content = Study({**STUDY.document, "id": "second"}).canonical()
    server.headers = {"LDPKit-Study": state}
    assert main(["answer", f"{server.url}/v1/studies/second", *command]) == 3
    assert len(server.asked("PUT")) == 2
    assert consenting(tmp_path, "4", server.url).ledger.queued() == []


def test_nor_does_it_go_on_where_it_was_stopped_after_sending(tmp_path, server, gateway):
    device = consenting(tmp_path / "a", "4", server.url)
    device.answer(STUDY, YES)
    device.flush()
    assert gateway("a", STUDY, YES) is True


def test_what_was_not_answered_in_time_is_refused(tmp_path, too_late):
    too_late()
    device = consenting(tmp_path, "4")
    with pytest.raises(RefusedError, match=r"closed on .*clock says"):
        device.answer(STUDY, YES)
    assert device.epsilon_left == 4


def test_the_command_sends_what_it_told_the_person_to_send_again(tmp_path, server, too_late, monkeypatch):
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
