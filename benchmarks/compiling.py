"""How much of a run JAX spends on tracing and compiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import jax

Result = TypeVar("Result")
Span = tuple[float, float]
_COMPILING = "/jax/core/compile/"


@dataclass(frozen=True)
class Timed:
    """seconds: of the whole call, on the wall. compiling: seconds of them that went into compilation."""

    seconds: float
    compiling: float

    @property
    def working(self) -> float:
        """Seconds without compilation."""
        return self.seconds - self.compiling


def timed(call: Callable[[], Result]) -> tuple[Result, Timed]:
    """What a call gives once its arrays are there, and what it cost."""
    with _compile_spans() as spans:
        start = time.perf_counter()
        result = jax.block_until_ready(call())
        seconds = time.perf_counter() - start
    return result, Timed(seconds, covered(spans))


@contextmanager
def _compile_spans() -> Iterator[list[Span]]:
    """When JAX traced, lowered or compiled; programs inside programs report twice."""
    spans: list[Span] = []

    def listen(event: str, duration: float, **_: object) -> None:
        if event.startswith(_COMPILING):
            end = time.perf_counter()
            spans.append((end - duration, end))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield spans
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def covered(spans: list[Span]) -> float:
    """The length of the union of spans."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
