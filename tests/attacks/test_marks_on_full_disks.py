"""A disk that is full as a draw is marked: others are refused for nothing, or all by a broken line."""

import errno
import os

import pytest

from ldp_client.cli import main
from ldp_client.device.ledger import Ledger
from tests.attacks.test_tables_perturbed_and_answered import MARK, answer, folder, marks, perturb

__all__ = ["answer", "folder"]


def perturb_to_a_pipe(*more):
    return main(["perturb", "study.json", "north.csv", "--out", "-", *more])


def full_for(monkeypatch, half):
    """So that the mark has no room: not on the disk, or but for half of its line."""
    flush = os.fsync

    def fsync(handle):
        if os.path.exists(MARK) and os.path.samestat(os.fstat(handle), os.stat(MARK)):
            if half:
                os.truncate(MARK, os.path.getsize(MARK) - 100)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize("way", ["answer", "perturb", "to a pipe"])
def test_no_mark_stays_that_has_no_room(answer, monkeypatch, capsys, half, earlier, way):
    if earlier:
        assert perturb() == 0
        os.remove("north.ndjson")
    before = marks() if earlier else []
    again = ["--again"] * earlier
    ways = {"answer": answer, "perturb": perturb, "to a pipe": perturb_to_a_pipe}
    with monkeypatch.context() as patched:
        full_for(patched, half)
        capsys.readouterr()
        assert ways[way](*again) == 3
    assert "No space left" in capsys.readouterr().err
    assert (marks() if os.path.exists(MARK) else []) == before
    assert not os.path.exists("north.ndjson")
    assert not Ledger("device").spent()
    assert answer(*again, device="other") == 0
