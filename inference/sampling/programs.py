"""Programs that compile in the background while something else is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

# What runs once is compiled in a third of the time and then runs a few times slower.
_RUNS_ONCE: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
_COMPILERS = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ldpkit-compile")


class Program:
    """A function that is compiled once, for arguments of the shapes and types that it first meets.

    runs_once: whether compiling it well would cost more than it saves.
    """

    def __init__(self, function: Callable[..., Any], *, runs_once: bool = False) -> None:
        self._function = jax.jit(function)
        self._options = _RUNS_ONCE if runs_once else None
        self._compiled: Future[Any] | None = None

    def prepare(self, *arguments: Any) -> None:
        """Trace now, in the caller's precision, and begin to compile; tracing in two threads is not safe."""
        if self._compiled is None:
            lowered = self._function.lower(*arguments)
            self._compiled = _COMPILERS.submit(lowered.compile, self._options)

    def __call__(self, *arguments: Any) -> Any:
        """What the function gives, once it is compiled."""
        self.prepare(*arguments)
        assert self._compiled is not None
        return self._compiled.result()(*arguments)
