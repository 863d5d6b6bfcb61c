"""Programs are kept in the user's cache folder, and those that use all threads run one at a time."""

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
