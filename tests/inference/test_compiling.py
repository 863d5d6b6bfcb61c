"""Programs are kept in the user's cache folder, and those that use all threads run one at a time."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.compiling import Program, cache_folder, divides
from inference.sampling import chains


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/ann"}, Path("/var/ann/ldpkit/jax")),
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "relative"}, Path("/home/ann/.cache/ldpkit/jax")),
        ({"HOME": "/home/ann", "LDPKIT_CACHE": "off"}, None),
        ({}, None),
    ],
)
def test_cache_folder_follows_the_environment(environment, folder):
    assert cache_folder(environment) == folder


LONGEST_S = 240


# In a separate process, because a deadlock can only be ended by killing it.
FOUR = """
import jax, jax.numpy as jnp, numpy as np
from inference.compiling import Program
from inference.sampling.chains import in_threads
with jax.enable_x64(True):
    def one(matrices, steps):
        step = lambda sum, more: (sum + jnp.linalg.slogdet((1 + more) * matrices)[1].sum(), None)
        return jax.lax.scan(step, 0.0, steps)[0]
    parts, steps = np.random.default_rng(0).normal(size=(4, 250, 16, 16)), np.linspace(0, 1, 40)
    for _ in range(3):
        found = in_threads(Program(one))(parts, steps)
    wanted = [np.linalg.slogdet((1 + more) * parts)[1].sum(axis=1) for more in steps]
    np.testing.assert_allclose(found, np.sum(wanted, axis=0), rtol=1e-9)
print("ended")
"""


@pytest.mark.slow
def test_concurrent_programs_using_all_threads_finish():
    done = subprocess.run(
        [sys.executable, "-c", FOUR], capture_output=True, text=True, check=False, timeout=LONGEST_S
    )
    assert done.stdout.strip() == "ended", done.stderr[-3000:]


OPERATIONS = {
    "lu": lambda x: jnp.linalg.slogdet(x)[1],
    "cholesky": jnp.linalg.cholesky,
    "eigh": lambda x: jnp.linalg.eigh(x)[0],
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("shape", "alone"), [((200, 200), False), ((250, 2, 16, 16), True)])
def test_batched_matrix_operations_are_detected(name, shape, alone):
    """Also inside a loop; a single matrix is never divided over threads, whatever its size."""
    with jax.enable_x64(True):
        looped = jax.jit(
            lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y + OPERATIONS[name](x + i).sum(), 0.0)
        )
        assert divides(looped.lower(np.ones(shape)).as_text()) is alone


def test_only_batched_programs_run_sequentially(monkeypatch):
    """Chains with few matrices keep running in parallel."""
    asked = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, most):
            asked.append(most)
            super().__init__(most)

    monkeypatch.setattr(chains, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(chains.os, "cpu_count", lambda: 4)
    with jax.enable_x64(True):
        for size in (2, 300):
            program = Program(lambda x: jnp.linalg.slogdet(x)[1].sum())
            chains.in_threads(program)(np.ones((4, size, 16, 16)) + np.eye(16))
    assert asked == [4, 1]
