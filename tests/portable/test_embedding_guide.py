"""The code in docs/embed.md does what the text around it says."""

from __future__ import annotations

import json

import pytest

from ldp_client import Device, Direct
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError, TransferError
from schemas import Report, Study
from schemas.signing import new_key
from tests import studies
from tests.collector.conftest import ANSWERS, build_study
from tests.kit.errors import raises
from tests.ldp_client.devices import Server
from tests.portable.embedding_guide import BOARD_LEDGER, code
from tests.portable.platforms import run_micropython

STUDY = build_study()


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as started:
        yield started


def test_policy_and_withdrawal_examples_work(server, tmp_path):
    names = {"FOLDER": tmp_path, "Device": Device, "PUBLIC_KEY": new_key()[1], "DIGEST": STUDY.digest}
    exec(code("python", "signing_keys"), names)
    with raises(RefusedError, "device.not_known_signed"):
        names["device"].answer(STUDY, ANSWERS)
    names["device"] = Device(tmp_path, max_epsilon="4", collector=server.url, require_consent=False)
    names["device"].answer(STUDY, ANSWERS)
    names["device"].flush()
    names["study"] = STUDY
    exec(code("python", "device.withdraw"), names)
    assert [len(server.asked(method)) for method in ("PUT", "DELETE")] == [1, 1]


@pytest.fixture
def gateway(tmp_path):
    """The names of the gateway's example."""
    names = {"FOLDER": str(tmp_path)}
    exec(code("python", "answer_for").replace("flush()", "flush(attempts=1)"), names)
    return names


@pytest.mark.attack(10)
def test_gateway_answers_the_study_of_each_collector_once(gateway):
    """A gateway takes answers to a pilot for answers to the same study at the real collector."""
    study = Study(studies.document(studies.YES_NO))

    def answer_at(server, member="ann"):
        gateway["COLLECTOR"] = server.url
        assert gateway["answer_for"](member, study, {"ever": True})
        return len(server.asked("PUT"))

    with Server(study.canonical()) as pilot, Server(study.canonical()) as real:
        assert [answer_at(server) for server in (pilot, pilot, real, real)] == [1, 1, 1, 1]
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


BOARD_CHECK = """
import json
from ldp_client.documents.study import Study

study = Study.from_json(open(PLACE + "study.json").read())
answers = json.loads(open(PLACE + "answers.json").read())
stream = [7]

def random(size):
    stream[0] += 1
    return bytes([(stream[0] * 101 + place * 17) % 256 for place in range(size)])

dated = Study(dict(study.document, id="dated", opens="2026-06-15", closes="2026-06-20"))
dear = json.loads(json.dumps(dict(study.document, id="dear")))
dear["questions"][0]["mechanism"]["epsilon"] = "1.5"

def refusal(which, *today):
    before = os.listdir()
    try:
        answer_once(which, answers, random, *today)
    except RuntimeError as error:
        assert os.listdir() == before
        return str(error)

print([refusal(dated, *today) for today in ((), ("2026-06-14",), ("2026-06-21",))])
answer_once(study, answers, random)
print(refusal(study))
print(json.dumps(read_ledger()))
print(refusal(Study(dear)))
LEDGER = "other.json"
print([refusal(dated, "2026-06-15"), LEDGER in os.listdir()])
with open(LEDGER, "w") as file:
    file.write("{")
try:
    answer_once(study, answers, random)
except ValueError:
    print("damaged")
"""


@pytest.mark.slow
def test_board_ledger_example_works(tmp_path):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS))
    source = f"PLACE = '/data/'\n{BOARD_LEDGER}{BOARD_CHECK}"
    closed, refused, ledger, dear, opened, damaged = run_micropython(tmp_path, source).splitlines()
    assert closed == str(["not open today, or the day is not known"] * 3)
    assert (refused, dear, damaged) == ("answered before", "above the budget", "damaged")
    assert opened == "[None, True]"
    kept = json.loads(ledger)
    assert (kept["epsilon"], kept["spent"]) == (
        [3, 1],
        ["habits/hours", "habits/fruit", "habits/ever"],
    )
    (body,) = kept["outbox"]
    assert Report.from_json(body).digest == STUDY.digest


@pytest.mark.slow
def test_phone_example_works(server, tmp_path):
    source = code("python", "device.fetch").replace("https://collector.example", server.url)
    names = {"FOLDER": tmp_path}
    exec(source, names)
    assert names["outcome"].sent == 1
    with pytest.raises(AlreadyAnsweredError):
        exec(source, names)
