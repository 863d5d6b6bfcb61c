"""What analyses cost: ten million reports in 240 cells, and against data augmentation.

    python -m benchmarks.analyses_cost [--only cells augmentation] [--people N …] [--tiny]

cells: a yes/no in 240 cells, of 10⁴ and of 10⁷ people, from summaries by cell. augmentation: effective
draws a second of NUTS on the counted likelihood, beside a literal version of what R's `dapper` does (Ju,
Awan, Gong, Rao 2022): a true answer for each report, redrawn by Metropolis's rule report by report, and
coefficients given them. Times are of a second fit, with compiled programs; `taskset -c 0,1` for two cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from benchmarks.sizes import Size, add_sizes
from inference.analyses.analysing import analyse_table, model_of
from inference.analyses.assembling import assemble
from inference.analyses.reports import table_of_reports
from inference.analyses.table import Table
from inference.results.convergence import mixing
from inference.results.posterior import Posterior
from inference.sampling import sample
from ldp_client import mechanism_for
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.cells import cell_at

Values = NDArray[np.float64]
HEAD = {"format": "ldpkit.study/1", "id": "cost", "version": 1, "title": "What analyses cost"}
CELLS_FORMULA = "ever ~ region + sex + age"


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a fit gives, its seconds, and its processor's."""
    wall, processor = time.perf_counter(), time.process_time()
    found = fit()
    return found, time.perf_counter() - wall, time.process_time() - processor


def told(found: Posterior) -> str:
    """By which method, and what its draws are worth."""
    least = min(row["ess_bulk"] for row in found.rows().values())
    return f"{found.method}, least effective draws {least:,.0f}, chains ok: {not found.verdict.reasons}"


def study_in_cells(epsilon: str = "1") -> Study:
    """A yes/no, and 240 cells of region, sex and age."""
    mechanism = {"name": "randomized_response", "epsilon": epsilon}
    question = {"id": "ever", "ask": "yes_no", "mechanism": mechanism, "model": {"name": "bernoulli"}}
    public = [
        {"id": "region", "choices": ["north", "south", "east", "west"]},
        {"id": "sex", "choices": ["f", "m"]},
        {"id": "age", "bounds": ["20", "78"], "step": "2"},
    ]
    return Study({**HEAD, "questions": [question], "public": public})


def summary_in_cells(study: Study, people: int, seed: int = 0) -> Summary:
    """A summary by cell, as a collector keeps it, drawn count by count."""
    random = np.random.default_rng(seed)
    mechanism: Any = mechanism_for(study.questions[0])
    sizes = random.multinomial(people, random.dirichlet(np.full(study.cells, 20.0)))
    cells = {}
    for number, size in enumerate(sizes):
        region, sex, age = cell = cell_at(study, number)
        eta = -1 + 0.5 * (region == "west") - 0.3 * (sex == "m") + 0.02 * (float(age) - 50)
        yes = random.binomial(size, 1 / (1 + np.exp(-eta)))
        said = random.binomial(yes, float(mechanism.p)) + random.binomial(size - yes, float(mechanism.q))
        cells[cell] = {"ever": QuestionSummary(int(size), np.asarray([size - said, said], np.int64))}
    whole = QuestionSummary(people, sum(parts["ever"].values for parts in cells.values()))
    return Summary(study.id, study.version, study.digest, {"ever": whole}, cells)


def print_cells(size: Size) -> None:
    """Cost of a fit of few and of very many people in the same cells."""
    people, repeats = size.of(((10_000, 10_000_000), 3), ((10_000, 10_000_000), 3), ((500, 5_000), 0))
    formula = size.of(CELLS_FORMULA, CELLS_FORMULA, "ever ~ 1")
    print(f"a yes/no in 240 cells: {formula}")
    study = study_in_cells()
    summaries = [summary_in_cells(study, n) for n in people]
    seconds: list[list[float]] = [[], []]
    for turn, (place, summary) in product(range(repeats + 1), enumerate(summaries)):

        def fit(summary: Summary = summary) -> Posterior:
            table = table_of_reports(study, summary, ["ever", "region", "sex", "age"])
            return analyse_table(table, formula)

        found, _, processor = timed(fit)
        # The first turn compiles.
        if turn or not repeats:
            seconds[place].append(processor)
        if not turn:
            print(f"  {people[place]:,} people: {found.form}; {told(found)}")
    few, many = map(min, seconds)
    print(
        f"  processor {few:.2f} s of {people[0]:,}, {many:.2f} s of {people[1]:,}: {many / few:.2f} ×",
        flush=True,
    )


def table_in_cells(study: Study, people: int) -> Table:
    """The same as one row for each report, without the study's own reading."""
    summary = summary_in_cells(study, people)
    return table_of_reports(study, summary, ["ever", "region", "sex", "age"])


