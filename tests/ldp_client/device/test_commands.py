"""The commands of a person's own device: `ldpkit answer`, `ldpkit withdraw`, `ldpkit budget`."""

import json
import os
import stat
from datetime import date, timedelta
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.device import outbox, sending
from ldp_client.device.arguments import folder_of
from ldp_client.device.ledger import locked
from ldp_client.device.outbox import conclude, try_now
from ldp_client.documents.errors import EXIT_NETWORK, EXIT_REFUSED, AlreadyAnsweredError, RefusedError
from ldpkit.cli import main
from ldpkit.cli.answering import default_folder
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import STUDY, YES, consenting
from tests.ldp_client.issuers import lost, study_of
from tests.portable.embedding_guide import code


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Commands and the guide's gateway try each request once."""
    monkeypatch.setattr(Device.flush, "__defaults__", (1, False))


@pytest.fixture
def answer(tmp_path, server):
    """Answer what the server has with consent, from one folder, and return the exit code."""

    def run(*more, sets=("ever=yes",), budget=("--max-epsilon", "8"), folder=tmp_path / "device"):
        study = json.loads(server.content).get("id", "survey")
        settings = [word for setting in sets for word in ("--set", setting)]
        url = f"{server.url}/v1/studies/{study}"
        return main(["answer", url, "--folder", str(folder), "--yes", *settings, *budget, *more])

    return run


def withdraw(server, folder):
    return main(["withdraw", f"{server.url}/v1/studies/survey", "--folder", str(folder)])


def uploads(server):
    return [path.rpartition("/")[2] for path in server.asked("PUT")]


