"""Answers one table again from a new device in an old one's folder, as each run of a container has."""

import os
import shutil

import pytest

from ldp_client.cli import main
from ldp_client.device.ledger import Ledger
from ldp_client.files.perturbed import Mark
from tests.attacks.test_tables_perturbed_and_answered import STUDY, answer, folder, marks, perturb
from tests.ldp_client.devices import Server

__all__ = ["answer", "folder"]


def spent(device):
    return Ledger(device).spent()


def test_a_new_device_in_the_same_folder_is_another(answer, capsys):
    assert answer() == 0
    shutil.rmtree("device")
    assert answer() == 3
    assert "by the device that was then in" in capsys.readouterr().err
    assert not spent("device")
    assert len(marks()) == 1
    assert answer("--again") == 0


def test_a_device_that_moved_is_itself(folder, answer, capsys):
    assert answer() == 0
    os.rename("device", "elsewhere")
    assert answer(device="elsewhere") == 3
    assert "has answered it before" in capsys.readouterr().err
    assert str(folder / "device") in [one["reports"] for one in marks()]
    assert len(marks()) == 1


def test_a_folder_that_moved_before_its_draw_came_through_is_itself(answer, monkeypatch):
    """Killed behind the mark, it may answer from wherever it is."""
    from ldp_client.device.device import Device

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Device, "answer", killed)
        assert answer() not in (0, 3)
    os.rename("device", "elsewhere")
    assert answer(device="elsewhere") == 0


def test_what_an_older_version_marked_by_a_folder_is_anothers(folder, answer):
    """Whose it was nobody knows."""
    mark = Mark(STUDY, "north.csv", str(folder / "device"))
    mark.note(str(folder / "device"))
    assert answer() == 3


def test_who_answers_from_no_table_gets_no_id(answer):
    assert perturb() == 0
    assert answer() == 3
    assert not Ledger("device").holder()


@pytest.mark.usefixtures("folder")
def test_after_a_withdrawal_what_the_refusal_advises_works(capsys):
    with Server(STUDY.canonical()) as server:
        where = f"{server.url}/v1/studies/{STUDY.id}"
        command = ["answer", where, "--table", "north.csv", "--yes", "--folder"]
        assert main([*command, "device"]) == 0
        assert main(["withdraw", where, "--folder", "device"]) == 0
        capsys.readouterr()
        assert main([*command, "other"]) == 3
        assert "After `ldpkit withdraw` with that --folder another device" in capsys.readouterr().err
        assert main([*command, "device", "--again"]) == 3
        assert main([*command, "other", "--again"]) == 0
