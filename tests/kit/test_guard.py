"""The guard seeds planted tests, and lets some fail."""

import re
import subprocess
import sys

import pytest

PLANTED = """
import os, socket, subprocess, time
import pytest

def test_sleeps():
    time.sleep(0)

def test_waits_in_the_product():
    exec(compile("time.sleep(0)", "product.py", "exec"))

def test_listens_on_a_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

def test_starts_a_process():
    subprocess.run(["true"])

@pytest.mark.processes
def test_may_start_a_process():
    subprocess.run(["true"])

def test_reads_the_clock():
    time.time()

def test_seeded():
    print("seeded", os.urandom(4).hex())

@pytest.mark.entropy
def test_true():
    print("true", os.urandom(4).hex())
"""

FOUND = ["test_listens_on_a_port", "test_reads_the_clock", "test_sleeps", "test_starts_a_process"]


@pytest.mark.slow
def test_guard_seeds_bytes_and_finds_tests_that_do_more_than_compute(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from tests.kit import guard\n"
        f"guard.TESTS = {str(tmp_path)!r}\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'processes')\n"
        "    config.pluginmanager.register(guard.Guard(), 'guard')\n"
    )
    (tmp_path / "test_planted.py").write_text(PLANTED)
    options = ["-qs", "-p", "no:xdist", "--rootdir", str(tmp_path), str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *options]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=False).stdout for _ in range(2)
    )
    for printed in (first, second):
        failed = sorted(re.findall(r"^FAILED .*::(\w+)", printed, re.M))
        assert failed == FOUND, printed
    pattern = r"seeded (\w+).*true (\w+)"
    (seeded, true), (again, other) = (re.search(pattern, text, re.S).groups() for text in (first, second))
    assert seeded == again
    assert true != other
