"""Posteriors are right: they match a likelihood that a few lines of NumPy write down independently.

Each case fits 40,000 reports. A noise scale that is 3 % off then moves the posterior by more than a fit may
be off, so that the same comparison finds this fault. The sampler fits a case of each kind; the Gaussian
approximation, whose draws are weighted by the same density, fits the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from inference import Summary, fit
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.kit.modes import fit_without_derivatives
from tests.statistics import seeded

pytestmark = pytest.mark.programs

Values = NDArray[np.float64]
Grid = Mapping[str, Values]
PEOPLE = 40_000
# A mean may be off by this many posterior standard deviations, a standard deviation by this share.
MEAN_OFF, SD_OFF = 0.1, 0.1
WRONG_SCALE = 1.03
WORD = 1 << 20
DELTA = 1e-6
NOISE = {"laplace": stats.laplace, "gaussian": stats.norm}


def gaussian_scale(epsilon: float) -> float:
    """The standard deviation that hides a distance of 1 (Balle and Wang 2018, theorem 8)."""

    def delta(sd: float) -> float:
        half, rest = 0.5 / sd, epsilon * sd
        return float(stats.norm.cdf(half - rest) - np.exp(epsilon) * stats.norm.cdf(-half - rest))

    return float(optimize.brentq(lambda sd: delta(sd) - DELTA, 0.1, 100))


def grid_of(**axes: tuple[float, float, int]) -> Grid:
    """All combinations of evenly spaced values (low, high, count), flat."""
    values = np.meshgrid(*(np.linspace(*axis) for axis in axes.values()), indexing="ij")
    return {name: axis.ravel() for name, axis in zip(axes, values, strict=True)}


def choice_likelihood(question: Mapping[str, Any], payloads: list[bytes], grid: Grid, scale: float) -> Values:
    """Log likelihood of shares under randomized response or optimized unary encoding at epsilon / scale."""
    shares = np.stack(list(grid.values()))
    shares = np.vstack([1 - shares, shares]) if len(shares) == 1 else np.vstack([shares, 1 - shares.sum(0)])
    odds, choices = np.exp(float(question["mechanism"]["epsilon"]) / scale), len(shares)
    total = np.zeros(shares.shape[1])
    for payload, count in Counter(payloads).items():
        if question["mechanism"]["name"] == "oue":
            bits = np.array([payload[0] >> index & 1 for index in range(choices)])
            # Each bit is 1 with chance 1 / 2 for the answer, and 1 / (1 + odds) for another choice.
            others = np.where(bits, 1, odds) / (1 + odds)
            chances = 0.5 * np.prod(others) / others
        else:
            chances = np.where(np.arange(choices) == payload[0], odds, 1) / (odds + choices - 1)
        total += count * np.log(chances @ shares)
    return total


def number_likelihood(question: Mapping[str, Any], payloads: list[bytes], grid: Grid, scale: float) -> Values:
    """Log likelihood of answers between 0 and 1, cut off at both, with noise of that many times its scale.

    Reports are counted in cells 1/40 wide, answers lie in the middles of 200 cells or at a bound.
    """
    mechanism, model = question["mechanism"], question["model"]["name"]
    epsilon = float(mechanism["epsilon"])
    width = 1 / epsilon if mechanism["name"] == "laplace" else gaussian_scale(epsilon)
    reports = np.array([int.from_bytes(payload, "big", signed=True) for payload in payloads]) / WORD * width
    reach = 12 * width
    edges = np.concatenate(
        [[-np.inf], np.linspace(-reach, 1 + reach, 1 + round(40 * (1 + 2 * reach))), [np.inf]]
    )
    law = stats.norm(grid["mean"], grid["sd"]) if model == "normal" else stats.expon(scale=1 / grid["rate"])
    answers = np.concatenate([[0.0], (np.arange(200) + 0.5) / 200, [1.0]])
    masses = np.vstack([law.cdf(0.0), np.diff(law.cdf(np.linspace(0, 1, 201)[:, None]), axis=0), law.sf(1.0)])
    counts = np.histogram(reports, edges)[0]
    kept = counts > 0
    chances = np.diff(NOISE[mechanism["name"]].cdf((edges[:, None] - answers) / (width * scale)), axis=0)
    return np.asarray(counts[kept] @ np.log(chances[kept] @ masses))


BETA = {"distribution": "beta", "a": "2", "b": "3"}
DIRICHLET = {"distribution": "dirichlet", "concentration": ["1", "2", "3"]}
MEAN = {"distribution": "normal", "loc": "0.4", "scale": "0.5"}
SD = {"distribution": "gamma", "shape": "2", "rate": "6"}
RATE = {"distribution": "log_normal", "loc": "1", "scale": "1"}
NORMAL = {**studies.AGE, "bounds": ["0", "1"], "model": {"name": "normal", "prior": {"mean": MEAN, "sd": SD}}}
EXPONENTIAL = {
    **studies.NUMBER,
    "bounds": ["0", "1"],
    "model": {"name": "exponential", "prior": {"rate": RATE}},
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "bernoulli, randomized response": {
        **studies.YES_NO,
        "model": {"name": "bernoulli", "prior": {"p": BETA}},
    },
    "multinomial, randomized response": {
        **studies.ONE_OF,
        "model": {"name": "multinomial", "prior": {"p": DIRICHLET}},
    },
    "multinomial, unary encoding": {
        **studies.CHOICE,
        "model": {"name": "multinomial", "prior": {"p": DIRICHLET}},
    },
    "normal, Laplace": studies.with_epsilon(NORMAL, "2"),
    "normal, Gaussian": {**NORMAL, "mechanism": {**studies.NORMAL["mechanism"], "epsilon": "8"}},
    "exponential, Laplace": studies.with_epsilon(EXPONENTIAL, "2"),
}
FAST = ("bernoulli, randomized response", "multinomial, unary encoding")
NUTS = ("multinomial, unary encoding", "exponential, Laplace")
CASES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in QUESTIONS]
CHOICES = ("student", "worker", "teacher")


def answers_to(question: Mapping[str, Any]) -> list[Any]:
    """What people would say, drawn from the model's own law."""
    random = np.random.default_rng(20261128)
    draws = {
        "bernoulli": lambda: (random.random(PEOPLE) < 0.3).tolist(),
        "multinomial": lambda: random.choice(CHOICES, PEOPLE, p=(0.15, 0.6, 0.25)).tolist(),
        "normal": lambda: random.normal(0.45, 0.2, PEOPLE).tolist(),
        "exponential": lambda: random.exponential(1 / 4, PEOPLE).tolist(),
    }
    return draws[question["model"]["name"]]()


