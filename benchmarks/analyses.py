"""Do intervals of analyses contain the truth? Simulated surveys, truths from the prior, ranks and coverage.

    python -m benchmarks.analyses [--studies 200] [--case NAME …]

Of every case so many surveys are simulated and fitted with NUTS, side by side in one program. Of each
parameter it prints how many of the 90 % intervals contain the truth, and the p-value of uniform ranks (Talts
et al. 2018).
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, starmap
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpyro import handlers
from scipy import stats

from inference.analyses.analysing import model_of
from inference.analyses.crossing import crossing_of
from inference.analyses.likelihood import joint
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled, assemble
from inference.analyses.table import Private, Table
from inference.design.simulated_posteriors import posterior_draws
from inference.models.base import Model
from inference.sampling.space import sample_prior
from tests.kit.channels import known_channel

Values = np.ndarray
# Among 199 draws a truth has one of 200 ranks, and 90 % of these are the middle 180: what interpolated
# quantiles of so few draws hold is 89 %.
DRAWS, THIN, BINS = 199, 2, 10


def randomized(epsilon: float, answers: int) -> Values:
    """Randomised response of so many answers: P(report | answer)."""
    truth = np.exp(epsilon) / (np.exp(epsilon) + answers - 1)
    return np.where(np.eye(answers) == 1, truth, (1 - truth) / (answers - 1))


@dataclass(frozen=True)
class Simulated:
    """One model for each study, and the truths {parameter: (studies,)}."""

    models: list[Model]
    truths: dict[str, Values]


def skeleton(
    public: pd.DataFrame, sizes: Values, matrices: Mapping[str, Values], outcome: str | None = None
) -> Table:
    """Every report of every cell once, so that all studies have the same patterns.

    public: distinct rows, `sizes` people each. outcome: a public yes/no to be drawn too. A cell's people
    stand on its first pattern, until a study is drawn.
    """
    reports = list(
        product(*(range(len(matrix[0])) for matrix in matrices.values()), *([(0, 1)] if outcome else []))
    )
    rows = np.repeat(np.arange(len(public)), len(reports))
    frame = public.iloc[rows].reset_index(drop=True)
    codes = np.tile(np.asarray(reports), (len(public), 1))
    private: dict[str, Private] = {}
    for place, (name, matrix) in enumerate(matrices.items()):
        answers = ["no", "yes"] if len(matrix) == 2 else [f"a{one}" for one in range(len(matrix))]
        private[name] = known_channel(name, answers, codes[:, place], matrix)
    if outcome:
        frame[outcome] = codes[:, -1]
    counts = np.zeros(len(rows), np.int64)
    counts[:: len(reports)] = sizes
    return Table(frame, private, counts)


def of_formula(
    table: Table, formula: str, studies: int, random: np.random.Generator, census: Values | None = None
) -> Simulated:
    """Truths from the analysis's prior, and reports by its own likelihood."""
    analysis = assemble(table, formula)
    model = model_of(analysis)
    if census is not None:
        model = replace(model, parameters=_with_total(analysis, census))
    sites = sample_prior(model, int(random.integers(1 << 31)), studies)
    truths = model.parameters(sites)
    models = []
    for study in range(studies):
        chances = _chances(analysis, model, {name: values[study] for name, values in sites.items()})
        counts = drawn(chances, analysis.table.cell, analysis.table.sizes, random)
        models.append(replace(model, data={**model.data, "counts": counts}))
    return Simulated(models, {name: np.asarray(values) for name, values in truths.items()})


def _with_total(analysis: Assembled, census: Values) -> Callable[[Any], dict[str, Values]]:
    """The parameters, and the expected number of people with the event in a census of the same cells."""

    def parameters(sites: Any) -> dict[str, Values]:
        found = analysis.parameters(sites)
        depth = next(iter(found.values())).ndim
        chains = {name: values[None] if depth == 1 else values for name, values in sites.items()}
        share = Predicted(analysis, chains).average(analysis.table.frame, census)[..., 1]
        return {**found, "total": (share[0] if depth == 1 else share) * census.sum()}

    return parameters


def _chances(analysis: Assembled, model: Model, sites: Mapping[str, Values]) -> Values:
    """P(pattern | cell) of every pattern at one truth."""
    with jax.enable_x64(True):
        data = {name: jax.numpy.asarray(value) for name, value in model.data.items()}

        def log_chances(sites: Any) -> Any:
            with handlers.block(), handlers.substitute(data=sites):
                return analysis.each(data, *analysis.drawn(data))

        return np.exp(np.asarray(log_chances(sites)))


def drawn(chances: Values, cell: Values, sizes: Values, random: np.random.Generator) -> Values:
    """Counts of patterns: each cell's people are drawn by its patterns' chances."""
    counts = np.zeros(len(chances))
    for place, size in enumerate(sizes):
        inside = np.flatnonzero(cell == place)
        counts[inside] = random.multinomial(size, chances[inside] / chances[inside].sum())
    return counts


