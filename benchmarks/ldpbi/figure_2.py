"""Figure 2: how far the private posterior's cumulative shares are from the non-private ones, on Kosarak."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.baselines.simplex import norm_sub
from benchmarks.ldpbi.data import kosarak
from benchmarks.ldpbi.surveys import choice_study, choice_summary
from benchmarks.running import COLOURS, Size, headline, save, show_table, verdict
from inference.models import model_for
from inference.models.choice_forms import unbiased_shares
from inference.priors.laws import with_priors
from inference.sampling.nuts import sample
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question
from summaries import QuestionSummary

Matrix = NDArray[np.float64]
# In total about one, give or take a factor of fifty.
LEARNT = {
    "p": {"distribution": "dirichlet", "concentration": {"distribution": "log_normal", "loc": -4, "scale": 2}}
}


def run(out: Path, size: Size) -> None:
    """Print and draw it."""
    headline(
        "Figure 2: cumulative shares of Kosarak's items, private posterior against non-private",
        "the private posteriors are quite close to the non-private ones (50 repeats, 10,000 items)",
    )
    items, people, repeats = size.of((1024, 10**6, 5), (64, 10**6, 2), (4, 1000, 1))
    epsilons = size.of((0.5, 1.0, 2.0, 4.0), (0.5, 2.0), (2.0,))
    occurring = kosarak()[:items]
    print(f"  the {items} most frequent of 2,605 items here (filtered data), n = {people}, {repeats} repeats")
    found = {
        epsilon: np.array([_one(occurring, epsilon, people, seed) for seed in range(repeats)])
        for epsilon in epsilons
    }
    rows = [[epsilon, *(float(np.mean(d[:, kind])) for kind in range(5))] for epsilon, d in found.items()]
    kinds = (
        "posterior mean",
        "posterior draws",
        "least squares",
        "non-private draws",
        "learnt concentration",
    )
    show_table(["ε", *kinds], rows)
    verdict(
        "mean absolute deviation of the posterior mean's cumulative shares: "
        + ", ".join(f"{row[1]:.4f} ({row[5]:.4f} learnt) at ε = {row[0]:g}" for row in rows)
    )
    save(_draw(found), out, "figure_2")


def _one(occurring: NDArray[np.int64], epsilon: float, people: int, seed: int) -> Matrix:
    """Deviations from the non-private mean at each item but the last, (5, k − 1).

    Of the posterior mean, on average of a posterior draw, of least squares on the simplex, on average of a
    non-private draw, and of the posterior mean where the prior's concentration is learnt from the reports.
    """
    random = np.random.default_rng(seed)
    question = choice_study(len(occurring), epsilon).questions[0]
    made = random.multinomial(people, occurring / occurring.sum())
    part = choice_summary(question, made, random)
    private = np.cumsum(_draws(question, part, seed), axis=1)
    learnt = np.cumsum(_draws(with_priors(question, LEARNT), part, seed), axis=1)
    exact = np.cumsum(random.dirichlet(1 + made, 1000), axis=1)
    middle = exact.mean(0)
    deviations = [
        np.abs(private.mean(0) - middle),
        np.abs(private - middle).mean(0),
        np.abs(np.cumsum(_least_squares(question, part)) - middle),
        np.abs(exact - middle).mean(0),
        np.abs(learnt.mean(0) - middle),
    ]
    # All cumulative shares end at 1.
    return np.array(deviations)[:, :-1]


def _draws(question: Question, part: QuestionSummary, seed: int) -> Matrix:
    """Shares (draws, k)."""
    return sample(model_for(question, part), seed, kept=500).sites["p"].reshape(-1, len(question.choices))


def _least_squares(question: Question, part: QuestionSummary) -> Matrix:
    mechanism = mechanism_for(question)
    assert isinstance(mechanism, ChoiceMechanism)
    return norm_sub(unbiased_shares(mechanism, part))


def _draw(found: dict[float, Matrix]) -> Figure:
    figure = Figure(figsize=(5.4, 3.4), layout="constrained")
    axis = figure.subplots()
    for colour, (epsilon, deviations) in zip(COLOURS, found.items(), strict=False):
        axis.semilogy(deviations[:, 0].mean(0), color=colour, label=f"posterior mean, ε = {epsilon:g}")
        axis.semilogy(deviations[:, 2].mean(0), "--", color=colour, label=f"least squares, ε = {epsilon:g}")
    axis.semilogy(deviations[:, 3].mean(0), "k:", label="a non-private draw")
    axis.set(xlabel="items, most frequent first", ylabel="deviation of the cumulative share")
    axis.legend(fontsize=7, frameon=False)
    return figure
