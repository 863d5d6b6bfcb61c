"""Posteriors without the code under test: on a grid or by importance sampling, of a written-out density."""

from collections import namedtuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Values = NDArray[np.float64]

# Degrees of freedom of the proposal, whose tails are then heavier than those of the posteriors here.
FREEDOM = 6
ADAPTED, DRAWN, CHUNK, ROUNDS = 8_000, 100_000, 2_500, 80
# A grid has so many points along each axis, up to so many posterior sds from the middle.
GRID_POINTS, GRID_SDS = {1: 2001, 2: 161}, 14.0
LARGEST_EDGE = 1e-5
FEWEST_EFFECTIVE = 8_000


# A posterior. space: {parameter: its support}, a key of WIDTHS. log_density: prior and likelihood at many
# points, {parameter: its values, (points,) or (points, entries)}. quantities: what is compared, by default
# all parameters. start: where the search begins, by default at the middle of each support.
Target = namedtuple("Target", "space log_density quantities start", defaults=(dict, {}))

# How many free numbers a support takes: three shares of a simplex, or two numbers in order, take two.
WIDTHS = {"real": 1, "positive": 1, "share": 1, "simplex": 2, "ordered": 2}


def _placed(support, z):
    """From free numbers (points, width) to values, and the log Jacobian (points,)."""
    if support == "simplex":
        shares = special.softmax(np.column_stack([np.zeros(len(z)), z]), axis=1)
        return shares, np.sum(np.log(shares), axis=1)
    if support == "ordered":
        steps = np.column_stack([z[:, :1], np.exp(z[:, 1:])])
        return np.cumsum(steps, axis=1), np.sum(z[:, 1:], axis=1)
    one = z[:, 0]
    if support == "positive":
        return np.exp(one), one
    if support == "share":
        return special.expit(one), special.log_expit(one) + special.log_expit(-one)
    return one, np.zeros(len(z))


def points_at(target, z):
    """The parameters at free numbers (points, dimensions), and the log Jacobian."""
    found, jacobian, place = {}, np.zeros(len(z)), 0
    for name, support in target.space.items():
        width = WIDTHS[support]
        found[name], own = _placed(support, z[:, place : place + width])
        jacobian, place = jacobian + own, place + width
    return found, jacobian


def _log_densities(target, z):
    parts = []
    for first in range(0, len(z), CHUNK):
        points, jacobian = points_at(target, z[first : first + CHUNK])
        # Far out nothing is possible.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            parts.append(target.log_density(points) + jacobian)
    logs = np.concatenate(parts)
    return np.where(np.isfinite(logs), logs, -np.inf)


def _effective(logs):
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / np.sum(weights**2))


def _tempered(logs):
    """The largest power of the weights, up to one, that leaves an eighth of the draws effective."""
    low, high = 0.0, 1.0
    finite = np.maximum(logs, -1e6 + logs.max())
    if _effective(finite) < len(logs) / 8:
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if _effective(middle * finite) >= len(logs) / 8 else (low, middle)
        high = low
    weights = np.exp(high * (finite - finite.max()))
    return high, weights / weights.sum()


def _proposal(mean, covariance):
    return stats.multivariate_t(mean, covariance * (FREEDOM - 2) / FREEDOM, FREEDOM)


def _fitted(target):
    """Mean and covariance of the posterior's free numbers, by importance sampling of tempered weights."""
    random = np.random.default_rng(1)
    free = {"positive": np.log, "share": special.logit, "real": float}
    starts = [
        np.full(WIDTHS[kind], free[kind](target.start[name]) if name in target.start else 0.0)
        for name, kind in target.space.items()
    ]
    mean = np.concatenate(starts)
    covariance, settled = np.eye(len(mean)), 0
    for _ in range(ROUNDS):
        proposal = _proposal(mean, covariance)
        z = np.reshape(proposal.rvs(ADAPTED, random_state=random), (ADAPTED, -1))
        power, weights = _tempered(_log_densities(target, z) - proposal.logpdf(z))
        mean = weights @ z
        covariance = (z - mean).T @ ((z - mean) * weights[:, None]) + 1e-12 * np.eye(len(mean))
        settled += power == 1.0
        if settled == 3:
            return mean, covariance
    raise ArithmeticError("the proposal does not settle")


def _on_grid(target, mean, covariance):
    steps = [np.linspace(-GRID_SDS, GRID_SDS, GRID_POINTS[len(mean)])] * len(mean)
    places = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, len(mean))
    z = mean + places @ np.linalg.cholesky(covariance).T
    logs = _log_densities(target, z)
    weights = np.exp(logs - logs.max())
    edge = np.any(np.abs(places) > GRID_SDS - 1e-9, axis=1)
    if weights[edge].sum() > LARGEST_EDGE * weights.sum():
        raise ArithmeticError("the grid does not hold the posterior")
    return z, logs


def _drawn(target, mean, covariance):
    proposal = _proposal(mean, covariance)
    z = np.reshape(proposal.rvs(DRAWN, random_state=np.random.default_rng(2)), (DRAWN, -1))
    logs = _log_densities(target, z) - proposal.logpdf(z)
    if _effective(logs) < FEWEST_EFFECTIVE:
        raise ArithmeticError(f"only {_effective(logs):.0f} draws are effective")
    return z, logs


def moments_of(target):
    """Each quantity's mean and sd: on a grid of one or two dimensions, else by importance sampling."""
    mean, covariance = _fitted(target)
    z, logs = (_on_grid if len(mean) in GRID_POINTS else _drawn)(target, mean, covariance)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    found = {}
    for name, values in target.quantities(points_at(target, z)[0]).items():
        middle = float(weights @ values)
        found[name] = {"mean": middle, "sd": float(np.sqrt(weights @ (values - middle) ** 2))}
    return found