def of_crossing(table: Table, names: Sequence[str], studies: int, random: np.random.Generator) -> Simulated:
    """Joint shares from their own prior, and reports of all columns."""
    crossing = crossing_of(table, names)
    model, law, table = crossing.model(), crossing.law, crossing.table
    truths = sample_prior(model, int(random.integers(1 << 31)), studies)
    vectors = joint([one.choices.vectors[0, one.codes] for one in crossing.columns])
    models = [
        replace(
            model, data={**model.data, "counts": drawn(vectors @ one[0], table.cell, table.sizes, random)}
        )
        for one in law.shares(truths)
    ]
    return Simulated(models, model.parameters(truths))


def public_cells(random: np.random.Generator, n: int) -> tuple[pd.DataFrame, Values]:
    """Three public columns in 24 cells, and how many of n people are in each."""
    rows = list(product(["east", "north", "west"], ["f", "m"], [25, 40, 55, 70]))
    frame = pd.DataFrame(rows, columns=["region", "sex", "age"])
    return frame, random.multinomial(n, random.dirichlet(np.full(len(frame), 5.0)))


def outcome_case(n: int) -> Callable[[int, np.random.Generator], Simulated]:
    """A yes/no at ε = 2 by three public columns, and a total over a census of the same cells."""

    def build(studies: int, random: np.random.Generator) -> Simulated:
        frame, sizes = public_cells(random, n)
        table = skeleton(frame, sizes, {"ever": randomized(2, 2)})
        census = random.integers(100, 5000, len(frame)).astype(float)
        return of_formula(table, "ever ~ region + sex + age", studies, random, census)

    return build


def predictor_case(studies: int, random: np.random.Generator) -> Simulated:
    """A public yes/no by a private choice of four at ε = 3, and sex."""
    frame, sizes = pd.DataFrame({"sex": ["f", "m"]}), np.asarray([2500, 2500])
    table = skeleton(frame, sizes, {"job": randomized(3, 4)}, outcome="died")
    return of_formula(table, "died ~ job + sex", studies, random)


def both_case(studies: int, random: np.random.Generator) -> Simulated:
    """A private yes/no by a private choice of three, each at ε = 3, and sex."""
    frame, sizes = pd.DataFrame({"sex": ["f", "m"]}), np.asarray([2500, 2500])
    table = skeleton(frame, sizes, {"ever": randomized(3, 2), "job": randomized(3, 3)})
    return of_formula(table, "ever ~ job + sex", studies, random)


def clinics_case(studies: int, random: np.random.Generator) -> Simulated:
    """30 clinics of 5 to 200 people."""
    frame = pd.DataFrame({"clinic": range(30)})
    sizes = np.linspace(5, 200, 30).astype(int)
    table = skeleton(frame, sizes, {"ever": randomized(2, 2)})
    return of_formula(table, "ever ~ 1 + (1 | clinic)", studies, random)


def crossing_case(studies: int, random: np.random.Generator) -> Simulated:
    """A yes/no and a choice of six, each at ε = 3, of 5,000 people."""
    table = skeleton(
        pd.DataFrame(index=range(1)), np.asarray([5000]), {"ever": randomized(3, 2), "job": randomized(3, 6)}
    )
    return of_crossing(table, ["ever", "job"], studies, random)


CASES: Mapping[str, Callable[[int, np.random.Generator], Simulated]] = {
    "outcome-1000": outcome_case(1_000),
    "outcome-10000": outcome_case(10_000),
    "predictor": predictor_case,
    "both": both_case,
    "clinics": clinics_case,
    "crossing": crossing_case,
}


@dataclass(frozen=True)
class Row:
    """Of one parameter: the share of truths within the middle 90 % of ranks; p of uniform ranks."""

    coverage: float
    ranks_p: float


def measured(simulated: Simulated, seed: int = 0, draws: int = DRAWS) -> dict[str, Row]:
    """Fit every study, and hold its intervals and ranks against the truths."""
    found = posterior_draws(simulated.models, seed, draws, THIN)
    rows = {}
    for name, truth in simulated.truths.items():
        ranks = np.sum(found[name] < truth[:, None], axis=1)
        counts = np.histogram(ranks, np.linspace(0, draws + 1, BINS + 1))[0]
        inside = np.abs(ranks - draws / 2) < 0.9 * (draws + 1) / 2
        rows[name] = Row(float(np.mean(inside)), float(stats.chisquare(counts).pvalue))
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table of each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--case", choices=list(CASES), action="append")
    arguments = parser.parse_args(argv)
    asked = [(name, arguments.studies) for name in arguments.case or CASES]
    for lines in starmap(lines_of, asked):
        print(*lines, sep="\n", flush=True)


def lines_of(name: str, studies: int) -> list[str]:
    """What is printed of one case."""
    begin, used = time.time(), time.process_time()
    rows = measured(CASES[name](studies, np.random.default_rng(1)))
    used, wall = time.process_time() - used, time.time() - begin
    return [
        f"{name}: {studies} studies in {wall:.0f} s, {used:.0f} s of one core",
        *[f"  {name:32} {row.coverage:6.1%}   ranks p = {row.ranks_p:.3f}" for name, row in rows.items()],
    ]


if __name__ == "__main__":
    main()
