"""Whether sets hold the truth when a share of the reports is false, and how wide they are.

python -m benchmarks.false_reports [--only CASE …] [--share 0.01] [--runs 1000]

Honest people answer and their reports follow their mechanism's law; the others send what they like: random
possible reports; the report that moves the plain estimate most (maximal gain), up or down; the one that moves
the posterior most; or, having seen all honest reports, the maximal gain in the direction in which they err
already. Printed for each: in what share of runs the 90 % set holds the truth of honest people, and its mean
width over (clean width + 2 × share × influence).

Posteriors are normal laws around the maximum of the likelihood: quick enough for thousands of runs.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from math import expm1
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.false_reports.sets import mean_bounds, shares_of_reports
from inference.likelihoods.numbers.noise import noise_channel
from inference.models.number import ANSWERS, cell_edges, cell_middles
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question, Study
from summaries import QuestionSummary
from summaries.reductions.choice import pattern_bits

Values = NDArray[np.float64]
HEAD = {"format": "ldpkit.study/1", "id": "false", "version": 1, "title": "False reports"}
ATTACKS = ("none", "random", "up", "down", "posterior", "adaptive")
EM_STEPS, TINY = 400, 1e-300
ALLOWED = 1.05


class Measured(NamedTuple):
    """coverage: of the set; plain: of the interval. width: of the set, over what is allowed without 1.05."""

    coverage: float
    plain: float
    width: float


@dataclass(frozen=True)
class Case:
    """law (answers, reports): P(report | answer). truth: of honest people. n: all reports.

    likely: (runs, reports) counts -> low, high (runs,), the interval of the quantity. bounds: the same of its
    set at a share. value (reports,): what moves the quantity. influence: the most that one report moves it.
    """

    question: Question
    law: Values
    shares: Values
    truth: float
    n: int
    likely: Callable[[Values], tuple[Values, Values]]
    bounds: Callable[[Values, float], tuple[Values, Values]]
    value: Values
    influence: float


def choice_case(name: str, epsilon: str, shares: list[float], n: int) -> Case:
    """The share of the first of some choices, or of yes."""
    labels = [f"c{place}" for place in range(len(shares))]
    asked = {"id": "q", "ask": "choice", "choices": labels, "mechanism": {"name": name, "epsilon": epsilon}}
    (question,) = Study({**HEAD, "questions": [{**asked, "model": {"name": "multinomial"}}]}).questions
    mechanism = cast(ChoiceMechanism, mechanism_for(question))
    law, supports = set_law(mechanism)
    value = supports[:, 0]

    def bounds(counts: Values, share: float) -> tuple[Values, Values]:
        low, high = [], []
        for row in counts:
            found = shares_of_reports(mechanism, QuestionSummary(n, row.astype(np.int64)))
            assert found is not None
            ends = found.bounds(share)
            low.append(ends[0][0])
            high.append(ends[1][0])
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    true = np.asarray(shares)
    likely = lambda counts: share_intervals(law, counts)  # noqa: E731
    influence = 1 / float(mechanism.p - mechanism.q)
    return Case(question, law, true, shares[0], n, likely, bounds, value, influence)


def set_law(mechanism: ChoiceMechanism) -> tuple[Values, Values]:
    """P(report | answer) (k, reports) in the order of a summary's values, and the supports (reports, k)."""
    k, p, q = mechanism.choices, float(mechanism.p), float(mechanism.q)
    if mechanism.name == "randomized_response":
        return np.where(np.eye(k) == 1, p, q), np.eye(k)
    bits = pattern_bits(k)
    if mechanism.name == "subset_selection":
        size = cast(Any, mechanism).size
        possible = bits.sum(axis=1) == size
        odds = mechanism.odds[0] / mechanism.odds[1]
        weights = np.where(bits.T == 1, odds, 1.0) * possible
        return weights / weights.sum(axis=1, keepdims=True), bits
    found = np.empty((k, len(bits)))
    for answer in range(k):
        chance = np.where(np.arange(k) == answer, p, q)
        found[answer] = np.prod(np.where(bits == 1, chance, 1 - chance), axis=1)
    return found, bits


def share_intervals(law: Values, counts: Values) -> tuple[Values, Values]:
    """The interval of the first share: of the likelihood's peak, by its curvature."""
    n = counts.sum(axis=1, keepdims=True)
    shares = np.full((len(counts), len(law)), 1 / len(law))
    for _ in range(EM_STEPS):
        shares *= (counts / np.maximum(shares @ law, TINY)) @ law.T / n
    low, high = [], []
    for own, row in zip(shares, counts, strict=True):
        scores = (law[1:] - law[0]) / np.maximum(own @ law, TINY)
        information = (scores * row) @ scores.T
        ones = np.ones(len(law) - 1)
        error = np.sqrt(ones @ np.linalg.solve(information, ones))
        low.append(own[0] - 1.6449 * error)
        high.append(own[0] + 1.6449 * error)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def number_case(mechanism: dict[str, str], answers: Values, n: int) -> Case:
    """The mean of numbers without a law; answers: of honest people, spread evenly over these."""
    asked = {"id": "q", "ask": "number", "bounds": ["0", "1"], "mechanism": mechanism}
    (question,) = Study({**HEAD, "questions": [asked]}).questions
    made = mechanism_for(question)
    edges, scale = cell_edges(made)
    channel = noise_channel(made.name, ANSWERS, edges, scale)
    places = np.linspace(0, 1, len(channel))
    shares = np.zeros(len(places))
    at = np.clip(answers, 0, 1) * (len(places) - 1)
    np.add.at(shares, np.rint(at).astype(int), 1 / len(answers))
    middles = cell_middles(edges, scale)

    def bounds(counts: Values, share: float) -> tuple[Values, Values]:
        found = [mean_bounds(made, QuestionSummary(n, row.astype(np.int64)), share) for row in counts]
        low, high = np.asarray(found).T
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def likely(counts: Values) -> tuple[Values, Values]:
        """The plain average, which `nonparametric` is at most 1.02 times as wide as."""
        mean = counts @ middles / n
        error = np.sqrt(np.maximum(counts @ middles**2 / n - mean**2, 0) / n)
        return np.clip(mean - 1.6449 * error, 0, 1), np.clip(mean + 1.6449 * error, 0, 1)

    truth = float(shares @ places)
    return Case(question, channel, shares, truth, n, likely, bounds, middles, mean_influence(made))


