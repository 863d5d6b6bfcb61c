"""The code in docs/embed.md does what the text around it says."""

import re

import pytest

from ldp_client import Device, Direct
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError, TransferError
from schemas import Study
from schemas.signing import new_key
from tests import studies
from tests.kit.collectors import ANSWERS, build_study
from tests.kit.errors import raises
from tests.ldp_client.devices import Server
from tests.portable.npm import REPOSITORY

STUDY = build_study()
GUIDE = (REPOSITORY / "docs" / "embed.md").read_text(encoding="utf-8")


def code(having):
    """The one Python block of the guide that contains these words."""
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", GUIDE, re.S) if having in block]
    return block


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as started:
        yield started


def test_policy_and_withdrawal_examples_work(server, tmp_path):
    names = {"FOLDER": tmp_path, "Device": Device, "PUBLIC_KEY": new_key()[1], "DIGEST": STUDY.digest}
    exec(code("signing_keys"), names)
    with raises(RefusedError, "device.not_known_signed"):
        names["device"].answer(STUDY, ANSWERS)
    names["device"] = Device(tmp_path, max_epsilon="4", collector=server.url, require_consent=False)
    names["device"].answer(STUDY, ANSWERS)
    names["device"].flush()
    names["study"] = STUDY
    exec(code("device.withdraw"), names)
    assert [len(server.asked(method)) for method in ("PUT", "DELETE")] == [1, 1]


@pytest.fixture
def gateway(tmp_path):
    names = {"FOLDER": str(tmp_path)}
    exec(code("answer_for").replace("flush()", "flush(attempts=1)"), names)
    return names


@pytest.fixture
def real():
    with Server() as started:
        yield started


@pytest.mark.attack(10)
def test_gateway_answers_the_study_of_each_collector_once(gateway, server, real):
    """A gateway takes answers to a pilot for answers to the same study at the real collector."""
    study = Study(studies.document(studies.YES_NO))
    server.content = real.content = study.canonical()

    def answer_at(server, member="ann"):
        gateway["COLLECTOR"] = server.url
        assert gateway["answer_for"](member, study, {"ever": True})
        return len(server.asked("PUT"))

    assert [answer_at(one) for one in (server, server, real, real)] == [1, 1, 1, 1]
    assert answer_at(real, "ben") == 2


def test_gateway_sends_waiting_reports_later(gateway, server, tmp_path, monkeypatch):
    def down(*_):
        raise TransferError("down")

    gateway["COLLECTOR"] = server.url
    with monkeypatch.context() as patched:
        patched.setattr(Direct, "exchange", down)
        assert gateway["answer_for"]("c", STUDY, ANSWERS) is False
    (waiting,) = Device(tmp_path / "c", max_epsilon="4").ledger.queued()
    assert gateway["answer_for"]("c", STUDY, ANSWERS) is True
    assert [waiting.report_id in path for path in server.asked("PUT")] == [True]


@pytest.mark.slow
def test_phone_example_works(server, tmp_path):
    source = code("device.fetch").replace("https://collector.example", server.url)
    names = {"FOLDER": tmp_path}
    exec(source, names)
    assert names["outcome"].sent == 1
    with pytest.raises(AlreadyAnsweredError):
        exec(source, names)
