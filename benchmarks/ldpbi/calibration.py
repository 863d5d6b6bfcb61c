"""Figures 1, 10 and 11: how often intervals contain a truth drawn from the prior, against ε (LDPBI 4.4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from benchmarks.baselines.noise_naive import noise_naive_model_for
from benchmarks.ldpbi.surveys import choice_study, choice_summary, number_study, number_summary
from benchmarks.running import COLOURS, Size, headline, save, show_table, verdict
from inference.design.simulated_posteriors import posterior_draws
from inference.models import model_for
from inference.models.base import Draws, Model
from inference.sampling.space import sample_prior
from schemas import Question, Study
from summaries import QuestionSummary, Summary

# Of each posterior.
DRAWS = 300
LEVELS = np.linspace(0.1, 0.9, 9)
BINS = 10
# Each check alone would be called false with this probability; there is one for each ε and parameter.
FALSE_ALARM = 0.001


@dataclass(frozen=True)
class Experiment:
    """One figure: studies by ε, and how a prior draw of the model's sites becomes a summary of reports."""

    title: str
    study: Callable[[float], Study]
    collect: Callable[[Question, Draws, int, Generator], QuestionSummary]
    shown: Sequence[str]


CHOICES = 3


def _normal(question: Question, truth: Draws, people: int, random: Generator) -> QuestionSummary:
    return number_summary(question, random.normal(truth["mean"], truth["sd"], people), random)


def _histogram(question: Question, truth: Draws, people: int, random: Generator) -> QuestionSummary:
    shares = truth["p"] / truth["p"].sum()
    return choice_summary(question, random.multinomial(people, shares), random)


def _exponential(question: Question, truth: Draws, people: int, random: Generator) -> QuestionSummary:
    return number_summary(question, random.exponential(1 / truth["rate"], people), random)


EXPERIMENTS = {
    "1": Experiment("normal model, Laplace noise", partial(number_study, "normal"), _normal, ("mean", "sd")),
    "10": Experiment(
        f"histogram of {CHOICES} choices, unary encoding",
        partial(choice_study, CHOICES),
        _histogram,
        [f"p[{choice}]" for choice in range(CHOICES)],
    ),
    "11": Experiment(
        "exponential model, Laplace noise", partial(number_study, "exponential"), _exponential, ("rate",)
    ),
}


def run(figure: str, out: Path, size: Size) -> None:
    """Print and draw the coverage of central intervals, ours and the noise-naive posterior's."""
    experiment, title = EXPERIMENTS[figure], f"Figure {figure}: calibration, {EXPERIMENTS[figure].title}"
    headline(title, "well calibrated even for the most strict privacy constraints")
    epsilons = size.of((0.1, 0.3, 1.0, 3.0), (0.3, 1.0), (1.0,))
    repeats, people = size.of((500, 1000), (100, 500), (4, 100))
    found = {}
    for epsilon in epsilons:
        found[epsilon] = ranks(experiment, epsilon, repeats, people, model_for)
    naive = ranks(experiment, 1.0, repeats, people, noise_naive_model_for)
    _print(found, naive, repeats, people)
    picture = _draw(experiment, found, naive)
    picture.suptitle(title, fontsize=9)
    save(picture, out, f"figure_{figure}")


def ranks(
    experiment: Experiment,
    epsilon: float,
    repeats: int,
    people: int,
    build: Callable[[Question, QuestionSummary], Model],
) -> dict[str, NDArray[np.float64]]:
    """{parameter: for each repeat, the share of posterior draws below the truth}; uniform if calibrated."""
    study = experiment.study(epsilon)
    question = study.questions[0]
    empty = model_for(question, Summary.empty(study).questions[question.id])
    prior = sample_prior(empty, seed=1)
    truths = [{site: draws[i] for site, draws in prior.items()} for i in range(repeats)]
    randoms = np.random.default_rng(2).spawn(repeats)
    parts = [
        experiment.collect(question, truth, people, random)
        for truth, random in zip(truths, randoms, strict=True)
    ]
    posteriors = posterior_draws([build(question, part) for part in parts], seed=0, draws=DRAWS)
    true_values = [empty.parameters(truth) for truth in truths]
    return {
        name: np.array([np.mean(p < t[name]) for p, t in zip(posteriors[name], true_values, strict=True)])
        for name in experiment.shown
    }


def coverage(below: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of repeats whose truth lies in the central interval, for each of LEVELS."""
    return np.array([np.mean(np.abs(below - 0.5) <= level / 2) for level in LEVELS])


def uniformity(below: NDArray[np.float64]) -> float:
    """The p-value of a chi-square test that the ranks are uniform."""
    counts, _ = np.histogram(below, bins=BINS, range=(0, 1))
    return float(stats.chisquare(counts).pvalue)


def _print(
    found: dict[float, dict[str, NDArray[np.float64]]],
    naive: dict[str, NDArray[np.float64]],
    repeats: int,
    people: int,
) -> None:
    rows: list[list[object]] = []
    for label, parameters in [*found.items(), ("1, noise-naive", naive)]:
        for name, below in parameters.items():
            share = coverage(below)
            rows.append([label, name, *(float(share[i]) for i in (0, 4, 8)), uniformity(below)])
    show_table(["ε", "parameter", "10 %", "50 %", "90 %", "p (uniform)"], rows)
    checks = [uniformity(below) for parameters in found.values() for below in parameters.values()]
    good = sum(p > FALSE_ALARM for p in checks)
    worst = max(
        float(np.max(np.abs(coverage(below) - LEVELS)))
        for parameters in found.values()
        for below in parameters.values()
    )
    verdict(
        f"{good} of {len(checks)} rank histograms are uniform (p > {FALSE_ALARM}); coverage is off by "
        f"{worst:.3f} at most, chance alone gives about {2 * np.sqrt(0.25 / repeats):.3f} "
        f"({repeats} repeats of n = {people})"
    )


def _draw(
    experiment: Experiment,
    found: dict[float, dict[str, NDArray[np.float64]]],
    naive: dict[str, NDArray[np.float64]],
) -> Figure:
    figure = Figure(figsize=(3.4 * len(experiment.shown), 3.4), layout="constrained")
    axes = figure.subplots(1, len(experiment.shown), squeeze=False)[0]
    for axis, name in zip(axes, experiment.shown, strict=True):
        axis.plot([0, 1], [0, 1], color="#cccccc", linewidth=1)
        for colour, (epsilon, parameters) in zip(COLOURS, found.items(), strict=False):
            axis.plot(
                LEVELS, coverage(parameters[name]), "o-", color=colour, markersize=3, label=f"ε = {epsilon:g}"
            )
        axis.plot(LEVELS, coverage(naive[name]), "k:", label="ε = 1, noise-naive")
        axis.set(xlim=(0, 1), ylim=(0, 1), title=name, xlabel="interval", ylabel="contains the truth")
    axes[0].legend(fontsize=7, frameon=False)
    return figure
