"""The files of a device are its owner's alone, and other folders stay as they are."""

import os
import stat

import pytest

from ldp_client.device.layout import LEDGER_NAME, LOCK_NAME, holds_device, holds_others
from tests.ldp_client.devices import STUDY, YES, consenting

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files")


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.attack(13)
@pytest.mark.parametrize(
    ("before", "others", "after", "warned"),
    [
        (None, [], 0o700, ""),
        (0o755, [], 0o700, "now only its owner can"),
        (0o755, ["letter.txt"], 0o755, "and still can"),
        (0o1777, [], 0o1777, "and still can"),
    ],
    ids=["new", "empty", "of other files", "shared on purpose"],
)
def test_ledger_is_private_and_a_shared_folder_keeps_its_mode(
    tmp_path, caplog, before, others, after, warned
):
    """Another user of the machine reads a ledger; a mistyped folder must not lose its mode."""
    folder = tmp_path / "folder"
    if before is not None:
        folder.mkdir()
        folder.chmod(before)
    for name in others:
        (folder / name).write_text("Dear")
    consenting(folder, "4").answer(STUDY, YES)
    assert sorted(os.listdir(folder)) == sorted([LEDGER_NAME, LOCK_NAME, *others])
    assert [mode(folder / name) for name in (LEDGER_NAME, LOCK_NAME)] == [0o600, 0o600]
    assert mode(folder) == after
    assert warned in caplog.text
    assert bool(caplog.messages) == bool(warned)
    assert (holds_device(folder), holds_others(folder)) == (True, bool(others))


def test_readable_older_ledger_becomes_private_with_a_warning(tmp_path, caplog):
    consenting(tmp_path, "4").answer(STUDY, YES)
    for name in (LEDGER_NAME, LOCK_NAME):
        (tmp_path / name).chmod(0o644)
    caplog.clear()
    for _ in range(2):
        consenting(tmp_path, "4")
        assert [mode(tmp_path / name) for name in (LEDGER_NAME, LOCK_NAME)] == [0o600, 0o600]
    assert len(caplog.messages) == 2
