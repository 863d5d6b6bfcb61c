"""The guard sees what it lists, in a run of planted tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

PLANTED = """
import os, socket, subprocess, sys, time

def test_sleeps():
    time.sleep(0)

def test_starts_a_process():
    subprocess.run([sys.executable, "--version"])

def test_listens_on_a_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

def test_reads_the_clock():
    time.time()

def test_draws_unseeded_bytes():
    os.urandom(1)

def test_only_computes():
    assert 1 + 1 == 2
"""


@pytest.mark.slow
def test_guard_lists_each_kind_but_not_computing_tests(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from tests.kit import guard\n"
        f"guard.TESTS = {str(tmp_path)!r}\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(guard.Guard(), 'guard')\n"
    )
    (tmp_path / "test_planted.py").write_text(PLANTED)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = (tmp_path / ".pytest_cache/d/guard/guard.txt").read_text().splitlines()
    kinds = [line.partition(":")[0] for line in listed]
    names = [line.rpartition("::test_")[2].replace("_", " ") for line in listed]
    assert names == kinds
    assert len(kinds) == 5
