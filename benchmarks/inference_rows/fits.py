"""Whole fits: 4 chains × (1000 + 1000), with their verdict."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.compiling import Timed, timed
from benchmarks.inference_rows.cases import CASES, Case, linear, multinomial
from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.surveys import summary_of
from inference.fitting import fit
from inference.results.posterior import Posterior

PEOPLE = 100_000


def fitted(case: Case, people: int) -> tuple[Posterior, Timed]:
    """The posterior of so many simulated reports, and what it cost."""
    summary = summary_of(case.study, case.summary(people))
    posteriors, cost = timed(lambda: fit(case.study, summary, seed=1))
    return posteriors[case.question.id], cost


def _shown(posterior: Posterior, cost: Timed) -> str:
    verdict = "ok" if posterior.diagnostics.ok else "not ok: " + posterior.diagnostics.reasons[0][:40]
    return f"{cost.working:.1f} s (+ {cost.compiling:.1f} s compiling), {verdict}"


def _row(what: str, case: Case, limit: float) -> Row:
    posterior, cost = fitted(case, PEOPLE)
    met = cost.working <= limit and posterior.diagnostics.ok
    return Row(what, _shown(posterior, cost), f"≤ {limit:g} s, ok", met)


def whole_fits() -> Iterator[Row]:
    """Each built-in model from a summary of 100,000 reports."""
    for name, case in CASES.items():
        limit = 8.0 if case.question.ask == "record" else 3.0
        yield _row(f"whole fit without compilation: {name}", case, limit)


def large_fits() -> Iterator[Row]:
    """The two largest that issue 5 names."""
    yield _row("multinomial k = 1024 from counts", multinomial(1024), 20.0)
    yield _row("linear d = 50", linear(50), 90.0)


def size_of_n() -> Iterator[Row]:
    """The same fit from 10⁷ and from 10⁴ reports."""
    for name, case in CASES.items():
        few, many = (fitted(case, people)[1].working for people in (10**4, 10**7))
        measured = f"{many:.1f} s / {few:.1f} s = {many / few:.2f}"
        yield Row(f"n = 10⁷ against n = 10⁴: {name}", measured, "≤ 1.2 times", many <= 1.2 * few)
