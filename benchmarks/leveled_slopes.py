"""Whether 90 % intervals hold logistic slopes whose features are no normal numbers, from one sign a person.

python -m benchmarks.leveled_slopes [--studies 200] [--people 20000 200000] [--epsilon 1] [--only NAME]
    [--truths prior]

Fixed populations, not draws of a prior: a yes/no of a tenth of the people, three levels, a skewed number in
eight bins, and all three, of which the number depends on the others. Each study asks people of its own: what
they send is drawn from its exact law, by the devices' own entries and quadrature over the number. Printed for
each slope: the truth, mean and sd of the posterior means, the mean posterior sd, and the share of intervals
that hold the truth. With `--truths prior` each study has a population of its own, drawn from the model's
prior: then 90 % hold, whatever the prior is, unless the posterior is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import product, starmap
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from inference.design.calibration import prior_truths
from inference.design.simulated_posteriors import posterior_draws
from inference.models import model_for
from inference.models.sampled_products import cell_probabilities
from ldp_client import mechanism_for
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question, Study
from summaries import QuestionSummary

Values = NDArray[np.float64]
HEAD = {"format": "ldpkit.study/1", "id": "slopes", "version": 1, "title": "Slopes"}
FIELDS: dict[str, dict[str, Any]] = {
    "smokes": {"ask": "yes_no"},
    "job": {"ask": "choice", "choices": ["none", "part", "full"]},
    "load": {"bounds": ["-1", "1"], "cuts": ["-0.875", "-0.75", "-0.625", "-0.5", "-0.25", "0", "0.25"]},
}
SLOPES = {"smokes": 1.5, "job=part": 1.0, "job=full": -0.5, "load": 2.0}
JOBS = (0.3, 0.2, 0.5)
DRAWS = 400
# Of the quadrature within each bin.
NODES = 20
POPULATIONS = {
    "yes/no": ["smokes"],
    "three levels": ["job"],
    "skewed, in bins": ["load"],
    "mixed": ["smokes", "job", "load"],
}


def question_of(names: list[str], epsilon: str) -> Question:
    """The regression of these features."""
    asked = {
        "id": "risk",
        "ask": "record",
        "features": [{"id": name, **FIELDS[name]} for name in names],
        "response": {"id": "ill", "ask": "yes_no"},
        "mechanism": {"name": "sampled_products", "epsilon": epsilon},
        "model": {"name": "logistic_regression"},
    }
    return Study({**HEAD, "questions": [asked]}).questions[0]


def people_of(names: list[str], added: float = 0.0) -> tuple[dict[str, NDArray[Any]], Values]:
    """Answers of all kinds of people, and the share of each; added: to everybody's log-odds.

    The number is skewed, and larger among those who smoke or do not work.
    """
    ends = np.asarray([-1.0, *map(float, FIELDS["load"]["cuts"]), 1.0])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(ends)[:, None] / 2
    load, dense = (ends[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
    # Where it is asked alone it depends on nobody's other answers.
    alone = len(names) == 1
    columns: list[list[Any]] = [[], [], [], [], []]
    for job, smokes, ill in product(range(3), (False, True), (False, True)):
        smoking = 1 - 0.9 * (0.8 if job == 0 else 1.0)
        law = dense * stats.beta(1 + (0 if alone else smokes + 0.5 * (job == 0)), 4, -1, 2).pdf(load)
        line = np.full(len(load), -0.3 + added)
        if "smokes" in names:
            line += SLOPES["smokes"] * smokes
        if "job" in names:
            line += (0, SLOPES["job=part"], SLOPES["job=full"])[job]
        if "load" in names:
            line += SLOPES["load"] * load
        share = JOBS[job] * (smoking if smokes else 1 - smoking) * expit(line if ill else -line)
        kind = (FIELDS["job"]["choices"][job], smokes, load, ill, share * law / law.sum())
        for column, value in zip(columns, kind, strict=True):
            column.append(np.broadcast_to(value, load.shape))
    jobs, smoke, loads, ills, shares = map(np.concatenate, columns)
    answers = {"smokes": smoke, "job": jobs, "load": loads}
    return {**{name: answers[name] for name in names}, "ill": ills}, shares


def fixed_studies(
    question: Question, names: list[str], studies: int
) -> tuple[list[Mapping[str, float]], Any]:
    """The same truth for each, and the moments of devices' entries over these people."""
    answers, shares = people_of(names)
    entries = np.asarray(quantise_many(mechanism_for(question), answers)) / UNIT
    return [SLOPES] * studies, [{"second": (entries.T * shares) @ entries}] * studies


def prior_studies(question: Question, studies: int, seed: int) -> tuple[list[Mapping[str, float]], Any]:
    """A truth from the prior for each."""
    truths = prior_truths(question, studies, seed)
    slopes = [
        {name[len("coefficient[") : -1]: value for name, value in truth.parameters.items()}
        for truth in truths
    ]
    return slopes, [truth.sites for truth in truths]


def lines_of(name: str, n: int, given: argparse.Namespace) -> list[str]:
    names = POPULATIONS[name]
    question = question_of(names, given.epsilon)
    mechanism = cast(SampledProducts, mechanism_for(question))
    if given.truths == "prior":
        truths, sites = prior_studies(question, given.studies, given.seed)
    else:
        truths, sites = fixed_studies(question, names, given.studies)
    generators = np.random.default_rng([given.seed, n]).spawn(given.studies)
    models = [
        model_for(question, QuestionSummary(n, random.multinomial(n, cell_probabilities(mechanism, one))))
        for random, one in zip(generators, sites, strict=True)
    ]
    found = posterior_draws(models, given.seed, DRAWS, 1)
    lines = []
    for slope in SLOPES:
        draws = found.get(f"coefficient[{slope}]")
        if draws is None:
            continue
        lines.append(
            f"{name:16} {n:8,} {slope:15} {row_of(np.asarray([one[slope] for one in truths]), draws)}"
        )
    return lines


def row_of(truth: Values, draws: Values) -> str:
    """Of truths (studies,) and draws (studies, draws) what is printed of a slope."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=1)
    means, covered = draws.mean(axis=1), np.mean((low <= truth) & (truth <= high))
    return (
        f"{truth.mean():6.2f} {means.mean():7.3f} {means.std():6.3f} "
        f"{draws.std(axis=1).mean():6.3f} {covered:7.1%}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--people", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=POPULATIONS, default=list(POPULATIONS))
    parser.add_argument("--truths", choices=["fixed", "prior"], default="fixed")
    given = parser.parse_args(argv)
    print("population         people slope            truth    mean     sd  its sd  covered")
    asked = [(name, n, given) for n in given.people for name in given.only]
    for lines in starmap(lines_of, asked):
        print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
