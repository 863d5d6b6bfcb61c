"""The files of a device are its owner's alone, and other folders stay as they are."""

import os
import stat

import pytest

from ldp_client.device.layout import LEDGER_NAME, LOCK_NAME, holds_device
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
@pytest.mark.parametrize("before", [None, 0o755, 0o1777], ids=["new", "of other files", "shared on purpose"])
def test_ledger_is_private_and_a_folder_keeps_its_mode(tmp_path, before):
    """Another user of the machine reads a ledger; a mistyped folder must not lose its mode."""
    folder, others = tmp_path / "folder", []
    if before is not None:
        folder.mkdir()
        folder.chmod(before)
        others = ["letter.txt"]
        (folder / "letter.txt").write_text("Dear")
    consenting(folder, "4").answer(STUDY, YES)
    assert sorted(os.listdir(folder)) == sorted([LEDGER_NAME, LOCK_NAME, *others])
    for name in (LEDGER_NAME, LOCK_NAME):
        assert mode(folder / name) == 0o600
        (folder / name).chmod(0o644)
    assert mode(folder) == (before or 0o700)
    assert holds_device(folder)
    # A copy is private from its first use on.
    consenting(folder, "4")
    assert [mode(folder / name) for name in (LEDGER_NAME, LOCK_NAME)] == [0o600, 0o600]
