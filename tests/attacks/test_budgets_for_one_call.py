"""One call of `ldpkit answer` was given a device's lifetime budget, and the next call did not know it."""

from __future__ import annotations

import json
import sqlite3

import pytest

from ldp_client.device.device import Device
from ldp_client.device.layout import holds_others
from ldp_client.device.ledger import Ledger
from ldp_client.documents.errors import EXIT_REFUSED, EXIT_USAGE, LedgerError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
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


def test_first_call_must_state_the_budget(answer, tmp_path, capsys):
    assert answer() == EXIT_USAGE
    assert "--max-epsilon" in capsys.readouterr().err
    assert answer("--raise-budget") == EXIT_USAGE
    assert not (tmp_path / "device").exists()


def test_call_without_budget_uses_the_stored_budget(answer, tmp_path, capsys):
    assert answer("--max-epsilon", "1") == 0
    assert answer() == EXIT_REFUSED
    assert "costs epsilon 1, but 0 of this device's budget is left" in capsys.readouterr().err
    found = told(capsys, tmp_path)
    assert (found["max_epsilon"], len(found["studies"])) == ("1", 1)
    assert not holds_others(str(tmp_path / "device"))


def test_budget_is_raised_only_with_raise_budget_option(answer, tmp_path, capsys):
    assert answer("--max-epsilon", "1") == 0
    assert answer("--max-epsilon", "2.5") == EXIT_REFUSED
    assert "this device's lifetime budget is 1, and 2.5 is more" in capsys.readouterr().err
    assert answer("--max-epsilon", "2.5", "--raise-budget") == 0
    assert answer() == EXIT_REFUSED
    # A smaller one is kept, and nothing else raises it again.
    assert answer("--max-epsilon", "2") == EXIT_REFUSED
    assert answer("--max-epsilon", "2.5") == EXIT_REFUSED
    assert told(capsys, tmp_path)["max_epsilon"] == "2"


def test_device_of_an_app_uses_the_stored_budget(tmp_path, capsys):
    device = Device(tmp_path / "device", "1", require_consent=False)
    device.answer(Study(studies.document(studies.YES_NO)), {"ever": True})
    assert told(capsys, tmp_path)["max_epsilon"] == "1"
    assert Device(tmp_path / "device", "4").epsilon_left == 0
    assert Device(tmp_path / "device", "4", raise_budget=True).epsilon_left == 3
    assert Device(tmp_path / "device", "2").epsilon_left == 1
    assert Device(tmp_path / "device", "4").epsilon_left == 1


def test_first_of_two_concurrent_budgets_is_stored(tmp_path, monkeypatch):
    ledger, looked = Ledger(str(tmp_path / "device")), Ledger.budget

    def late(self):
        """Another call states 1 just after this one saw that there is none."""
        kept = looked(self)
        monkeypatch.setattr(Ledger, "budget", looked)
        assert self.keep_budget("1") == "1"
        return kept

    monkeypatch.setattr(Ledger, "budget", late)
    assert ledger.keep_budget("9") == "1"
    assert ledger.budget() == "1"


def test_edited_budget_is_detected(tmp_path):
    path = Device(tmp_path / "device", "1").ledger.path
    for change in ("UPDATE budget SET epsilon = '9'", "DELETE FROM budget"):
        with sqlite3.connect(path) as connection:
            connection.execute(change)
        with raises(LedgerError, "device.ledger_changed"):
            Device(tmp_path / "device", "9")


@pytest.mark.parametrize("given", ["many", "0", "-1", " 1"])
def test_invalid_budget_is_not_stored(answer, tmp_path, given):
    assert answer(f"--max-epsilon={given}") != 0
    assert not (tmp_path / "device").exists()


@pytest.mark.parametrize("wrong", [("--trusted-signer", "none.pem"), ("--node", "https://a.example")])
def test_failed_call_stores_no_budget(answer, tmp_path, wrong):
    assert answer("--max-epsilon", "1", *wrong) != 0
    assert not (tmp_path / "device").exists()
