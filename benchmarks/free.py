"""How often the intervals of `free`, a number without a law, hold the truth, and how wide they are.

python -m benchmarks.free [--only LAW …] [--epsilon 1 4] [--people 1000 10000 100000] [--studies 200]

Answers of each law are clipped to 0 … 1 and perturbed by Laplace noise, as devices do. Printed for each cell:
in what share of studies the 90 % interval holds the truth, for the mean, the sd and the shares above fixed
places; and the mean's interval, relative to that of the plain average of the unclipped reports and, where a
named law is the right one, to its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.design.simulated_posteriors import Parameters, posterior_draws
from inference.models import model_for
from ldp_client import mechanism_for
from ldp_client.bulk import randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Question, Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

Values = NDArray[np.float64]
Answers = Callable[[Generator, int], Values]

HEAD = {"format": "ldpkit.study/1", "id": "free", "version": 1, "title": "Without a law"}
DRAWS = 400
TAILS = (0.05, 0.95)
# Of the answers that stand for a law's truth.
MANY = 4_000_000


def bimodal(random: Generator, n: int) -> Values:
    return np.where(random.random(n) < 0.5, random.normal(0.25, 0.06, n), random.normal(0.75, 0.06, n))


def heaped(random: Generator, n: int) -> Values:
    """Half of all round to tenths."""
    exact = random.normal(0.45, 0.15, n)
    return np.where(random.random(n) < 0.5, np.round(10 * exact) / 10, exact)


def zero_inflated(random: Generator, n: int) -> Values:
    return np.where(random.random(n) < 0.4, 0.0, random.gamma(4.0, 0.1, n))


LAWS: dict[str, Answers] = {
    "normal": lambda random, n: random.normal(0.5, 0.12, n),
    "exponential": lambda random, n: random.exponential(0.15, n),
    "lognormal": lambda random, n: random.lognormal(np.log(0.2), 0.7, n),
    "bimodal": bimodal,
    "heaped": heaped,
    "zero-inflated": zero_inflated,
    "all at a bound": lambda _random, n: np.zeros(n),
}
NAMED = ("normal", "exponential", "lognormal")


def question_of(epsilon: str, model: str | None = None) -> Question:
    asked = {"id": "x", "ask": "number", "bounds": ["0", "1"]}
    asked["mechanism"] = {"name": "laplace", "epsilon": epsilon}
    return Study(
        {**HEAD, "questions": [{**asked, **({"model": {"name": model}} if model else {})}]}
    ).questions[0]


def summary_of(question: Question, answers: Values, random: Generator) -> tuple[QuestionSummary, float]:
    """The summary of perturbed answers, and the standard error of the reports' plain average."""
    mechanism = mechanism_for(question)
    payloads = randomise_many(mechanism, quantise_many(mechanism, answers), NotForRealAnswers(random.bytes))
    variance = np.var(np.clip(answers, 0, 1)) + 2 / float(question.mechanism.epsilon) ** 2
    found = QuestionSummary(len(answers), REDUCTIONS[mechanism.name].reduce(mechanism, payloads))
    return found, float(np.sqrt(variance / len(answers)))


def truth_of(law: str, parameters: Parameters) -> dict[str, float]:
    answers = np.clip(LAWS[law](np.random.default_rng(1), MANY), 0, 1)
    found = {"mean": float(answers.mean()), "sd": float(answers.std())}
    for name in parameters:
        if name.startswith("above["):
            found[name] = float(np.mean(answers > float(name[6:-1])))
    return found


def covered(draws: Values, truth: float) -> float:
    """The share of studies (studies, draws) whose interval holds the truth, to the rounding of sums."""
    low, high = np.quantile(draws, TAILS, axis=1)
    return float(np.mean((low - 1e-9 <= truth) & (truth <= high + 1e-9)))


def width(draws: Values) -> float:
    return float(np.mean(np.diff(np.quantile(draws, TAILS, axis=1), axis=0)))


def fitted(
    law: str, epsilon: str, n: int, studies: int, seed: int
) -> tuple[Parameters, list[QuestionSummary], float]:
    question, summaries, errors = question_of(epsilon), [], []
    for random in np.random.default_rng(seed).spawn(studies):
        found, error = summary_of(question, LAWS[law](random, n), random)
        summaries.append(found)
        errors.append(error)
    draws = posterior_draws([model_for(question, one) for one in summaries], seed, DRAWS)
    return draws, summaries, float(np.mean(errors))


def mean_of_named(law: str, draws: Parameters) -> Values:
    """Draws of the clipped answers' mean under the named law that is the right one."""
    grid = np.linspace(0, 1, 2001)[1:]
    if law == "normal":
        from scipy.stats import norm

        above = norm.sf(grid, draws["mean"][..., None], draws["sd"][..., None])
    elif law == "exponential":
        above = np.exp(-draws["rate"][..., None] * grid)
    else:
        from scipy.stats import norm

        above = norm.sf(np.log(grid), draws["log_mean"][..., None], draws["log_sd"][..., None])
    return np.asarray(above.mean(axis=-1))


def row(law: str, epsilon: str, n: int, studies: int, seed: int) -> str:
    began = time.monotonic()
    draws, summaries, error = fitted(law, epsilon, n, studies, seed)
    truth = truth_of(law, draws)
    took = (time.monotonic() - began) / studies
    held = {name: covered(draws[name], value) for name, value in truth.items()}
    places = [held[name] for name in held if name.startswith("above[")]
    relative = f"{width(draws['mean']) / (2 * 1.6449 * error):.2f}"
    if law in NAMED:
        named = posterior_draws([model_for(question_of(epsilon, law), one) for one in summaries], seed, DRAWS)
        means = np.stack([mean_of_named(law, {k: v[i] for k, v in named.items()}) for i in range(studies)])
        relative += f", named {width(draws['mean']) / width(means):.2f}"
    each = " ".join(f"{share:.2f}" for share in places)
    return (
        f"{law:15} epsilon {epsilon} n {n:>7}: "
        f"mean {held['mean']:.2f} sd {held['sd']:.2f} above {np.mean(places):.2f} "
        f"({each}); width: average {relative}; {took:.1f} s a fit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=LAWS, default=list(LAWS), metavar="LAW")
    parser.add_argument("--epsilon", nargs="+", default=["1", "4"])
    parser.add_argument("--people", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for law in given.only:
        for epsilon in given.epsilon:
            for n in given.people:
                print(row(law, epsilon, n, given.studies, given.seed), flush=True)


if __name__ == "__main__":
    main()
