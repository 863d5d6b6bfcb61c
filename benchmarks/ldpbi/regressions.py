"""What Figures 4 and 5 share: preparation of the data, the noise-aware fit, and LDP-SGD at its best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.baselines.ldp_sgd import Gradient, gradient_noise_sd, group_size, ldp_sgd
from benchmarks.ldpbi.surveys import DELTA, record_study, record_summary, signs_study, signs_summary
from benchmarks.running import COLOURS
from inference.design.simulated_posteriors import posterior_draws
from inference.models import model_for
from ldp_client.documents.rational import Rational

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
# LDP-SGD gets the learning rate and the multiple of Wang et al.'s group size that suit its test score best.
RATES = (0.3, 1.0, 3.0, 10.0)
GROUPS = (1, 4, 16)
TEST_SHARE = 0.2
# The norm that so many records stay within becomes 1.
KEPT_WHOLE = 0.9
# Of each feature by itself, where no norm joins them.
WITHIN_LIMITS = 0.98

# Of each posterior.
DRAWS = 300
LEVEL_STYLES = (("black", ":"), ("#8a8f98", "--"))


@dataclass(frozen=True)
class Split:
    """Features (n, d) and responses in [−1, 1], to train and to test on."""

    x: Matrix
    y: Vector
    test_x: Matrix
    test_y: Vector


def principal_components(features: Matrix, count: int) -> Matrix:
    """The first scores of the standardised features, scaled so that 90 % of records have norm 1 at most."""
    spread = features.std(0)
    standard = (features - features.mean(0)) / np.where(spread > 0, spread, 1.0)
    _, _, directions = np.linalg.svd(standard, full_matrices=False)
    scores = standard @ directions[:count].T
    return scores / np.quantile(np.linalg.norm(scores, axis=1), KEPT_WHOLE)


def splits(x: Matrix, y: Vector, repeats: int) -> list[Split]:
    """Random splits, 80 % to train and 20 % to test."""
    found = []
    for repeat in range(repeats):
        order = np.random.default_rng(repeat).permutation(len(x))
        tested = round(len(x) * TEST_SHARE)
        test, train = order[:tested], order[tested:]
        found.append(Split(x[train], y[train], x[test], y[test]))
    return found


def with_constant(x: Matrix) -> Matrix:
    """A column of ones before the features."""
    return np.column_stack([np.ones(len(x)), x])


def posterior_lines(
    model: str, epsilon: float, parts: Sequence[Split], signs: bool = False, scale: str | None = None
) -> list[Vector]:
    """The posterior mean (intercept, coefficients) of each split, from its simulated reports.

    signs: by signs of products in place of noisy sums.
    scale: sd of the coefficients' prior, where the study states one.
    """
    d = parts[0].x.shape[1]
    # As public as the norm of `principal_components`.
    whole = np.vstack([parts[0].x, parts[0].test_x])
    limits = np.quantile(np.abs(whole), WITHIN_LIMITS, axis=0)
    study = signs_study(limits, epsilon, model, scale) if signs else record_study(d, epsilon, model, scale)
    question, summarise = study.questions[0], signs_summary if signs else record_summary
    models = [
        model_for(question, summarise(question, part.x, part.y, np.random.default_rng([7, seed])))
        for seed, part in enumerate(parts)
    ]
    names = ["intercept", *(f"coefficient[x{i}]" for i in range(d))]
    found = posterior_draws(models, seed=0, draws=DRAWS)
    return list(np.stack([found[name].mean(axis=1) for name in names], axis=1))


def best_sgd(
    gradient: Gradient,
    epsilon: float,
    parts: Sequence[Split],
    score: Callable[[Vector, Split], float],
) -> Vector:
    """LDP-SGD's score on each split; rate and group size are those of its lowest mean score on the test data.

    Choosing on the test data favours LDP-SGD: an analyst would have to spend privacy on the choice.
    """
    d = parts[0].x.shape[1] + 1
    noise_sd = gradient_noise_sd(Rational.parse(f"{epsilon:g}"), Rational.parse(DELTA), d)
    found = [
        np.array(
            [
                score(
                    ldp_sgd(
                        gradient,
                        with_constant(part.x),
                        part.y,
                        noise_sd=noise_sd,
                        people_a_step=people,
                        rate=rate,
                        random=np.random.default_rng([9, seed]),
                    ),
                    part,
                )
                for seed, part in enumerate(parts)
            ]
        )
        for people in {min(m * group_size(d, epsilon), len(parts[0].x)) for m in GROUPS}
        for rate in RATES
    ]
    return min(found, key=lambda scores: float(scores.mean()))


ARMS = ("noise-aware, sums", "noise-aware, signs", "LDP-SGD")


def compare_with_sgd(
    epsilons: Sequence[float], arms: Sequence[list[Vector]], levels: dict[str, float], score: str
) -> Figure:
    """Mean and spread over the splits of each arm's scores against ε, and levels that need no ε."""
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axis = figure.subplots()
    for found, colour, label in zip(arms, COLOURS, ARMS, strict=False):
        means, spread = [s.mean() for s in found], [s.std() for s in found]
        axis.errorbar(epsilons, means, spread, fmt="o-", color=colour, capsize=2, label=label)
    for (label, level), (colour, line) in zip(levels.items(), LEVEL_STYLES, strict=False):
        axis.axhline(level, color=colour, linestyle=line, label=label)
    axis.set(
        xscale="log", xlabel="ε", xticks=epsilons, xticklabels=[f"{e:g}" for e in epsilons], ylabel=score
    )
    axis.minorticks_off()
    axis.legend(fontsize=7, frameon=False)
    return figure
