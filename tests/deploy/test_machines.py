"""Containers and the install script for real: Debian roots, the Containerfile's own steps, a summary."""

import os
import subprocess
import sys

import pytest

from tests.kit.programs import need


@pytest.mark.slow
def test_debian_roots_install_and_take_reports(pytestconfig):
    if os.geteuid() != 0:
        pytest.skip("only root can enter another Debian: sudo make machines")
    need("debootstrap", "openssl", "build")
    command = [sys.executable, "-m", "tests.deploy.check"]
    done = subprocess.run(
        command, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("a summary", "the proxy", "both nodes", "Prometheus", "the install script"):
        assert f"{step}: " in done.stdout
