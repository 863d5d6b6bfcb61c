"""JAX's compiled programs: they compile in the background, and are kept on disk for the next fit.

The folder is `ldpkit/jax` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache), or the folder in
LDPKIT_CACHE; LDPKIT_CACHE=off turns it off. It holds programs only, no data, and may be deleted at any time.
A cache folder that is already set in JAX is left in place.
"""

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


def use_compile_cache() -> Path | None:
    """Keep compiled programs on disk; return the folder, or None without one. Never raises."""
    told = jax.config.values["jax_compilation_cache_dir"]
    if told is not None:
        return Path(told)
    folder = cache_folder(os.environ)
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return folder


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of compiled programs; None if that is turned off, or if there is no home."""
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


Options = dict[str, str | bool]

# XLA's older compiler of fused operations takes half the time, and its programs run as fast. The level is
# JAX's default, stated because tests lower it: a sampler's step runs so often that it would take longer.
_QUICK: Options = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": "3"}
# Programs that run once are compiled in a third of the time and then run a few times slower.
_RUNS_ONCE: Options = {"xla_backend_optimization_level": "0"}
_COMPILERS = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ldpkit-compile")


@functools.cache
def _quick() -> Options:
    """Return the options for every program; none if this JAX does not know them."""
    try:
        jax.jit(lambda: 0).lower().compile(_QUICK)
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return jax.jit(function), compiled faster; not for calls in another program: its compiler decides."""
    return jax.jit(function, compiler_options=_quick())


# JAX 0.10 divides an operation on this many matrices over XLA's threads, and one thread waits for the others.
# If two programs do so at once on two processors, both deadlock. Measured: from 10⁶ multiplications a batch
# on, never below 8·10⁵.
MOST_UNDIVIDED = 1e5
_MATRICES = re.compile(r"custom_call @(?:lapack|blas)_.*?: \(([^)]*)\)")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)")


def divides(program: str) -> bool:
    """Return True if a program, as StableHLO, has such an operation: it must then run alone."""
    operands = (_TENSOR.findall(types) for types in _MATRICES.findall(program))
    shapes = [[int(size) for size in one.split("x") if size] for found in operands for one in found]
    return any(math.prod(shape) * max(shape[-2:]) > MOST_UNDIVIDED for shape in shapes if len(shape) > 2)


def raw_key(seed: int) -> NDArray[np.uint32]:
    """Return JAX's key of a seed, as plain numbers that need no compiled program."""
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


class Program:
    """A function that is compiled once, for arguments of the shapes and types that it first meets.

    runs_once: whether compiling it well would cost more than it saves. alone: whether it must run without
    other programs, known once it is prepared.
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
        """Call the compiled function, after waiting until it is compiled."""
        self.prepare(*arguments)
        assert self._compiled is not None
        return self._compiled.result()(*arguments)
