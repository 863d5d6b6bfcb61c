"""JAX's compiled programs: they compile in the background, and are kept on disk for the next fit.

The folder is `ldpkit/jax` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache), or the one that
LDPKIT_CACHE names; LDPKIT_CACHE=off turns it off. It holds programs only, no data, and may be deleted at
any time. A cache folder that JAX was told of already is left in place.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

OFF = "off"


def use_compile_cache(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Keep compiled programs; the folder, or None where there is none. Never raises."""
    told = jax.config.values["jax_compilation_cache_dir"]
    if told is not None:
        return Path(told)
    folder = cache_folder(environment)
    if folder is None or not _writable(folder):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Where compiled programs are kept; None when that is turned off, or when there is no home."""
    named = environment.get("LDPKIT_CACHE", "")
    if named.lower() == OFF:
        return None
    if named:
        return Path(named)
    parent = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(parent):
        return Path(parent) / "ldpkit" / "jax"
    home = environment.get("HOME", "")
    return Path(home) / ".cache" / "ldpkit" / "jax" if os.path.isabs(home) else None


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


Options = dict[str, str | bool]

# XLA's older way to compile what it fuses takes half the time, and what comes of it runs as fast. The level
# is JAX's own, stated because tests lower that: a sampler's step runs so often that it would take longer.
_QUICK: Options = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": "3"}
# What runs once is compiled in a third of the time and then runs a few times slower.
_RUNS_ONCE: Options = {"xla_backend_optimization_level": "0"}
_COMPILERS = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ldpkit-compile")


@functools.cache
def _quick() -> Options:
    """Options for every program; none where this JAX does not know them."""
    try:
        jax.jit(lambda: 0).lower().compile(_QUICK)
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """jax.jit(function), sooner compiled; not for calls within another program, whose compiler decides."""
    return jax.jit(function, compiler_options=_quick())


# An operation on so many matrices that JAX 0.10 divides it over XLA's threads, and waits on one of these for
# the others: of two programs that do so at once on two processors neither ends. Measured: so from 10⁶
# multiplications a batch on, never below 8·10⁵.
MOST_UNDIVIDED = 1e5
_MATRICES = re.compile(r"custom_call @(?:lapack|blas)_.*?: \(([^)]*)\)")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)")


def divides(program: str) -> bool:
    """Whether a program, as StableHLO, has such an operation: then no other may run beside it."""
    operands = (_TENSOR.findall(types) for types in _MATRICES.findall(program))
    shapes = [[int(size) for size in one.split("x") if size] for found in operands for one in found]
    return any(math.prod(shape) * max(shape[-2:]) > MOST_UNDIVIDED for shape in shapes if len(shape) > 2)


def raw_key(seed: int) -> NDArray[np.uint32]:
    """JAX's key of a seed, as the plain numbers that need no program of their own."""
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


class Program:
    """A function that is compiled once, for arguments of the shapes and types that it first meets.

    runs_once: whether compiling it well would cost more than it saves. alone: whether no other program may
    run beside it, once it is prepared.
    """

    alone = False

    def __init__(self, function: Callable[..., Any], *, runs_once: bool = False) -> None:
        self._function = jax.jit(function)
        self._options = {**_quick(), **(_RUNS_ONCE if runs_once else {})}
        self._compiled: Future[Any] | None = None

    def prepare(self, *arguments: Any) -> None:
        """Trace now, in the caller's precision, and begin to compile; tracing in two threads is not safe."""
        if self._compiled is None:
            lowered = self._function.lower(*arguments)
            self.alone = divides(lowered.as_text())
            self._compiled = _COMPILERS.submit(lowered.compile, self._options)

    def __call__(self, *arguments: Any) -> Any:
        """What the function gives, once it is compiled."""
        self.prepare(*arguments)
        assert self._compiled is not None
        return self._compiled.result()(*arguments)
