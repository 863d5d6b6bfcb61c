"""`ldpkit budget`: what a device has told, to whom, and what it cost."""

from ldp_client import Device
from ldp_client.device.outbox import conclude, try_now
from ldpkit.cli import main
from schemas import Study
from tests import studies

HOST = "http://127.0.0.1:9"
FIRST = Study(studies.document(studies.NUMBER, studies.YES_NO, id="first"))
SECOND = Study(studies.document(studies.CHOICE, id="second"))


def budget(capsys, folder, *options):
    code = main(["budget", "--folder", str(folder), *options])
    return code, capsys.readouterr()


def test_budget_command_lists_studies_costs_and_report_states(tmp_path, capsys):
    device = Device(tmp_path / "one", "8", HOST, require_consent=False)
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
    device = Device(tmp_path / "one", "8", HOST, require_consent=False)
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
