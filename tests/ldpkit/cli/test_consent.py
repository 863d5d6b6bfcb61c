"""What a person is told by `ldpkit answer` before consent, and what is no consent."""

import json

import pytest

from ldp_client.device.ledger import Ledger
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.commands import check
from tests.ldp_client import devices

QUESTION = {**studies.ONE_OF, "text": "What are you?", "choices": ["a spy", "a thief"]}
WEAK = studies.with_epsilon(studies.NUMBER, "64")
# The fixture asks for the study "survey".
HOLDER = Study(studies.document(studies.TABLE, respondent="holder"))
TABLE = "t,v,pe\n10,40,480\n"
server = devices.server


@pytest.fixture
def asked(server, tmp_path, monkeypatch, capsys):
    """Return a function that answers a study and says what was shown before the question of consent."""

    def ask(study, *options, said="n", ticket=""):
        shown = []

        def typed():
            shown.append(capsys.readouterr())
            return said

        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("sys.stdin.readline", typed, raising=False)
        server.content = study.canonical()
        url = f"{server.url}/v1/studies/survey{ticket}"
        folder = str(tmp_path / "device")
        code = main(["answer", "--max-epsilon", "100", url, "--folder", folder, *options])
        return code, shown, server.asked("PUT")

    return ask


@pytest.mark.attack(8)
def test_study_terms_are_shown_before_consent_question(asked, capsys):
    """Get consent to what was not shown: another purpose, other choices, an ε that hides nothing."""
    study = Study(studies.document(QUESTION, WEAK, purpose="To sell it."))
    code, (shown,), sent = asked(study, "--set", "colour=a spy", "--set", "hours=480")
    assert (code, sent) == (3, [])
    assert "nothing was done" in capsys.readouterr().err
    for text in ("A survey", "purpose: To sell it.", "What are you?", "a spy | a thief", "from 0 to 12"):
        assert text in shown.out
    assert f"digest: {study.digest}" in shown.out
    assert "warning: hours: epsilon 64 is hardly any privacy" in shown.out
    assert "warning: hours is beyond the study's bounds" in shown.err
    assert "480" not in shown.err


@pytest.mark.attack(12)
@pytest.mark.parametrize("channel", [{}, {"channel": {"batches": {"hours": 24}}}])
def test_direct_ticket_is_described_as_joinable_before_consent(asked, channel):
    """Hand out codes by name, and learn from them whose report is whose."""
    study = Study(studies.document(studies.YES_NO, **channel))
    _, (shown,), _ = asked(study, "--set", "ever=yes", ticket="#ticket=CODE")
    assert shown.out.count("can tell whose report that is") == 1


@pytest.mark.attack(16)
def test_the_command_line_compares_digests(asked, tmp_path, capsys):
    """Show each person another document: the digest that was published elsewhere differs."""
    study = Study(studies.document(studies.YES_NO))
    assert check(tmp_path, study, "--json") == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    given = ["--yes", "--set", "ever=yes", "--digest"]
    assert asked(study, *given, "0" * 64)[0] == 3
    assert asked(study, *given, digest)[0] == 0


def test_memoized_question_notes_that_changed_answers_are_not_seen(tmp_path, capsys):
    assert check(tmp_path, studies.document(studies.MEMOIZED)) == 0
    assert "note: habit: later rounds repeat the first answer" in capsys.readouterr().err


def test_empty_setting_is_no_refusal(asked, capsys):
    study = Study(studies.document({**studies.YES_NO, "refusal": True}))
    for options in (["--set", "ever="], ["--set", "ever=yes", "--refuse", "ever"], ["--refuse", "other"]):
        code, _, sent = asked(study, "--yes", *options)
        assert code != 0
        assert not sent
    assert "offers refusal and is not answered: ever" in capsys.readouterr().err


def written(folder, text):
    (folder / "table.csv").write_text(text)
    return str(folder / "table.csv")


def test_holder_answers_by_a_table_once_and_one_report_is_sent(server, tmp_path, capsys):
    server.content = HOLDER.canonical()
    command = ["answer", "--max-epsilon", "8", f"{server.url}/v1/studies/survey", "--yes"]
    command += ["--folder", str(tmp_path / "device"), "--table", written(tmp_path, TABLE)]
    assert main(command) == 0
    assert "1 report sent" in capsys.readouterr().out
    (body,) = [body for verb, _, body, _ in server.requests if verb == "PUT"]
    assert list(json.loads(body)["payloads"]) == ["power"]
    assert main(command) == 3
    assert "has answered it before" in capsys.readouterr().err
    assert len(server.asked("PUT")) == 1


def test_faults_of_a_table_are_told_before_consent_and_a_refusal_stores_nothing(asked, tmp_path, capsys):
    clipped = written(tmp_path, TABLE + "1000,4000,48000\n" * 500)
    code, (shown,), sent = asked(HOLDER, "--table", clipped)
    assert (code, sent) == (3, [])
    assert "clipped to the study's bounds or norm: power 500 of 501" in shown.err
    assert "nothing was done" in capsys.readouterr().err
    lacking = written(tmp_path, TABLE + "10,,480\n")
    assert asked(HOLDER, "--yes", "--table", lacking, said="y") == (3, [], [])
    assert "power.v: row 2: is missing" in capsys.readouterr().err
    ledger = Ledger(str(tmp_path / "device"))
    assert (ledger.spent(), ledger.queued()) == ([], [])
    with ledger.reading() as connection:
        assert connection.execute("SELECT study FROM consents").fetchall() == []


@pytest.mark.parametrize(
    ("study", "options", "says"),
    [
        (HOLDER, [], "asks data holders: give --table"),
        (Study(studies.document(studies.YES_NO)), ["--table", "x.csv"], "asks people: give --set"),
    ],
)
def test_answer_of_another_kind_is_refused(asked, study, options, says, capsys):
    assert asked(study, "--yes", *options) == (3, [], [])
    assert says in capsys.readouterr().err