@pytest.mark.attack(8)
@pytest.mark.parametrize(("typed", "sent"), [("yes", 1), ("n", 0), ("", 0), (None, 0)])
def test_the_person_is_shown_the_study_and_asked(tmp_path, server, monkeypatch, capsys, typed, sent):
    """A script answers for a person who was not asked, or said no."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: typed is not None)
    monkeypatch.setattr("sys.stdin.readline", lambda: typed, raising=False)
    url = f"{server.url}/v1/studies/survey"
    code = main(["answer", "--max-epsilon", "8", url, "--set", "ever=yes", "--folder", str(tmp_path)])
    assert (code == 0, len(uploads(server))) == (bool(sent), sent)
    assert "2.72 times" in capsys.readouterr().out


@pytest.mark.attack(7)
def test_smaller_budget_is_kept_and_no_budget_is_a_mistake(server, answer, tmp_path, capsys):
    """A person states another budget in one call. The promise of the budget raises it."""
    node = ("--max-epsilon=1", "--node", "https://a.example")
    for wrong in ((), ("--raise-budget",), ("--max-epsilon=0",), node):
        assert answer(budget=wrong) != 0
    assert not (tmp_path / "device").exists()
    assert answer(budget=("--max-epsilon", "2.5")) == 0
    server.content = Study(
        studies.document(studies.with_epsilon(studies.YES_NO, "2"), id="second")
    ).canonical()
    for budget in (("--max-epsilon", "2"), ("--max-epsilon", "2.5"), ()):
        assert answer(budget=budget) == EXIT_REFUSED
    capsys.readouterr()
    assert main(["budget", "--folder", str(tmp_path / "device")]) == 0
    assert capsys.readouterr().out.endswith("its lifetime budget: 2\n")
    assert len(uploads(server)) == 1


@pytest.mark.attack(8)
def test_answer_with_yes_option_needs_explicit_public_values(server, answer, capsys):
    """A later version asks a private question in clear, and the same command is run again."""
    turned = {"id": "ever", "choices": ["no", "yes"]}
    server.content = Study(studies.document(studies.MEMOIZED, public=[turned])).canonical()
    assert answer(sets=("habit=yes", "ever=yes")) == EXIT_REFUSED
    assert "--public ever (sent without noise)" in capsys.readouterr().err
    assert answer("--public", "habit=yes") == EXIT_REFUSED
    assert uploads(server) == []
    assert answer("--public", "ever=yes", sets=("habit=yes",)) == 0
    assert "ever: yes is sent as it is" in capsys.readouterr().err
    (body,) = [body for verb, _, body, _ in server.requests if verb == "PUT"]
    assert json.loads(body)["public"] == {"ever": "yes"}


MORE = {**studies.YES_NO, "id": "more"}
REFUSED = {
    "too dear": {"questions": [studies.with_epsilon(MORE, "30")]},
    "over": {"questions": [MORE], "closes": "2020-01-01"},
    "in clear": {"questions": [MORE], "public": [{"id": "ever", "choices": ["no", "yes"]}]},
}


@pytest.fixture
def queued(tmp_path, server):
    """The id of the report to version 1, which waits, and a refused version 2 that the server has."""

    def make(name):
        device = Device(tmp_path / "device", "8", server.url)
        device.consent(STUDY)
        server.content = Study({**STUDY.document, "version": 2, **REFUSED[name]}).canonical()
        return device.answer(STUDY, YES)

    return make


@pytest.mark.parametrize("name", REFUSED)
def test_answer_command_sends_what_waits_whatever_keeps_it_from_answering(
    server, answer, queued, capsys, name
):
    report = queued(name)
    assert answer(sets=("more=yes",)) != 0
    assert "no value or ticket given now is used" in capsys.readouterr().err
    assert uploads(server) == [report]


def gateway_of(tmp_path, server):
    """The function of the guide that answers for one of many people."""
    names = {"FOLDER": tmp_path, "COLLECTOR": server.url}
    exec(code("python", "answer_for").replace("flush()", "flush(attempts=1)"), names)
    return names["answer_for"]


LAST = date(2026, 6, 15)
CLOSING = Study(studies.document(studies.YES_NO, closes=LAST.isoformat()))


def test_report_made_in_time_is_sent_after_the_last_day(server, answer, tmp_path, monkeypatch):
    server.content, server.statuses = CLOSING.canonical(), [200, 503]
    monkeypatch.setattr(outbox, "today", lambda: LAST)
    assert answer() == EXIT_NETWORK
    gateway = gateway_of(tmp_path, server)
    server.statuses = [503]
    assert gateway("member", CLOSING, YES) is False
    monkeypatch.setattr(outbox, "today", lambda: LAST + timedelta(1))
    assert answer() == EXIT_REFUSED
    assert [gateway("member", CLOSING, YES), gateway("member", CLOSING, YES)] == [True, True]
    assert len(uploads(server)) == 4
    for folder in ("device", "member"):
        device = consenting(tmp_path / folder, "8", server.url)
        assert device.ledger.queued() == []
        with pytest.raises(AlreadyAnsweredError):
            device.answer(CLOSING, YES)
    with raises(RefusedError, "device.closed"):
        consenting(tmp_path / "late", "4").answer(CLOSING, YES)


@pytest.mark.attack(12)
@pytest.mark.parametrize("waits_with", ["CY", ""])
def test_waiting_report_keeps_its_own_ticket(tmp_path, server, issuer, capsys, monkeypatch, waits_with):
    """A person answers on another's device, and the report that waits there would get their code."""
    monkeypatch.setattr(sending, "backoff", lambda _: 0.0)
    study = study_of(issuer.url)
    server.content = study.canonical()
    device = consenting(tmp_path, "8", server.url)
    device.answer(study, YES, waits_with)
    issuer.answers = [lost]
    url = f"{server.url}/v1/studies/survey"
    command = ["answer", f"{url}#ticket=ADA", "--folder", str(tmp_path), "--set", "ever=no", "--yes"]
    assert main(command) != 0
    codes = {headers.get("ldpkit-ticket") for _, _, headers in issuer.requests}
    assert codes == ({waits_with} if waits_with else set())
    assert device.ledger.queued()[0].ticket == waits_with
    assert "no value or ticket given now is used" in capsys.readouterr().err


def test_withdraw_command_reports_errors_and_counts(server, answer, tmp_path, capsys):
    folder = tmp_path / "device"
    assert withdraw(server, folder) == EXIT_REFUSED
    assert answer() == 0
    server.statuses = [400]
    assert withdraw(server, folder) == EXIT_NETWORK
    # Another process that is sending is another reason to wait.
    with locked(str(folder), 0):
        assert withdraw(server, folder) == EXIT_NETWORK
    capsys.readouterr()
    assert withdraw(server, folder) == 0
    assert "0 reports sent, 1 deleted" in capsys.readouterr().out


