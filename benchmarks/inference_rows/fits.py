"""Whole fits: 4 chains × (1000 + 1000), with their verdict."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import jax

from benchmarks.inference_rows.cases import PEOPLE, Case, cases_of
from benchmarks.ldpbi.surveys import summary_of
from benchmarks.running import Row, Size
from inference.fitting import fit
from inference.results.posterior import Posterior

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


def fitted(case: Case, people: int) -> tuple[Posterior, Timed]:
    """The posterior of so many simulated reports, and what it cost."""
    summary = summary_of(case.study, case.summary(people))
    posteriors, cost = timed(lambda: fit(case.study, summary, seed=1))
    return posteriors[case.question.id], cost


def _shown(posterior: Posterior, cost: Timed) -> str:
    verdict = "ok" if posterior.verdict.ok else "not ok: " + posterior.verdict.reasons[0][:40]
    return f"{cost.working:.1f} s (+ {cost.compiling:.1f} s compiling), {verdict}"


def whole_fits(size: Size) -> Iterator[Row]:
    """Each built-in model from a summary of 100,000 reports."""
    for name, case in cases_of(size):
        limit = 8.0 if case.question.ask == "record" else 3.0
        posterior, cost = fitted(case, size.of(PEOPLE, PEOPLE, 500))
        met = cost.working <= limit and posterior.verdict.ok
        what = f"whole fit without compilation: {name}"
        yield Row(what, _shown(posterior, cost), f"≤ {limit:g} s, ok", met)
