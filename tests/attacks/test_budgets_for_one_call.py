"""A device's budget for life that one call of `ldpkit answer` was given, and the next one did not know."""

from __future__ import annotations

import json

import pytest

from ldp_client.cli import main
from ldp_client.commands import life_budget
from ldp_client.device.device import Device
from ldp_client.device.ledger import Ledger
from ldp_client.device.locking import BUDGET_NAME, holds_others
from ldp_client.documents.errors import EXIT_REFUSED
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server


@pytest.fixture
def answer(tmp_path):
    """Answer a study of epsilon 1, another at each call, from one folder."""
    made = []

    def answer(*options: str) -> int:
        study = Study(studies.document(studies.YES_NO, id=f"study-{len(made)}"))
        made.append(study)
        with Server(study.canonical()) as server:
            url = f"{server.url}/v1/studies/{study.id}"
            folder = str(tmp_path / "device")
            code = main(["answer", url, "--set", "ever=yes", "--yes", "--folder", folder, *options])
            assert len(server.asked("PUT")) == (code == 0)
        return code

    return answer


def told(capsys, tmp_path):
    capsys.readouterr()
    assert main(["budget", "--folder", str(tmp_path / "device"), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_call_that_leaves_it_out_keeps_to_it(answer, tmp_path, capsys):
    assert answer("--max-epsilon", "1") == 0
    assert answer() == EXIT_REFUSED
    assert "costs epsilon 1, but 0 of this device's budget is left" in capsys.readouterr().err
    found = told(capsys, tmp_path)
    assert (found["max_epsilon"], len(found["studies"])) == ("1", 1)
    assert not holds_others(str(tmp_path / "device"))


def test_the_owner_may_raise_it_and_is_told(answer, tmp_path, capsys):
    assert answer("--max-epsilon", "1") == 0
    assert answer("--max-epsilon", "2.5") == 0
    said = "this device's budget for life was 1, and is 2.5 from now on"
    assert said in capsys.readouterr().err
    assert answer() == EXIT_REFUSED
    # Lower, and the same again, are nothing to be warned of.
    for budget in ("2", "2.0", "2.0"):
        assert answer("--max-epsilon", budget) == EXIT_REFUSED
    assert "from now on" not in capsys.readouterr().err
    assert told(capsys, tmp_path)["max_epsilon"] == "2.0"


def test_what_nobody_gave_is_kept_too(answer, tmp_path, capsys):
    assert answer() == 0
    assert told(capsys, tmp_path)["max_epsilon"] == "8"
    assert answer("--max-epsilon", "9") == 0
    assert "was 8, and is 9" in capsys.readouterr().err


def test_an_apps_device_has_the_budget_that_the_app_gives(tmp_path, capsys):
    device = Device(tmp_path / "device", "4", "https://collector.example", require_consent=False)
    device.answer(Study(studies.document(studies.YES_NO)), {"ever": True})
    assert told(capsys, tmp_path)["max_epsilon"] is None


@pytest.mark.parametrize("content", [b"", b"many", b"-1", b"0", b"\xff", b"1" * 200])
def test_a_damaged_one_is_no_budget(answer, tmp_path, capsys, content):
    assert answer("--max-epsilon", "1") == 0
    (tmp_path / "device" / BUDGET_NAME).write_bytes(content)
    assert answer() == EXIT_REFUSED
    assert f"{BUDGET_NAME} holds no budget" in capsys.readouterr().err
    assert len(told_of(tmp_path)) == 1
    # What was told does not depend on it.
    assert main(["budget", "--folder", str(tmp_path / "device")]) == EXIT_REFUSED
    said = capsys.readouterr()
    assert "study-0" in said.out
    assert "budget for life" not in said.out
    assert f"{BUDGET_NAME} holds no budget" in said.err


def test_a_lost_one_is_said(answer, tmp_path, capsys):
    assert answer("--max-epsilon", "1") == 0
    (tmp_path / "device" / BUDGET_NAME).unlink()
    capsys.readouterr()
    assert answer() == 0
    said = f"{BUDGET_NAME} is missing: this device's budget for life is 8 from now on"
    assert said in capsys.readouterr().err
    assert answer() == 0
    assert "is missing" not in capsys.readouterr().err
    (tmp_path / "device" / BUDGET_NAME).unlink()
    # Whoever states it knows it.
    assert answer("--max-epsilon", "3") == EXIT_REFUSED
    assert "is missing" not in capsys.readouterr().err
    assert told(capsys, tmp_path)["max_epsilon"] == "3"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("place", [Ledger, life_budget.keep_budget], ids=["ledger", "budget"])
def test_one_of_a_call_that_was_killed_holds(answer, monkeypatch, place):
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if place is Ledger:
            patch.setattr(Ledger, "__init__", killed)
        else:
            patch.setattr(life_budget, "keep_budget", killed)
        with pytest.raises(Killed):
            answer("--max-epsilon", "1")
    assert answer() == 0
    assert answer() == EXIT_REFUSED


def test_of_two_first_calls_at_once_the_one_that_states_it_counts(answer, tmp_path, monkeypatch):
    folder = str(tmp_path / "device")
    looked = []

    def late(path: str) -> str | None:
        """Another call states 1 just after this one saw that there is none."""
        kept = life_budget_kept(path)
        if not looked:
            looked.append(path)
            life_budget.first_budget(folder, "1")
        return kept

    life_budget_kept = life_budget.kept_budget
    monkeypatch.setattr(life_budget, "kept_budget", late)
    assert answer() == 0
    assert answer() == EXIT_REFUSED
    assert (tmp_path / "device" / BUDGET_NAME).read_text() == "1\n"


@pytest.mark.parametrize("given", ["many", "0", "-1", " 1"])
def test_what_is_no_budget_is_not_kept(answer, tmp_path, given):
    assert answer(f"--max-epsilon={given}") != 0
    assert not (tmp_path / "device").exists()


@pytest.mark.parametrize("wrong", [("--key", "none.pem"), ("--node", "https://a.example")])
def test_a_call_that_fails_at_once_keeps_nothing(answer, tmp_path, wrong):
    assert answer(*wrong) != 0
    assert not (tmp_path / "device").exists()


def test_what_a_killed_call_leaves_is_the_devices_own(answer, tmp_path):
    assert answer() == 0
    (tmp_path / "device" / ".ldpkit-0123456789abcdef").write_text("1")
    assert not holds_others(str(tmp_path / "device"))
    (tmp_path / "device" / "letter").write_text("1")
    assert holds_others(str(tmp_path / "device"))


def told_of(tmp_path):
    return Device(tmp_path / "device", "1").ledger.spent()


@pytest.mark.parametrize("what", ["folder", "loop", "dangling link"])
def test_what_is_no_file_is_no_budget(answer, tmp_path, capsys, what):
    """Nor is the default taken in its place, as where nothing is kept."""
    assert answer("--max-epsilon", "1") == 0
    path = tmp_path / "device" / BUDGET_NAME
    path.unlink()
    if what == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if what == "loop" else tmp_path / "away")
    for options in ((), ("--max-epsilon", "9")):
        assert answer(*options) == EXIT_REFUSED
        assert BUDGET_NAME in capsys.readouterr().err
    assert len(told_of(tmp_path)) == 1
