"""Containers and the install script for real: Debian roots, the Containerfile's own steps, a posterior."""

import os
import subprocess
import sys

import pytest

from tests.kit.programs import need

# How long it took is said by `make machines`: other tests run beside this one.
ANY_TIME = str(10**6)


@pytest.mark.slow
def test_debian_roots_install_and_produce_posterior(pytestconfig):
    if os.geteuid() != 0:
        pytest.skip("only root can enter another Debian: sudo make machines")
    need("debootstrap", "openssl", "build")
    command = [sys.executable, "-m", "tests.deploy.check", "--most", ANY_TIME]
    done = subprocess.run(
        command, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("a posterior", "the proxy", "both nodes", "Prometheus", "the install script"):
        assert f"{step}: " in done.stdout