def log_prior(model: str, grid: Grid) -> Values:
    """The stated priors' log density at each grid point."""
    if model == "bernoulli":
        return np.asarray(stats.beta(2, 3).logpdf(grid["p"]))
    if model == "multinomial":
        rest = 1 - grid["p[student]"] - grid["p[worker]"]
        return np.asarray(np.log(grid["p[worker]"]) + 2 * np.log(rest))
    if model == "exponential":
        return np.asarray(stats.lognorm(1, scale=np.e).logpdf(grid["rate"]))
    return np.asarray(
        stats.norm(0.4, 0.5).logpdf(grid["mean"]) + stats.gamma(2, scale=1 / 6).logpdf(grid["sd"])
    )


GRIDS: dict[str, Grid] = {
    "bernoulli": grid_of(p=(0.2, 0.4, 2001)),
    "multinomial": grid_of(**{"p[student]": (0.05, 0.25, 201), "p[worker]": (0.5, 0.7, 201)}),
    "normal": grid_of(mean=(0.4, 0.5, 61), sd=(0.1, 0.3, 61)),
    "exponential": grid_of(rate=(3, 5, 401)),
}


@cache
def reports_of(name: str) -> tuple[list[bytes], Any]:
    """Payloads of a case, and the posterior that the fit gives of them."""
    question = QUESTIONS[name]
    study = Study(studies.document(question))
    mechanism = mechanism_for(study.questions[0])
    payloads = perturb_many(mechanism, answers_to(question), seeded(name))
    part = {question["id"]: QuestionSummary.of(mechanism, payloads)}
    summary = Summary(study.id, study.version, study.digest, part)
    posterior = fit(study, summary, method="nuts" if name in NUTS else "gaussian_approx")[question["id"]]
    return [bytes(payload) for payload in payloads], posterior


def differences(name: str, scale: float = 1.0) -> list[str]:
    """Where the fit differs from the grid's posterior under noise of that many times the stated scale."""
    question = QUESTIONS[name]
    model = question["model"]["name"]
    payloads, posterior = reports_of(name)
    likelihood = number_likelihood if question["ask"] == "number" else choice_likelihood
    logs = likelihood(question, payloads, GRIDS[model], scale) + log_prior(model, GRIDS[model])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    problems = []
    for parameter, values in GRIDS[model].items():
        mean = float(weights @ values)
        sd = float(np.sqrt(weights @ (values - mean) ** 2))
        draws = posterior.draws[parameter]
        if abs(draws.mean() - mean) > MEAN_OFF * sd:
            problems.append(f"mean of {parameter}: {draws.mean():.4f}, on the grid {mean:.4f} (sd {sd:.4f})")
        if abs(draws.std() / sd - 1) > SD_OFF:
            problems.append(f"sd of {parameter}: {draws.std():.4f}, on the grid {sd:.4f}")
    return problems


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The approximation compiles no derivatives."""
    fit_without_derivatives(monkeypatch)


@pytest.mark.parametrize("name", CASES)
def test_a_fit_is_the_posterior_of_the_written_out_likelihood(name: str) -> None:
    assert differences(name) == []


@pytest.mark.parametrize("name", CASES)
def test_a_noise_scale_three_percent_off_is_found(name: str) -> None:
    assert differences(name, WRONG_SCALE)