class Augmentation:
    """Data augmentation of a yes/no under randomised response, with a logit of public columns.

    One sweep: every report's true answer gets a proposal from the model, accepted by the ratio of its
    channel, one report after the other; then the coefficients, by Metropolis's rule with a Gaussian proposal
    about their conditional mode. `dapper` leaves that second step to its user.
    """

    NEWTON = 8

    def __init__(self, columns: Values, reports: Values, channel: Values) -> None:
        self.columns, self.reports = jnp.asarray(columns), jnp.asarray(reports.astype(int))
        self.channel, self.scale = jnp.asarray(channel), 2.5
        self._run = jax.jit(self._sweeps, static_argnums=2)

    def draws(self, sweeps: int, seed: int) -> Values:
        """Coefficients (sweeps, columns)."""
        answers = self.reports
        key = jax.random.key(seed)
        return np.asarray(self._run(key, answers, sweeps))

    def _sweeps(self, key: Array, answers: Array, sweeps: int) -> Array:
        def sweep(state: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
            own, other = jax.random.split(key)
            beta, answers = state
            answers = self._answers(own, beta, answers)
            beta = self._coefficients(other, beta, answers)
            return (beta, answers), beta

        start = (jnp.zeros(self.columns.shape[1]), answers)
        return jax.lax.scan(sweep, start, jax.random.split(key, sweeps))[1]

    def _answers(self, key: Array, beta: Array, answers: Array) -> Array:
        """Every report in its turn."""
        uniform = jax.random.uniform(key, (len(answers), 2))

        def one(_: None, row: tuple[Array, Array, Array, Array]) -> tuple[None, Array]:
            column, answer, report, draw = row
            proposed = (draw[0] < jax.nn.sigmoid(column @ beta)).astype(int)
            ratio = self.channel[proposed, report] / self.channel[answer, report]
            return None, jnp.where(draw[1] < ratio, proposed, answer)

        return jax.lax.scan(one, None, (self.columns, answers, self.reports, uniform))[1]

    def _coefficients(self, key: Array, beta: Array, answers: Array) -> Array:
        def density(beta: Array) -> Array:
            eta = self.columns @ beta
            return jnp.sum(answers * eta - jax.nn.softplus(eta)) - beta @ beta / (2 * self.scale**2)

        def precision(at: Array) -> Array:
            weight = jax.nn.sigmoid(self.columns @ at) * jax.nn.sigmoid(-(self.columns @ at))
            return (self.columns.T * weight) @ self.columns + jnp.eye(len(at)) / self.scale**2

        def newton(_: int, at: Array) -> Array:
            return at + jnp.linalg.solve(precision(at), jax.grad(density)(at))

        mode = jax.lax.fori_loop(0, self.NEWTON, newton, jnp.zeros_like(beta))
        factor = jnp.linalg.cholesky(precision(mode))
        own, other = jax.random.split(key)
        white = jax.random.normal(own, beta.shape)
        proposed = mode + jax.scipy.linalg.solve_triangular(factor.T, white)
        before = factor.T @ (beta - mode)
        log_ratio = density(proposed) - density(beta) + (white @ white - before @ before) / 2
        return jnp.where(jnp.log(jax.random.uniform(other)) < log_ratio, proposed, beta)


def effective(draws: dict[str, Values]) -> float:
    """The least effective draws of all parameters."""
    return min(mixing(draws).ess_bulk.values())


def print_augmentation(people: Sequence[int], size: Size) -> None:
    """Effective draws a second, of NUTS and of augmentation, on the same reports and the same columns."""
    sweeps, formula = size.of(400, 400, 40), size.of(CELLS_FORMULA, CELLS_FORMULA, "ever ~ sex")
    print(f"against data augmentation: {formula}")
    study = study_in_cells()
    for n in people:
        table = table_in_cells(study, n)
        analysis = assemble(table, formula)
        model = model_of(analysis)
        sample(model, 0)
        drawn, ours, _ = timed(lambda model=model: sample(model, 1))
        own = effective(analysis.parameters(drawn.sites)) / ours
        with jax.enable_x64(True):
            slow = augmentation_of(analysis)
            slow.draws(sweeps, 0)
            draws, theirs, _ = timed(lambda slow=slow: slow.draws(sweeps, 1))
        kept = draws[sweeps // 4 :]
        worth = {str(place): kept[None, :, place] for place in range(kept.shape[1])}
        each = effective(worth) / theirs * 0.75
        print(
            f"  {n:,} people: NUTS {own:,.1f} effective draws a second, augmentation {each:,.3f} "
            f"({theirs / sweeps * 1e3:.1f} ms a sweep): {own / each:,.0f} ×",
            flush=True,
        )


def augmentation_of(analysis: Any) -> Augmentation:
    """The same analysis, report by report, on the same standardised columns."""
    table = analysis.table
    columns = np.concatenate([analysis.law.standard[:, 0], np.ones((len(table.frame), 1))], axis=1)
    rows = np.repeat(np.arange(len(table.counts)), table.counts)
    vectors = analysis.response.choices.vectors[0, :-1]
    channel = vectors[np.argsort(vectors[:, 1])].T
    order = np.argsort(np.argsort(vectors[:, 1]))
    return Augmentation(columns[table.cell[rows]], order[table.private["ever"].codes[rows]], channel)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a block of each row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=["cells", "augmentation"])
    parser.add_argument(
        "--people", type=int, nargs="+", default=[2_000, 20_000, 200_000], help="of augmentation"
    )
    add_sizes(parser)
    arguments = parser.parse_args(argv)
    wanted = arguments.only or ["cells", "augmentation"]
    if "cells" in wanted:
        print_cells(arguments.size)
    if "augmentation" in wanted:
        print_augmentation(arguments.people, arguments.size)


if __name__ == "__main__":
    main()
