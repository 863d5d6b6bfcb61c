"""The commands of a person's own device: `ldpkit answer`, `ldpkit withdraw`, `ldpkit budget`."""

import json
import os
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.device import sending
from ldp_client.device.arguments import folder_of
from ldp_client.device.ledger import locked
from ldp_client.device.outbox import conclude, try_now
from ldp_client.documents.errors import EXIT_NETWORK, EXIT_REFUSED
from ldpkit.cli import main
from ldpkit.cli.answering import default_folder
from schemas import Study
from tests import studies
from tests.ldp_client.devices import STUDY, YES, consenting
from tests.ldp_client.issuers import lost, study_of


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
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


def test_stated_budget_is_needed_and_wrong_options_make_no_device(answer, tmp_path):
    node = ("--max-epsilon=1", "--node", "https://a.example")
    for wrong in ((), ("--raise-budget",), ("--max-epsilon=0",), node):
        assert answer(budget=wrong) != 0
    assert not (tmp_path / "device").exists()


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


@pytest.mark.parametrize(
    "fields",
    [
        {"questions": [studies.with_epsilon(MORE, "30")]},
        {"questions": [MORE], "closes": "2020-01-01"},
        {"questions": [MORE], "public": [{"id": "ever", "choices": ["no", "yes"]}]},
    ],
    ids=["too dear", "over", "in clear"],
)
def test_answer_command_sends_what_waits_even_if_it_cannot_answer(server, answer, tmp_path, capsys, fields):
    device = Device(tmp_path / "device", "8", server.url)
    device.consent(STUDY)
    report = device.answer(STUDY, YES)
    server.content = Study({**STUDY.document, "version": 2, **fields}).canonical()
    assert answer(sets=("more=yes",)) != 0
    assert "no value or ticket given now is used" in capsys.readouterr().err
    assert uploads(server) == [report]


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
    folder = str(tmp_path / "device")
    withdraw = ["withdraw", f"{server.url}/v1/studies/survey", "--folder", folder]
    assert answer() == 0
    server.statuses = [400]
    assert main(withdraw) == EXIT_NETWORK
    # Another process that is sending is another reason to wait.
    with locked(folder, 0):
        assert main(withdraw) == EXIT_NETWORK
    capsys.readouterr()
    assert main(withdraw) == 0
    assert "0 reports sent, 1 deleted" in capsys.readouterr().out


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


@pytest.mark.parametrize("command", ["withdraw", "budget"])
@pytest.mark.parametrize("name", ["Documents", "none", "link"])
def test_folder_without_a_device_is_refused_and_unchanged(server, tmp_path, command, name):
    documents = tmp_path / "Documents"
    documents.mkdir(0o755)
    (documents / "letter.txt").write_text("Dear")
    (tmp_path / "link").symlink_to(documents)
    study = [f"{server.url}/v1/studies/survey"] if command == "withdraw" else []
    assert main([command, *study, "--folder", str(tmp_path / name)]) == EXIT_REFUSED
    assert documents.stat().st_mode & 0o777 == 0o755
    assert os.listdir(documents) == ["letter.txt"]
    assert sorted(os.listdir(tmp_path)) == ["Documents", "link"]


def test_budget_command_lists_studies_costs_and_report_states(tmp_path, capsys):
    host, folder = "http://127.0.0.1:9", str(tmp_path / "one")
    device, reports = consenting(folder, "8", host), {}
    for name, questions in (("first", (studies.NUMBER, studies.YES_NO)), ("second", (studies.CHOICE,))):
        answers = {question["id"]: studies.ANSWERS[question["id"]] for question in questions}
        reports[name] = device.answer(Study(studies.document(*questions, id=name)), answers)

    def shown():
        assert main(["budget", "--folder", folder]) == 0
        return capsys.readouterr().out

    said = shown()
    assert f"first, version 1, of {host}: epsilon 2\n  asked: ever, hours\n" in said
    assert said.count("reports: 1 waiting") == 2
    assert "epsilon spent in all: 3" in said
    with device.ledger.writing() as connection:
        assert try_now(connection, reports["first"])
        conclude(connection, reports["first"], "sent")
    for name in reports:
        device.withdraw(name)
    said = shown()
    assert "reports: 1 being deleted" in said
    # What was never sent stays charged too.
    assert "epsilon 1\n" in said
    assert "no report is left" in said
