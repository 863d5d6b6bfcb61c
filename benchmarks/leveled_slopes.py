"""Whether 90 % intervals hold logistic slopes whose features are no normal numbers, from one sign a person.

python -m benchmarks.leveled_slopes [--studies 200] [--people 20000 200000] [--epsilon 1] [--only NAME]

Fixed populations, not draws of a prior: a yes/no of a tenth of the people, three levels, a skewed number in
eight bins, and all three, of which the number depends on the others. Each study asks people of its own,
through the mechanism itself. Printed for each slope: the truth, mean and sd of the posterior means, the mean
posterior sd, and the share of intervals that hold the truth.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.design.simulated_posteriors import posterior_draws
from inference.models import model_for
from ldp_client import mechanism_for
from ldp_client.bulk import randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Question, Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

HEAD = {"format": "ldpkit.study/1", "id": "slopes", "version": 1, "title": "Slopes"}
FIELDS: dict[str, dict[str, Any]] = {
    "smokes": {"ask": "yes_no"},
    "job": {"ask": "choice", "choices": ["none", "part", "full"]},
    "load": {"bounds": ["-1", "1"], "cuts": ["-0.875", "-0.75", "-0.625", "-0.5", "-0.25", "0", "0.25"]},
}
SLOPES = {"smokes": 1.5, "job=part": 1.0, "job=full": -0.5, "load": 2.0}
POPULATIONS = {
    "yes/no": ["smokes"],
    "three levels": ["job"],
    "skewed, in bins": ["load"],
    "mixed": ["smokes", "job", "load"],
}


def question_of(names: list[str], epsilon: str) -> Question:
    asked = {
        "id": "risk",
        "ask": "record",
        "features": [{"id": name, **FIELDS[name]} for name in names],
        "response": {"id": "ill", "ask": "yes_no"},
        "mechanism": {"name": "sampled_products", "epsilon": epsilon},
        "model": {"name": "logistic_regression"},
    }
    return Study({**HEAD, "questions": [asked]}).questions[0]


def people_of(names: list[str], n: int, random: Generator) -> dict[str, NDArray[Any]]:
    """Answers of n people. The number is skewed, and larger among those who smoke or do not work."""
    job, smokes = random.choice(3, n, p=[0.3, 0.2, 0.5]), random.random(n) < 0.1
    smokes |= (job == 0) & (random.random(n) < 0.2)
    # Where it is asked alone it depends on nobody's other answers.
    alone = len(names) == 1
    load = 2 * random.beta(1 + (0 if alone else smokes + 0.5 * (job == 0)), 4, n) - 1
    line = np.full(n, -0.3)
    if "smokes" in names:
        line = line + SLOPES["smokes"] * smokes
    if "job" in names:
        line = line + np.array([0, SLOPES["job=part"], SLOPES["job=full"]])[job]
    if "load" in names:
        line = line + SLOPES["load"] * load
    answers = {"smokes": smokes, "job": np.asarray(FIELDS["job"]["choices"])[job], "load": load}
    ill = random.random(n) < 1 / (1 + np.exp(-line))
    return {**{name: answers[name] for name in names}, "ill": ill}


def counts_of(question: Question, names: list[str], n: int, random: Generator) -> QuestionSummary:
    mechanism = mechanism_for(question)
    quantised = quantise_many(mechanism, people_of(names, n, random))
    payloads = randomise_many(mechanism, quantised, NotForRealAnswers(random.bytes))
    return QuestionSummary(n, REDUCTIONS["sampled_products"].reduce(mechanism, payloads))


def lines_of(name: str, n: int, epsilon: str, studies: int, seed: int) -> list[str]:
    names = POPULATIONS[name]
    question = question_of(names, epsilon)
    generators = np.random.default_rng([seed, n]).spawn(studies)
    models = [model_for(question, counts_of(question, names, n, random)) for random in generators]
    found = posterior_draws(models, seed, 400, 1)
    lines = []
    for slope, truth in SLOPES.items():
        draws = found.get(f"coefficient[{slope}]")
        if draws is None:
            continue
        low, high = np.quantile(draws, [0.05, 0.95], axis=1)
        means, covered = draws.mean(axis=1), np.mean((low <= truth) & (truth <= high))
        lines.append(
            f"{name:16} {n:8,} {slope:9} {truth:6.2f} {means.mean():7.3f} {means.std():6.3f} "
            f"{draws.std(axis=1).mean():6.3f} {covered:7.1%}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--people", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=POPULATIONS, default=list(POPULATIONS))
    given = parser.parse_args()
    print("population         people slope      truth    mean     sd  its sd  covered")
    for n in given.people:
        for name in given.only:
            for line in lines_of(name, n, given.epsilon, given.studies, given.seed):
                print(line, flush=True)


if __name__ == "__main__":
    main()
