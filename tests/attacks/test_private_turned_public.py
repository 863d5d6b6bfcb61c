"""Have a private answer sent in clear: a later version asks the same question as a public field.

Defence: The device refuses a public field with the id of a question that the same study asked with noise, in
Python, JavaScript and the guide's MicroPython ledger. Without consent on the device, only values that are
given explicitly as public leave it. `ldpkit check` warns of texts that are asked both ways. Known limits: a
new id for the same words is a new field, which the person sees before consent; `ldpkit perturb` keeps no
ledger, and names what leaves.
"""

import json

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AnswerError, RefusedError
from ldpkit.cli import main
from schemas import Study
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server
from tests.portable.embedding_guide import BOARD_LEDGER
from tests.portable.platforms import run_micropython

EVER = {**studies.YES_NO, "text": "Have you ever had an affair?"}
PILL = {**studies.YES_NO, "id": "asa", "text": "Aspirin"}
LIST = {"title": "Which of these do you take?", "questions": ["asa"], "any_of": True}
TEA = {**studies.YES_NO, "id": "tea", "text": "Do you like tea?"}
RECORD = {
    **studies.LINEAR,
    "response": {**studies.LINEAR["response"], "text": "How happy are you?"},
    "mechanism": {**studies.GAUSSIAN, "delta": "1e-7"},
}
NO_OR_YES = {"choices": ["no", "yes"]}
ANSWERS = {
    "habit": "yes",
    "ever": "yes",
    "asa": "no",
    "debts": "no",
    "rating": {"age": 30, "years": 4, "rate": 4},
}
# It has no words: people read its id, under a title that asks.
WORDLESS = {**studies.YES_NO, "id": "debts"}
SECTIONS = [
    {"title": "Life", "questions": ["habit", "ever", "rating"]},
    LIST,
    {"title": "Do you owe money?", "questions": ["debts"]},
]
FIRST = Study(studies.document(studies.MEMOIZED, EVER, RECORD, PILL, WORDLESS, sections=SECTIONS))
TURNED = {"id": "ever", "text": "Since when?", **NO_OR_YES}
ALIKE = {
    "its text": {"id": "other", "text": "have you ever  had an AFFAIR", **NO_OR_YES},
    "the title of a list": {"id": "pills", "text": "Which of these do you take", **NO_OR_YES},
    "an id as a text": {"id": "owed", "text": "Debts?", **NO_OR_YES},
}


def in_clear(device):
    return [json.loads(item.body).get("public") for item in device.ledger.queued()]


def turned(field, version=2):
    return Study(studies.document(studies.MEMOIZED, public=[field], version=version))


def test_later_version_cannot_make_private_question_public(tmp_path):
    """Explicit public values are refused too: the owner may not know what an earlier version protected."""
    device = Device(tmp_path, max_epsilon="8", max_delta="1e-5", require_consent=False)
    device.answer(FIRST, ANSWERS)
    left = device.epsilon_left
    with raises(RefusedError, "device.asked_behind_noise"):
        device.answer(turned(TURNED), {"habit": "yes"}, public={"ever": "yes"})
    assert in_clear(device) == [None]
    assert device.epsilon_left == left


def test_unattended_device_needs_explicit_public_values(tmp_path):
    """A gateway's dict of answers stays the same when a study is replaced."""
    gateway = Device(tmp_path / "gateway", max_epsilon="2", require_consent=False)
    study = turned(TURNED, version=1)
    with raises(RefusedError, "device.clear_unnamed", "ever"):
        gateway.answer(study, {"habit": "yes", "ever": "yes"})
    assert not gateway.ledger.spent()
    for wrong, code, field in (
        ({"habit": "yes"}, "core.not_public", "habit"),
        ("yes", "core.answers", "public"),
    ):
        with raises(AnswerError, code, field=field):
            gateway.answer(study, {"habit": "yes"}, public=wrong)
    with raises(AnswerError, "device.given_twice"):
        gateway.answer(study, {"habit": "yes", "ever": "yes"}, public={"ever": "yes"})
    gateway.answer(study, {"habit": "yes"}, public={"ever": "yes"})
    assert in_clear(gateway) == [{"ever": "yes"}]


