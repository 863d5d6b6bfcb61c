"""Whole fits: 4 chains × (1000 + 1000), with their verdict."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.compiling import Timed, timed
from benchmarks.inference_rows.cases import Case, cases_of, linear, multinomial
from benchmarks.ldpbi.surveys import summary_of
from benchmarks.running import Row, Size
from inference.fitting import fit
from inference.results.posterior import Posterior

PEOPLE = 100_000


def _people(size: Size) -> int:
    return size.of(PEOPLE, PEOPLE, 500)


def fitted(case: Case, people: int) -> tuple[Posterior, Timed]:
    """The posterior of so many simulated reports, and what it cost."""
    summary = summary_of(case.study, case.summary(people))
    posteriors, cost = timed(lambda: fit(case.study, summary, seed=1))
    return posteriors[case.question.id], cost


def _shown(posterior: Posterior, cost: Timed) -> str:
    verdict = "ok" if posterior.verdict.ok else "not ok: " + posterior.verdict.reasons[0][:40]
    return f"{cost.working:.1f} s (+ {cost.compiling:.1f} s compiling), {verdict}"


def _row(what: str, case: Case, limit: float, people: int) -> Row:
    posterior, cost = fitted(case, people)
    met = cost.working <= limit and posterior.verdict.ok
    return Row(what, _shown(posterior, cost), f"≤ {limit:g} s, ok", met)


def whole_fits(size: Size) -> Iterator[Row]:
    """Each built-in model from a summary of 100,000 reports."""
    for name, case in cases_of(size):
        limit = 8.0 if case.question.ask == "record" else 3.0
        yield _row(f"whole fit without compilation: {name}", case, limit, _people(size))


def large_fits(size: Size) -> Iterator[Row]:
    """The two largest."""
    choices = size.of(1024, 1024, 2)
    yield _row(f"multinomial k = {choices} from counts", multinomial(choices), 20.0, _people(size))
    for features in size.of((50,), (50,), ()):
        yield _row(f"linear d = {features}", linear(features), 90.0, _people(size))
