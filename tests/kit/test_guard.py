"""The guard seeds planted tests, lists them, and lets some fail."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

PLANTED = """
import os, socket, subprocess, sys, time
import pytest

def test_sleeps():
    time.sleep(0)

def test_starts_a_process():
    subprocess.run([sys.executable, "--version"])

def test_waits_in_the_product():
    exec(compile("time.sleep(0)", "product.py", "exec"))

def test_listens_on_a_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

def test_reads_the_clock():
    time.time()

def test_seeded():
    print("seeded", os.urandom(4).hex())

@pytest.mark.entropy
def test_true():
    print("true", os.urandom(4).hex())

def test_only_computes():
    assert 1 + 1 == 2
"""


@pytest.mark.slow
def test_guard_seeds_bytes_and_finds_tests_that_do_more_than_compute(tmp_path):
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
        "-qs",
        "-p",
        "no:xdist",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    runs = [subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(2)]
    failed = [sorted(re.findall(r"^FAILED .*::(\w+)", run.stdout, re.M)) for run in runs]
    assert failed == [["test_listens_on_a_port", "test_reads_the_clock", "test_sleeps"]] * 2, (
        runs[0].stdout + runs[0].stderr
    )
    listed = (tmp_path / ".pytest_cache/d/guard/guard.txt").read_text().splitlines()
    kinds = [line.partition(":")[0] for line in listed]
    names = [line.rpartition("::test_")[2].replace("_", " ") for line in listed]
    assert names == kinds
    assert len(kinds) == 5
    (seeded, again), (true, other) = (
        [re.search(rf"{word} (\w+)", run.stdout)[1] for run in runs] for word in ("seeded", "true")
    )
    assert seeded == again
    assert true != other
