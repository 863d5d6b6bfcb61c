"""Invitations and keys are made but cannot be read: a full disk, or a closed terminal.

Defence: The command: reserves room for all lines before any is made, names the file and the command that
undoes it; removes the key.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from urllib.error import HTTPError

import pytest

from collector.operator import links
from ldp_client.documents.errors import InputError
from tests.collector.conftest import REPOSITORY, RUN_COMMAND, TOKEN

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LDPKIT_TOKEN": TOKEN}


def command(*arguments, folder, room=None, out=None):
    """A command on a disk where files get no more than so many bytes; its output, or that of a full one."""

    def limit():
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    line = [sys.executable, "-c", RUN_COMMAND, *arguments]
    with open(out or os.devnull, "wb") as full:
        stdout = full if out else subprocess.PIPE
        return subprocess.run(
            line,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            cwd=folder,
            preexec_fn=limit,
        )


@pytest.fixture
def asked(start_server, study, tmp_path):
    server = start_server()
    (tmp_path / "study.json").write_text(study.to_json())
    assert command("publish", "study.json", "--collector", server.url, folder=tmp_path).returncode == 0
    return server


@pytest.mark.slow
@pytest.mark.parametrize("name", ["links.txt", "links.csv"])
@pytest.mark.parametrize("room", [0, 20_000])
def test_invite_on_a_full_disk_leaves_the_study_open(asked, make_report, study, tmp_path, name, room):
    invite = ("invite", "habits", "--count", "500", "--out", name, "--collector", asked.url)
    done = command(*invite, folder=tmp_path, room=room)
    assert (done.returncode, (tmp_path / name).exists()) == (1, False)
    assert f"cannot write {name}: File too large" in done.stderr
    assert asked.put(make_report(study)) == 201
    done = command(*invite, folder=tmp_path)
    assert done.returncode == 0
    lines = (tmp_path / name).read_text().splitlines()
    assert len(lines) == 500 + name.endswith(".csv")
    assert all("#invitation=" in line for line in lines[-500:])
    with pytest.raises(HTTPError, match="403"):
        asked.put(make_report(study))


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_invite_with_unwritable_output_names_the_undo_command(asked, tmp_path, options):
    invite = ("invite", "habits", "--count", "5", "--collector", asked.url, *options)
    done = command(*invite, folder=tmp_path, out="/dev/full")
    assert done.returncode != 0
    assert "cannot write standard output: No space left on device" in done.stderr
    assert "`ldpkit invite habits --disable` admits all reports again" in done.stderr


def test_failed_qr_code_does_not_lose_links(tmp_path, monkeypatch):
    def draw(*_):
        raise InputError("cannot write it")

    monkeypatch.setattr(links, "_draw", draw)
    path = str(tmp_path / "links.txt")
    with pytest.raises(InputError), links.new_place(path, str(tmp_path / "codes"), 100_000) as file:
        links.writer(file, path, str(tmp_path / "codes"), "https://x/")(["one", "two"])
    assert (tmp_path / "links.txt").read_text() == "https://x/one\nhttps://x/two\n"


@pytest.mark.slow
def test_key_that_could_not_be_printed_is_revoked(asked, tmp_path):
    where = ("--collector", asked.url)
    add = ("keys", "add", "unseen", "--role", "read", *where)
    done = command(*add, folder=tmp_path, out="/dev/full")
    assert done.returncode != 0
    assert "the key unseen could not be printed: it was revoked" in done.stderr
    assert "unseen" not in command("keys", *where, folder=tmp_path).stdout
    assert command(*add, folder=tmp_path).returncode == 0
    assert "unseen" in command("keys", *where, folder=tmp_path).stdout


@pytest.mark.parametrize("limit", ["0", "-1", "10001", "99999999999999999999", "many"])
def test_audit_log_limit_must_be_from_1_to_10000(tmp_path, limit):
    done = command("status", "--log", f"--limit={limit}", folder=tmp_path)
    assert done.returncode == 2
    assert f"must be a whole number from 1 to 10000, is {limit}" in done.stderr
