"""A device's folder is mistyped: another folder loses its mode, gets a ledger, or is called a device's.

Defence: The device: leaves the mode of a folder that holds other files, and warns where others can read it;
`ldpkit answer` starts nothing there, `ldpkit withdraw` makes nothing; it says when a device is a new one;
`~` is the home folder for it and for `Device`, and an open device stays where it is. Known limit: a new or
empty folder is a new device and knows of no other's answers, as is a relative one in each working folder.
"""

import os
import stat
from pathlib import Path

import pytest

from ldp_client.documents.errors import AlreadyAnsweredError, InputError, LedgerError
from ldpkit.cli import main
from ldpkit.cli.device import default_folder, expanded_folder
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

STUDY = Study(studies.document(studies.YES_NO))


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


def test_answer_command_refuses_folder_with_other_files(documents, capsys):
    before = state(documents)
    with Server(STUDY.canonical()) as server:
        command = [
            "answer",
            "--max-epsilon",
            "8",
            f"{server.url}/v1/studies/survey",
            "--set",
            "ever=yes",
            "--yes",
        ]
        assert main([*command, "--folder", str(documents)]) == 3
        assert server.requests == []
        assert "holds other files and no device" in capsys.readouterr().err
        assert state(documents) == before
        # One that was a device's before it held anything else goes on.
        assert main([*command, "--folder", str(documents / "device")]) == 0
        (documents / "device" / "letter.txt").write_text("Dear")
        withdraw = ["withdraw", f"{server.url}/v1/studies/survey", "--folder", str(documents / "device")]
        assert main(withdraw) == 0


@pytest.mark.parametrize("name", ["Documents", "none", "Documents/letter.txt", "link"])
def test_withdraw_command_creates_nothing(documents, name, capsys):
    (documents.parent / "link").symlink_to(documents)
    before = state(documents), state(documents.parent)
    url = "https://collector.example/v1/studies/survey"
    assert main(["withdraw", url, "--folder", str(documents.parent / name)]) == 3
    assert "has not answered study survey of this collector" in capsys.readouterr().err
    assert (state(documents), state(documents.parent)) == before


def test_withdraw_command_reports_lost_ledger(tmp_path, capsys):
    consenting(tmp_path, "4").answer(STUDY, {"ever": True})
    (tmp_path / "ledger.sqlite3").unlink()
    assert main(["withdraw", "https://a.example/v1/studies/survey", "--folder", str(tmp_path)]) == 1
    assert "is gone" in capsys.readouterr().err
    with raises(LedgerError, "device.ledger_gone"):
        consenting(tmp_path, "4")


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_device_in_shared_folder_keeps_folder_mode(documents, caplog):
    consenting(documents, "4").answer(STUDY, {"ever": True})
    assert state(documents) == (0o755, ["ledger.sqlite3", "letter.txt", "lock.sqlite3"])
    assert "and still can. Give the device its own folder" in caplog.text
    for name in ("ledger.sqlite3", "lock.sqlite3"):
        assert stat.S_IMODE((documents / name).stat().st_mode) == 0o600


def test_answer_command_prints_that_device_is_new(tmp_path, monkeypatch, capsys):
    """Two folders are two devices; the second does not know of the first one's answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with Server(STUDY.canonical()) as server:
        command = [
            "answer",
            "--max-epsilon",
            "8",
            f"{server.url}/v1/studies/survey",
            "--set",
            "ever=yes",
            "--yes",
        ]
        assert main([*command, "--folder=~/device"]) == 0
        assert f"a new device, in {tmp_path / 'home' / 'device'}: " in capsys.readouterr().err
        assert main([*command, "--folder", str(tmp_path / "home" / "device")]) == 3
        assert "new device" not in capsys.readouterr().err
        assert os.listdir(tmp_path) == ["home"]


def test_default_folder_does_not_depend_on_working_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for base, expected in (("", ".local/share"), ("data", ".local/share"), (str(tmp_path / "xdg"), "xdg")):
        monkeypatch.setenv("XDG_DATA_HOME", base)
        assert expanded_folder(default_folder()) == str(tmp_path / expected / "ldpkit")


@pytest.mark.parametrize("given", ["~/device", Path("~") / "device"])
def test_service_started_in_other_folder_is_same_device(tmp_path, monkeypatch, given):
    """Each working folder used to have its own device, in a folder called ~."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for start in ("desk", "cron"):
        (tmp_path / start).mkdir()
        monkeypatch.chdir(tmp_path / start)
    consenting(given, "4").answer(STUDY, {"ever": True})
    monkeypatch.chdir(tmp_path / "desk")
    with pytest.raises(AlreadyAnsweredError):
        consenting(given, "4").answer(STUDY, {"ever": True})
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["device"]


@pytest.mark.parametrize("home", [".", "home", ""])
def test_missing_home_rejects_home_folder(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home)
    for folder in ("~/device", "~", "~nobody-of-this-name/device"):
        with raises(InputError, "device.no_home"):
            consenting(folder, "4")
    assert os.listdir(tmp_path) == []


def test_open_device_ignores_change_of_working_folder(tmp_path, monkeypatch):
    """A daemon changes to / after its start."""
    monkeypatch.chdir(tmp_path)
    device = consenting("device", "4")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    device.answer(STUDY, {"ever": True})
    assert len(device.ledger.queued()) == 1
    assert os.listdir() == []


@pytest.mark.parametrize("home", [".", "home", "", None])
@pytest.mark.parametrize("folder", [[], ["--folder=~/device"], ["--folder=~nobody-of-this-name/device"]])
def test_commands_reject_relative_or_missing_home(tmp_path, monkeypatch, capsys, home, folder):
    """Each working folder would have its own device, in a folder that may be called ~."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if home is None:
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    else:
        monkeypatch.setenv("HOME", home)
    with Server(STUDY.canonical()) as server:
        url = f"{server.url}/v1/studies/survey"
        for command in (
            ["answer", "--max-epsilon", "8", url, "--set", "ever=yes", "--yes"],
            ["withdraw", url],
            ["budget"],
        ):
            with pytest.raises(SystemExit, match="2"):
                main([*command, *folder])
            assert "in no home folder" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_folder_without_tilde_is_not_expanded():
    assert expanded_folder("device") == "device"


@pytest.mark.parametrize("attempts", [0, -1, "2", None])
def test_flush_without_attempts_is_rejected(tmp_path, attempts):
    with raises(InputError, "device.attempts"):
        consenting(tmp_path, "4", "https://a.example").flush(attempts)
