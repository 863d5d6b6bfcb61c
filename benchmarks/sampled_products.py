"""How far slopes from signs of sampled products are off, beside those from sums with normal noise.

python -m benchmarks.sampled_products [--repetitions 60] [--people 100000 1000000] [--seed 0]

RMSE of slopes by least squares on what each mechanism releases of the second moments: one sign a report,
with each of WEIGHTS, against `gaussian_statistics` (δ = 1e-6) at norm 1 and at √d, which clips nobody, of
which the better one counts. Eigenvalues of the features' covariance below √d of a moment's noise are taken
for that, under both alike. Both are drawn by the mechanisms' own integers: signs by their exact law given the
records' moments, sums as exact sums and the noise's sd. Slopes are the same in all repetitions.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.regressions import device_statistics
from ldp_client import mechanism_for
from ldp_client.columns.arrays import clip_norms
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Study
from summaries import QuestionSummary

Values = NDArray[np.float64]
HEAD = {"format": "ldpkit.study/1", "id": "signs", "version": 1, "title": "Signs"}
DIMENSIONS, EPSILONS = (1, 3, 5), ("0.5", "1", "2")
WEIGHTS: tuple[dict[str, int], ...] = ({}, {"response": 4}, {"response": 16, "means": 4})


def _normal(random: Generator, n: int, d: int) -> Values:
    return np.clip(random.normal(0, 0.3, (n, d)), -1, 1)


def _yes_no(random: Generator, n: int, d: int) -> Values:
    return np.where(random.random((n, d)) < 0.4, 1.0, -1.0)


def _skewed(random: Generator, n: int, d: int) -> Values:
    return 2 * random.beta(1, 4, (n, d)) - 1


LAWS: dict[str, Callable[[Generator, int, int], Values]] = {
    "normal": _normal,
    "yes/no": _yes_no,
    "skewed": _skewed,
}


class Setting(NamedTuple):
    """One row: the features' law and number, ε, and how many people."""

    law: str
    features: int
    epsilon: str
    people: int