def test_public_field_stays_public_in_later_version(tmp_path):
    device = Device(tmp_path, max_epsilon="2", require_consent=False)
    for version in (1, 2):
        study = turned({"id": "region", "text": "Where?", "choices": ["n", "s"]}, version)
        device.answer(study, {"habit": "yes"}, public={"region": "n"})
    assert in_clear(device) == [{"region": "n"}] * 2


def test_answer_with_yes_option_needs_explicit_public_values(tmp_path, capsys):
    study = turned(TURNED)
    with Server(study.canonical()) as server:
        command = [
            "answer",
            "--max-epsilon",
            "8",
            f"{server.url}/v1/studies/survey",
            "--folder",
            str(tmp_path),
            "--yes",
        ]
        assert main([*command, "--set", "habit=yes", "--set", "ever=yes"]) == 3
        assert "If that is meant, pass --public ever=VALUE" in capsys.readouterr().err
        assert main([*command, "--set", "ever=yes", "--public", "habit=yes"]) == 3
        assert not [verb for verb, *_ in server.requests if verb == "PUT"]
        assert main([*command, "--set", "habit=yes", "--public", "ever=yes"]) == 0
        (sent,) = [body for verb, _, body, _ in server.requests if verb == "PUT"]
    assert json.loads(sent)["public"] == {"ever": "yes"}


def test_perturb_prints_public_fields(tmp_path, capsys):
    (tmp_path / "study.json").write_text(Study(studies.document(TEA, public=[TURNED])).to_json())
    (tmp_path / "answers.csv").write_text("tea,ever\nyes,no\n")
    arguments = [str(tmp_path / name) for name in ("study.json", "answers.csv", "reports")]
    assert main(["perturb", *arguments[:2], "--out", arguments[2]]) == 0
    assert "SENT AS IT IS, without noise: ever\n" in capsys.readouterr().err


def test_study_with_same_text_public_and_private_warns():
    """A person who answers both reveals what the noise of one of them hides."""
    both = Study(studies.document(EVER, public=[ALIKE["its text"]]))
    (line,) = warnings_of(both)
    assert "other" in line
    assert "ever" in line
    field = ALIKE["the title of a list"]
    (line,) = warnings_of(Study(studies.document(PILL, sections=[LIST], public=[field])))
    assert "pills" in line
    (line,) = warnings_of(Study(studies.document(WORDLESS, public=[ALIKE["an id as a text"]])))
    assert "owed" in line
    assert not warnings_of(Study(studies.document(EVER, public=[{"id": "region", **NO_OR_YES}])))


BOARD = """
import json
from ldp_client.documents.study import Study

first, turned = json.loads(open(PLACE + "studies.json").read())
stream = [7]

def random(size):
    stream[0] += 1
    return bytes([(stream[0] * 101 + place * 17) % 256 for place in range(size)])

def outcome(study, answers, public=None):
    try:
        return answer_once(Study(study), answers, random, public=public).public
    except RuntimeError as error:
        return str(error)

fruit, field = {"tea": "no"}, {"ever": "yes"}
print([outcome(turned[0], dict(fruit, ever="yes")), outcome(turned[0], dict(fruit), dict(field, tea="no"))])
print(outcome(turned[0], fruit, field))
LEDGER = "other.json"
print(outcome(first, {"ever": "yes"}))
print(outcome(turned[0], fruit, field))
print(len(read_ledger()["outbox"]))
"""


@pytest.mark.parametrize("platform", ["this Python", "MicroPython"])
def test_board_sends_no_private_or_implicit_value_in_clear(tmp_path, platform, monkeypatch, capsys):
    first, later = studies.document(EVER), studies.document(TEA, public=[TURNED], version=2)
    (tmp_path / "studies.json").write_text(json.dumps([first, [later]]))
    source = BOARD_LEDGER + BOARD
    if platform == "MicroPython":
        told = run_micropython(tmp_path, f"PLACE = '/data/'\n{source}")
    else:
        monkeypatch.chdir(tmp_path)
        exec(f"PLACE = ''\n{source}", {})
        told = capsys.readouterr().out
    unmeant, meant, asked, refused, count = told.splitlines()
    assert unmeant == str(["public values, and nothing else, are given as public"] * 2)
    assert meant == str({"ever": "yes"})
    assert asked == "{}"
    assert refused == "would leave in clear, and was behind noise before"
    assert count == "1"
