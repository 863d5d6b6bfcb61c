"""What a person is told by `ldpkit answer` before consent, and what is no consent."""

import json

import pytest

from ldp_client import Device
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server

QUESTION = {**studies.ONE_OF, "text": "What are you?", "choices": ["a spy", "a thief"]}
WEAK = studies.with_epsilon(studies.NUMBER, "64")


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """Return a function that answers a study and says what was shown before the question of consent."""

    def ask(study, *options, said="n"):
        shown = []

        def typed(_):
            shown.append(capsys.readouterr())
            if not said:
                raise EOFError
            return said

        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("builtins.input", typed)
        with Server(study.canonical()) as server:
            url = f"{server.url}/v1/studies/survey"
            folder = str(tmp_path / "device")
            code = main(["answer", "--max-epsilon", "100", url, "--folder", folder, *options])
            return code, shown, server.asked("PUT")

    return ask


@pytest.mark.attack(8)
def test_study_terms_are_shown_before_consent_question(asked):
    """Get consent to what was not shown: another purpose, other choices, an ε that hides nothing."""
    study = Study(studies.document(QUESTION, WEAK, purpose="To sell it."))
    code, (shown,), sent = asked(study, "--set", "colour=a spy", "--set", "hours=480")
    assert (code, sent) == (3, [])
    for text in ("A survey", "purpose: To sell it.", "What are you?", "a spy | a thief", "from 0 to 12"):
        assert text in shown.out
    assert f"digest: {study.digest}" in shown.out
    assert "warning: hours: epsilon 64 is hardly any privacy" in shown.out
    assert "warning: hours is beyond the study's bounds" in shown.err
    assert "480" not in shown.err


def test_end_of_input_is_not_consent(asked, capsys):
    code, _, sent = asked(Study(studies.document(studies.NUMBER)), "--set", "hours=3", said="")
    assert (code, sent) == (3, [])
    assert "no consent: nothing was answered" in capsys.readouterr().err


@pytest.mark.attack(16)
def test_the_command_line_compares_digests(asked, tmp_path, capsys):
    """Show each person another document: the digest that was published elsewhere differs."""
    study = Study(studies.document(studies.YES_NO))
    (tmp_path / "study.json").write_text(study.to_json())
    assert main(["check", str(tmp_path / "study.json"), "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    given = ["--yes", "--set", "ever=yes", "--digest"]
    assert asked(study, *given, "0" * 64)[0] == 3
    assert asked(study, *given, digest)[0] == 0


def test_memoized_question_notes_that_changed_answers_are_not_seen(tmp_path, capsys):
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.MEMOIZED)))
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert "note: habit: later rounds repeat the first answer" in capsys.readouterr().err


def test_empty_setting_is_no_refusal(asked, capsys):
    study = Study(studies.document({**studies.YES_NO, "refusal": True}))
    for options in (["--set", "ever="], ["--set", "ever=yes", "--refuse", "ever"], ["--refuse", "other"]):
        code, _, sent = asked(study, "--yes", *options)
        assert code != 0
        assert not sent
    assert "must be a question that offers refusal: ever" in capsys.readouterr().err


def test_new_answer_does_not_change_a_waiting_report(tmp_path, capsys):
    """A person who moved would believe that the new region was sent."""
    study = Study(studies.document(studies.YES_NO, public=[{"id": "region", "choices": ["n", "s"]}]))
    with Server(study.canonical()) as server:
        device = Device(tmp_path, "8", server.url, require_consent=False)
        device.answer(device.fetch("survey"), {"ever": True}, public={"region": "s"})
        command = ["answer", f"{server.url}/v1/studies/survey", "--folder", str(tmp_path), "--yes"]
        main([*command, "--set", "ever=yes", "--public", "region=n"])
    assert "region: s is in the waiting report, without noise" in capsys.readouterr().err