def mean_influence(mechanism: NumberMechanism) -> float:
    """The most that a share f of false reports moves the mean of clipped reports, over f and the span.

    The clipped mean follows the answers with a slope of at least the probability that noise on an answer at
    one bound falls between the bounds: (1 − e^−ε)/2 for Laplace noise.
    """
    return 2 / -expm1(-mechanism.levels / mechanism.scale)


SKEWED = [0.1, 0.3, 0.25, 0.2, 0.1, 0.05]
CASES: dict[str, Callable[[], Case]] = {
    "yes or no, ε = 1, n = 10⁴": lambda: choice_case("randomized_response", "1", [0.1, 0.9], 10_000),
    "yes or no, ε = 1, n = 10⁶": lambda: choice_case("randomized_response", "1", [0.1, 0.9], 1_000_000),
    "6 choices, oue, ε = 1": lambda: choice_case("oue", "1", SKEWED, 20_000),
    "a mean, laplace, ε = 1": lambda: number_case(
        {"name": "laplace", "epsilon": "1"}, np.random.default_rng(0).beta(2, 5, 4000), 20_000
    ),
}


def false_counts(case: Case, attack: str, honest: Values, share: float, random: Generator) -> Values:
    """What the others send, (runs, reports)."""
    runs, false = len(honest), round(case.n * share)
    possible = np.flatnonzero(case.law.max(axis=0) > 0)
    found = np.zeros_like(honest)
    if attack == "random":
        found[:, possible] = random.multinomial(false, np.full(len(possible), 1 / len(possible)), runs)
        return found
    if attack == "posterior":
        found[:, possible[np.argmax(np.abs(posterior_influence(case)[possible]))]] = false
        return found
    at_most = possible[np.argmax(case.value[possible])]
    at_least = possible[np.argmin(case.value[possible])]
    if attack == "adaptive":
        mean, expected = honest @ case.value / honest.sum(axis=1), case.shares @ case.law @ case.value
        worst = np.where(mean > expected, at_most, at_least)
    else:
        worst = np.full(runs, at_most if attack == "up" else at_least)
    found[np.arange(runs), worst] = false
    return found


def posterior_influence(case: Case) -> Values:
    """(reports,) how much one moves the likelihood's peak of the first quantity; of numbers, of the mean."""
    own = np.maximum(case.shares @ case.law, TINY)
    if case.question.ask == "number":
        return case.value
    scores = (case.law[1:] - case.law[0]) / own
    information = (scores * own) @ scores.T
    return np.asarray(-np.ones(len(scores)) @ np.linalg.solve(information, scores))


def measured(case: Case, share: float, runs: int, seed: int) -> Iterator[tuple[str, Measured]]:
    """Coverage and width under each attack."""
    random = np.random.default_rng(seed)
    reports = case.shares @ case.law
    clean = random.multinomial(case.n, reports, runs).astype(np.float64)
    allowed = float(np.mean(np.subtract(*case.likely(clean)[::-1]))) + 2 * share * case.influence
    for attack in ATTACKS:
        sent = clean
        if attack != "none":
            false = round(case.n * share)
            honest = random.multinomial(case.n - false, reports, runs).astype(np.float64)
            sent = honest + false_counts(case, attack, honest, share, random)
        plain, found = case.likely(sent), case.bounds(sent, share)
        low, high = np.minimum(plain[0], found[0]), np.maximum(plain[1], found[1])
        yield (
            attack,
            Measured(
                float(np.mean((low <= case.truth) & (case.truth <= high))),
                float(np.mean((plain[0] <= case.truth) & (case.truth <= plain[1]))),
                float(np.mean(high - low)) / allowed,
            ),
        )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--runs", type=int, default=1000)
    given = parser.parse_args(argv)
    for lines in starmap(lines_of, [(name, given.share, given.runs) for name in given.only]):
        print(*lines, sep="\n", flush=True)


def lines_of(name: str, share: float, runs: int) -> list[str]:
    lines = []
    for attack, found in measured(CASES[name](), share, runs, seed=1):
        good = "" if found.coverage >= 0.9 and found.width <= ALLOWED else "  <- not as wanted"
        lines.append(
            f"{name:40} {attack:9} set {100 * found.coverage:5.1f} %  interval {100 * found.plain:5.1f} %"
            f"  width {found.width:.2f}{good}"
        )
    return lines


if __name__ == "__main__":
    main()