class Errors(NamedTuple):
    """RMSE of slopes by signs with each of WEIGHTS, and by sums at each norm."""

    signs: tuple[float, ...]
    sums: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Of signs, with each of WEIGHTS, to the better sums."""
        return tuple(each / min(self.sums) for each in self.signs)


def question_of(
    setting: Setting,
    mechanism: str,
    norm: float = 0.0,
    weights: dict[str, int] | None = None,
) -> Any:
    yes_no = setting.law == "yes/no" and mechanism == "sampled_products"
    field = {"ask": "yes_no"} if yes_no else {"bounds": ["-1", "1"]}
    stated = {"name": mechanism, "epsilon": setting.epsilon, **({"weights": weights} if weights else {})}
    return Study(
        {
            **HEAD,
            "questions": [
                {
                    "id": "line",
                    "ask": "record",
                    "features": [{"id": f"x{i}", **field} for i in range(setting.features)],
                    **({"norm": f"{norm:.6f}"} if norm else {}),
                    "response": {"id": "y", "bounds": ["-1", "1"]},
                    "mechanism": {**stated, **({"delta": "1e-6"} if norm else {})},
                    "model": {"name": "linear_regression"},
                }
            ],
        }
    ).questions[0]


def slopes_of(second: Values, noise: float) -> Values:
    """Least squares on second moments of (1, x, y) with so much noise on those of two features."""
    covariance = second[1:, 1:] - np.outer(second[0, 1:], second[0, 1:])
    values, vectors = np.linalg.eigh(covariance[:-1, :-1])
    inverse = (vectors / np.maximum(values, noise * np.sqrt(len(values)))) @ vectors.T
    return np.asarray(inverse @ covariance[:-1, -1])


def truth_of(d: int) -> Values:
    """The slopes."""
    return np.linspace(0.4, -0.3, d) / np.sqrt(d) if d > 1 else np.array([0.4])


def people_of(setting: Setting, truth: Values, random: Generator) -> Values:
    """u = (1, x, y) of each."""
    x = LAWS[setting.law](random, setting.people, setting.features)
    y = np.clip(0.1 + x @ truth + random.normal(0, 0.2, setting.people), -1, 1)
    return np.column_stack([np.ones(setting.people), x, y])


def by_signs(mechanism: SampledProducts, second: Values, n: int, random: Generator) -> Values:
    """Slopes from counts of signs, which are multinomial in the second moments (d + 2, d + 2)."""
    first, other = np.asarray(mechanism.coordinates).T
    shares = np.asarray(mechanism.weights) / mechanism.total
    counts = random.multinomial(n, shares)
    gain = float(mechanism.gain)
    positive = random.binomial(counts, (1 + gain * second[first, other]) / 2)
    released = np.ones_like(second)
    released[first, other] = released[other, first] = (2 * positive / np.maximum(counts, 1) - 1) / gain
    drawn = dict(zip(mechanism.coordinates, counts, strict=True)).get((1, 2), counts[1])
    return slopes_of(released, 1 / (gain * np.sqrt(max(drawn, 1))))


def by_sums(mechanism: GaussianStatistics, total: Values, n: int, random: Generator) -> Values:
    """Slopes from the clipped records' sums (d + 2, d + 2) in scaled units, with n devices' noise."""
    noise = random.normal(0, float(1 << NOISE_BITS) * np.sqrt(n), len(mechanism.coordinates))
    exact = [total[i, j] * (1.0 if i == j else np.sqrt(2)) for i, j in mechanism.coordinates]
    values = np.rint(np.asarray(exact) * mechanism.grid + noise).astype(np.int64)
    second = device_statistics(mechanism, QuestionSummary(n, values)).sums[0] / n
    return slopes_of(second, mechanism.noise_sd / np.sqrt(2 * n))


def errors_of(setting: Setting, repetitions: int, seed: int) -> Errors:
    """RMSE over repetitions, each with people of its own."""
    d, n = setting.features, setting.people
    random = np.random.default_rng([seed, n, d, round(10 * float(setting.epsilon))])
    truth = truth_of(d)
    signs: list[Any] = [
        mechanism_for(question_of(setting, "sampled_products", weights=weights)) for weights in WEIGHTS
    ]
    norms = sorted({1.0, float(np.sqrt(d))})
    sums: Any = [mechanism_for(question_of(setting, "gaussian_statistics", norm)) for norm in norms]
    missed: list[list[Values]] = [[] for _ in range(len(signs) + len(sums))]
    for _ in range(repetitions):
        u = people_of(setting, truth, random)
        for place, mechanism in enumerate(signs):
            missed[place].append(by_signs(mechanism, u.T @ u / n, n, random) - truth)
        for place, mechanism in enumerate(sums, len(signs)):
            v = _clipped(mechanism, u)
            missed[place].append(by_sums(mechanism, v.T @ v, n, random) - truth)
    found = [float(np.sqrt(np.mean(np.square(each)))) for each in missed]
    return Errors(tuple(found[: len(signs)]), tuple(found[len(signs) :]))


def _clipped(mechanism: GaussianStatistics, u: Values) -> Values:
    scaled = clip_norms(np.rint(u[:, 1:-1] * UNIT).astype(np.int64), mechanism.radius) / UNIT
    weight = mechanism.scaled_weight
    return np.column_stack([weight * u[:, 0], scaled, weight * u[:, -1]])


def settings(people: list[int]) -> Iterator[Setting]:
    for n in people:
        for law in LAWS:
            for d, epsilon in product(DIMENSIONS, EPSILONS):
                yield Setting(law, d, epsilon, n)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--people", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    ratios: list[tuple[float, ...]] = []
    print("features  d    ε    people  even weights  response 4  16, means 4  norm 1  norm √d   ratios")
    for setting in settings(given.people):
        found = errors_of(setting, given.repetitions, given.seed)
        ratios.append(found.ratios)
        print(
            f"{setting.law:8} {setting.features:2} {setting.epsilon:>4} {setting.people:9,}"
            + "".join(f" {each:12.4f}" for each in found.signs)
            + f" {found.sums[0]:8.4f} {found.sums[-1]:8.4f} "
            + "".join(f" {each:6.2f}" for each in found.ratios),
            flush=True,
        )
    for weights, column in zip(("even", "response 4", "response 16, means 4"), zip(*ratios), strict=True):
        print(f"{weights}: median {np.median(column):.2f}, largest {max(column):.2f}")


if __name__ == "__main__":
    main()