@pytest.fixture
def documents(tmp_path):
    """A folder of the person's own."""
    folder = tmp_path / "Documents"
    folder.mkdir()
    (folder / "letter.txt").write_text("Dear")
    folder.chmod(0o755)
    return folder


def state(folder):
    return stat.S_IMODE(folder.stat().st_mode), sorted(os.listdir(folder))


@pytest.mark.parametrize("name", ["Documents", "none", "link"])
def test_withdraw_command_creates_nothing(server, documents, name):
    (documents.parent / "link").symlink_to(documents)
    before = state(documents), state(documents.parent)
    assert withdraw(server, documents.parent / name) == EXIT_REFUSED
    assert (state(documents), state(documents.parent)) == before


def test_answer_command_prints_that_a_device_is_new(answer, tmp_path, monkeypatch, capsys):
    """Two folders are two devices; the second does not know of the first one's answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert answer(folder="~/device") == 0
    assert f"a new device, in {tmp_path / 'home' / 'device'}: " in capsys.readouterr().err
    assert answer(folder=tmp_path / "home" / "device") == EXIT_REFUSED
    assert "new device" not in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["home"]


def test_default_folder_does_not_depend_on_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for base, expected in (("", ".local/share"), ("data", ".local/share"), (str(tmp_path / "xdg"), "xdg")):
        monkeypatch.setenv("XDG_DATA_HOME", base)
        assert folder_of(default_folder()) == str(Path(tmp_path, expected, "ldpkit"))


@pytest.mark.parametrize("home", ["home", None])
def test_commands_reject_a_relative_or_missing_home(server, tmp_path, monkeypatch, home):
    """Each working folder would have its own device, in a folder that may be called ~."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if home is None:
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    else:
        monkeypatch.setenv("HOME", home)
    url = f"{server.url}/v1/studies/survey"
    for command in (["answer", url, "--set", "ever=yes", "--yes"], ["withdraw", url], ["budget"]):
        assert main(command) == EXIT_REFUSED
    assert os.listdir(tmp_path) == []


HOST = "http://127.0.0.1:9"
FIRST = Study(studies.document(studies.NUMBER, studies.YES_NO, id="first"))
SECOND = Study(studies.document(studies.CHOICE, id="second"))


def budget(capsys, folder, *options):
    code = main(["budget", "--folder", str(folder), *options])
    return code, capsys.readouterr()


def test_budget_command_lists_studies_costs_and_report_states(tmp_path, capsys):
    device = consenting(tmp_path / "one", "8", HOST)
    told = {
        study.id: device.answer(
            study, {question.id: studies.ANSWERS[question.id] for question in study.questions}
        )
        for study in (FIRST, SECOND)
    }
    _, said = budget(capsys, tmp_path / "one")
    assert f"first, version 1, of {HOST}: epsilon 2\n  asked: ever, hours\n" in said.out
    assert said.out.count("reports: 1 waiting") == 2
    assert "epsilon spent in all: 3" in said.out
    with device.ledger.writing() as connection:
        for name, state in (("first", "sent"), ("second", "refused")):
            assert try_now(connection, told[name])
            conclude(connection, told[name], state)
    device.withdraw("first")
    _, said = budget(capsys, tmp_path / "one")
    reports = [line.strip() for line in said.out.splitlines() if "reports:" in line]
    assert reports == ["reports: 1 being deleted", "reports: 1 refused"]


def test_report_withdrawn_before_sending_stays_charged(tmp_path, capsys):
    device = consenting(tmp_path / "one", "8", HOST)
    device.answer(SECOND, {"occupation": "worker"})
    device.withdraw("second")
    _, said = budget(capsys, tmp_path / "one")
    assert "epsilon 1\n" in said.out
    assert "no report is left" in said.out


def test_folder_without_a_device_is_rejected_and_unchanged(tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "none"):
        code, said = budget(capsys, folder)
        assert code == 3
        assert "holds no device" in said.err
    assert not list(tmp_path.iterdir())
