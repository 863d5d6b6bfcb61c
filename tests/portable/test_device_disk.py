"""A device on a disk that stops between two writes, or forgets what was not flushed."""

import pytest

from tests.ldp_client.faults import killing


@pytest.mark.parametrize("kind", ["write", "power"])
def test_killed_or_unpowered_device_reports_no_problems(kind):
    """Every point of a life is in benchmarks/client_faults.py."""
    done = killing.start(kind, 12)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["write", "power"])
def test_careless_ledger_fails_the_power_loss_test(kind):
    assert killing.start(kind, 1, broken=True).returncode == 1
