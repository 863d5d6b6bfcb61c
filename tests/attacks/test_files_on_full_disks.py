"""A disk fills up while a command writes new files: no partial file is left, and it can run again."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import write_new
from ldpkit.cli import main
from tests.kit.errors import raises
from tests.secure_sum.conftest import build_study


@contextmanager
def full_after(files: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Only so many files can still be flushed to the disk."""
    flush, left = os.fsync, iter([True] * files)

    def fsync(handle: int) -> None:
        if not next(left, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


def test_new_file_gets_its_name_once_complete(tmp_path, monkeypatch):
    path, seen, flush = tmp_path / "new", [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(path.exists()) or flush(handle))
    write_new(path, "whole", 0o600)
    assert (seen, path.read_text(), os.listdir(tmp_path)) == ([False], "whole", ["new"])
    with raises(InputError, "files.cannot_write", "File exists"):
        write_new(path, "another", 0o600)
    assert (path.read_text(), os.listdir(tmp_path)) == ("whole", ["new"])


@pytest.mark.parametrize("flushed", range(4))
def test_init_can_be_repeated_after_a_full_disk(tmp_path, monkeypatch, capsys, flushed):
    """It writes the database, the gateway keys and last the settings, which mark it as complete."""
    place = tmp_path / "place"
    with full_after(flushed, monkeypatch):
        made = main(["init", str(place)]) == 0
    assert (place / "ldpkit.toml").exists() == made
    if made:
        return
    assert "No space" in capsys.readouterr().err
    assert main(["init", str(place)]) == 0
    assert "token = " in (place / "ldpkit.toml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("flushed", [0, 1])
def test_keygen_writes_both_keys_or_none(tmp_path, monkeypatch, capsys, flushed):
    command = ["keygen", "--out", str(tmp_path / "key.pem")]
    with full_after(flushed, monkeypatch):
        assert main(command) == 3
    assert "No space" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
    assert main(command) == 0


@pytest.mark.parametrize("flushed", [0, 2])
def test_invite_writes_all_lists_or_none(tmp_path, monkeypatch, capsys, flushed):
    (tmp_path / "study.json").write_text(build_study("ever").to_json())
    out = tmp_path / "invited"
    command = ["node", "invite", str(tmp_path / "study.json"), "--count", "20", "--out", str(out)]
    with full_after(flushed, monkeypatch):
        assert main(command) == 3
    assert "No space" in capsys.readouterr().err
    assert not out.exists()
    assert main(command) == 0
    assert len(Path(out / "invitations.txt").read_text().split()) == 20
