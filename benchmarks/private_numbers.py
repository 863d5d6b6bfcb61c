"""Private numbers in analyses: coverage of outcomes, and false alarms of their checks.

    python -m benchmarks.private_numbers [--studies 60] [--people N] [--case NAME …]

Of every case so many studies are simulated, with reports of a number of 0 to 12 under Laplace noise, and
fitted by a Gaussian at the posterior's mode. It prints how many of the 90 % intervals contain the truth, and
how many fits the check of reports calls wrong: of sound laws one in a thousand at most, of others all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy import optimize

from inference.analyses.analysing import model_of
from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from inference.analyses.private_numbers import private_number_of
from inference.analyses.program import Assembled
from inference.analyses.table import Private, Table, table_of
from inference.results.verdict import Verdict
from inference.sampling.space import Space, as_arrays, space_of
from ldp_client import mechanism_for
from ldp_client.bulk import randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Question, Study

Values = np.ndarray
DRAWS = 400
LOW, HIGH = 0.0, 12.0


def question_of(epsilon: str) -> Question:
    """Hours from 0 to 12 under Laplace noise."""
    asked = {
        "id": "hours",
        "ask": "number",
        "text": "How many hours?",
        "bounds": ["0", "12"],
        "mechanism": {"name": "laplace", "epsilon": epsilon},
        "model": {"name": "normal"},
    }
    study = {
        "format": "ldpkit.study/1",
        "id": "hours",
        "version": 1,
        "title": "Hours",
        "questions": [asked],
    }
    return Study(study).questions[0]


def reported(question: Question, answers: Values, random: np.random.Generator) -> Private:
    """Reports of these answers, by a stated randomness."""
    mechanism = mechanism_for(question)
    source = NotForRealAnswers(random.bytes)
    payloads = randomise_many(mechanism, quantise_many(mechanism, np.clip(answers, LOW, HIGH)), source)
    return private_number_of(question, [payload.tobytes() for payload in payloads])


@dataclass(frozen=True)
class Case:
    """formula: what is fitted. truth: of parameters whose intervals are counted.

    people: how many, unless others are asked for. table: a study's, of so many people.
    """

    formula: str
    truth: Mapping[str, float]
    people: int
    table: Callable[[np.random.Generator, int], Table]


def of_hours(skewed: bool) -> Callable[[np.random.Generator, int], Table]:
    """People at ε = 4, of two kinds whose hours differ by one on average."""

    def table(random: np.random.Generator, n: int) -> Table:
        kind = np.where(np.arange(n) % 2, "a", "b")
        hours = random.lognormal(1.0, 0.8, n) if skewed else random.normal(4.5, 2, n)
        column = reported(question_of("4"), hours + (kind == "b"), random)
        return table_of(pd.DataFrame({"kind": kind}), [column])

    return table


CASES: Mapping[str, Case] = {
    "outcome": Case("hours ~ kind", {"Intercept": 4.5, "kind[b]": 1.0, "sigma": 2.0}, 3000, of_hours(False)),
    "outcome-skewed": Case("hours ~ kind", {}, 3000, of_hours(True)),
}


class Fits:
    """Gaussians at modes, of studies of one case: the program is compiled for the first one's shapes."""

    def __init__(self, analysis: Assembled) -> None:
        self._first, self._model = analysis, model_of(analysis)
        space: Space = space_of(self._model)
        self._space = space
        self._slope = jax.jit(jax.value_and_grad(space.potential))
        self._hessian = jax.jit(jax.hessian(space.potential))
        self._sites = jax.jit(jax.vmap(space.sites, in_axes=(0, None)))

    def of(self, analysis: Assembled, random: np.random.Generator) -> dict[str, Values]:
        """Draws (1, draws, …) of each site."""
        data = as_arrays(analysis.data())
        start = np.asarray(self._space.start(as_arrays(self._model.initial, float), data))

        def slope(vector: Values) -> tuple[float, Values]:
            value, gradient = self._slope(vector, data)
            return float(value), np.asarray(gradient)

        mode = optimize.minimize(slope, start, jac=True, method="BFGS", options={"gtol": 1e-3}).x
        covariance = np.linalg.inv(np.asarray(self._hessian(mode, data)))
        drawn = self._sites(random.multivariate_normal(mode, covariance, DRAWS), data)
        return {name: np.asarray(value)[None] for name, value in drawn.items()}


def one_by_one(analysis: Assembled, table: Table) -> Assembled:
    """Another study of the same people as far as public columns go, in the first one's coordinates.

    Every report is a pattern, so that all studies have the same shapes.
    """
    own = assemble(table, analysis.formula.text)
    rows = np.repeat(np.arange(len(own.cells.counts)), own.cells.counts)
    cells = replace(
        own.cells,
        cell=own.cells.cell[rows],
        counts=np.ones(len(rows), np.int64),
        reports={name: codes[rows] for name, codes in own.cells.reports.items()},
    )
    values = None if own.values is None else own.values[rows]
    parts: dict[str, Any] = {"response": own.response, "predictors": own.predictors}
    return replace(analysis, cells=cells, values=values, **parts)


def measured(case: Case, studies: int, people: int, seed: int = 0) -> tuple[dict[str, float], float]:
    """{parameter: coverage} of 90 % intervals, and the share of fits that are called wrong."""
    with jax.enable_x64(True):
        random = np.random.default_rng(seed)
        tables = [case.table(random, people) for _ in range(studies)]
        first = one_by_one(assemble(tables[0], case.formula), tables[0])
        fits = Fits(first)
        held = dict.fromkeys(case.truth, 0)
        wrong = 0
        for place, table in enumerate(tables):
            analysis = one_by_one(first, table)
            sites = fits.of(analysis, random)
            found = analysis.parameters(sites)
            for name, truth in case.truth.items():
                low, high = np.quantile(found[name], [0.05, 0.95])
                held[name] += bool(low <= truth <= high)
            expected = checked(analysis, None, sites, place)
            wrong += Verdict.of_findings(expected.findings()).bad
    return {name: count / studies for name, count in held.items()}, wrong / studies


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each parameter of each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--people", type=int, help="of each study; by default as many as its case has")
    parser.add_argument("--case", choices=list(CASES), action="append")
    arguments = parser.parse_args(argv)
    asked = [(name, arguments.studies, arguments.people) for name in arguments.case or CASES]
    for lines in starmap(lines_of, asked):
        print(*lines, sep="\n", flush=True)


def lines_of(name: str, studies: int, people: int | None) -> list[str]:
    """What is printed of one case."""
    begin, case = time.time(), CASES[name]
    coverage, wrong = measured(case, studies, people or case.people)
    return [
        f"{name}: {studies} studies in {time.time() - begin:.0f} s, {wrong:.1%} called wrong",
        *[f"  {parameter:20} {share:6.1%}" for parameter, share in coverage.items()],
    ]


if __name__ == "__main__":
    main()
