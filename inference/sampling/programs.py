"""Programs that compile in the background while something else is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

_COMPILERS = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ldpkit-compile")


class Program:
    """A function that is compiled once, for arguments of the shapes and types that it first meets."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = jax.jit(function)
        self._compiled: Future[Any] | None = None

    def prepare(self, *arguments: Any) -> None:
        """Trace now, in the caller's precision, and begin to compile; tracing in two threads is not safe."""
        if self._compiled is None:
            self._compiled = _COMPILERS.submit(self._function.lower(*arguments).compile)

    def __call__(self, *arguments: Any) -> Any:
        """What the function gives, once it is compiled."""
        self.prepare(*arguments)
        assert self._compiled is not None
        return self._compiled.result()(*arguments)
