"""Draws from a holder's table by `perturb` and by `answer`, so that its records count twice and pay twice."""

import json
import os

import pytest

from ldp_client.cli import main
from ldp_client.device.device import Device
from ldp_client.documents.errors import BudgetError, LedgerError
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server

STUDY = Study(studies.document(studies.TABLE, **studies.HOLDER))
ROWS = "t,v,pe\n" + "20,50,450\n" * 30
MARK = "north.csv.perturbed"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "north.csv").write_text(ROWS)
    (tmp_path / "study.json").write_text(STUDY.to_json())
    return tmp_path


@pytest.fixture
def answer(folder):  # noqa: ARG001
    with Server(STUDY.canonical()) as server:
        where = f"{server.url}/v1/studies/{STUDY.id}"
        yield lambda *more, device="device": main(
            ["answer", where, "--folder", device, "--table", "north.csv", "--yes", *more]
        )


def perturb(*more):
    return main(["perturb", "study.json", "north.csv", "--out", "north.ndjson", *more])


def marks():
    with open(MARK, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_what_was_perturbed_is_not_answered(answer, capsys):
    assert perturb() == 0
    assert answer() == 3
    assert "was perturbed for this study on" in capsys.readouterr().err
    assert not Device("device", "4").ledger.spent()
    assert answer("--again") == 0


def test_what_was_answered_is_not_perturbed(folder, answer, capsys):
    assert answer() == 0
    (folder / "north.csv").write_text(ROWS + "21,50,450\n")
    assert perturb() == 3
    assert f"by the device that was then in {folder / 'device'}" in capsys.readouterr().err
    assert not os.path.exists("north.ndjson")
    assert perturb("--again") == 0


def test_another_device_does_not_answer_it(folder, answer, capsys):
    assert answer() == 0
    assert answer(device="other") == 3
    assert f"by the device that was then in {folder / 'device'}" in capsys.readouterr().err
    assert answer("--again", device="other") == 0


def test_the_same_device_is_asked_its_ledger(answer, capsys):
    """However often it is run, what waits is sent, and no mark is added."""
    assert answer() == 0
    before = marks()
    assert answer() == 3
    assert "has answered it before" in capsys.readouterr().err
    assert marks() == before


def test_the_mark_is_there_before_any_noise(folder, answer, monkeypatch):
    """Also after a kill the other command refuses, and the device that was killed can answer."""
    seen = []

    def killed(*_, **__):
        seen.extend(marks())
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Device, "answer", killed)
        assert answer() not in (0, 3)
    assert [one["reports"] for one in seen] == [str(folder / "device")]
    assert marks() == seen
    assert perturb() == 3
    assert answer() == 0


@pytest.mark.parametrize(("error", "stays"), [(BudgetError("no"), False), (LedgerError("full"), True)])
def test_a_refusal_leaves_no_mark(answer, monkeypatch, error, stays):
    def refuses(*_, **__):
        raise error

    monkeypatch.setattr(Device, "answer", refuses)
    assert answer() != 0
    assert os.path.exists(MARK) == stays
    assert not os.path.exists("north.csv.perturbing")


def test_a_draw_that_is_under_way_is_waited_for(folder, answer, capsys):
    (folder / "north.csv.perturbing").touch()
    assert answer() == 3
    assert "another draw from north.csv is under way" in capsys.readouterr().err
    assert not os.path.exists(MARK)


def test_the_mark_has_no_answer(answer):
    assert answer() == 0
    (entry,) = marks()
    assert set(entry) == {"asked", "device", "id", "names", "reports", "study", "version", "when"}
    assert "450" not in json.dumps({**entry, "when": "", "study": "", "asked": [], "names": []})


@pytest.mark.usefixtures("folder")
def test_people_have_nothing_to_draw_again(capsys):
    study = Study(studies.document(studies.YES_NO))
    with Server(study.canonical()) as server:
        where = f"{server.url}/v1/studies/{study.id}"
        assert main(["answer", where, "--folder", "d", "--yes", "--set", "ever=yes", "--again"]) == 3
    assert "asks people, not data holders" in capsys.readouterr().err
