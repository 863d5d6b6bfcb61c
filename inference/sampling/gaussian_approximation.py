"""The Laplace approximation: a Gaussian at the posterior's mode, in unbounded space, and its accuracy.

The mode is found from the moment estimate by L-BFGS and Newton's method; draws are transformed back to the
parameters. A third of them are from a Student t there, which reaches regions that the Gaussian misses: a tail
without draws cannot show in the weights. As the draws are from the mixture, no weight is above 1.5 times the
weight under the Gaussian alone (Hesterberg 1995). Importance weights of the draws against the true posterior
tell whether the approximation can be trusted: not if their Pareto shape k̂ (Vehtari, Simpson, Gelman, Yao,
Gabry 2024) is above 0.7, or if they leave fewer than 400 effective draws. If it can be trusted, the draws are
resampled by the weights, which corrects the remaining error.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.special import gammaln

from inference.compiling import Program, compiled
from inference.models.base import Model
from inference.results.convergence import MIN_ESS
from inference.samplers import CHAINS, KEPT
from inference.sampling.chains import has_processors, in_threads, stacked
from inference.sampling.nuts import Sampled
from inference.sampling.space import Arrays, Space, as_arrays, space_of
from inference.sampling.whitening import Slope, descend, finite, hessian_of
from ldp_client.documents.errors import InputError

Vector = NDArray[np.float64]

NEWTON_STEPS = 20
# Half the squared distance to the mode in posterior sds: this is 0.001 sd.
CLOSE_ENOUGH = 5e-7
# Replaces values that are not finite.
LARGEST = 1e100


@dataclass(frozen=True)
class Mode:
    """at (d,): the mode. factor (d, d): lower Cholesky factor of the Hessian. reasons: problems found.

    slope: vector -> (potential, gradient), compiled.
    """

    at: Vector
    factor: Vector
    reasons: tuple[str, ...]
    slope: Slope


def find_mode(space: Space, start: Vector, data: Arrays) -> Mode:
    """Find the mode of the posterior in unbounded space, and the curvature there."""
    potential = compiled(jax.value_and_grad(space.potential))
    slope = finite(lambda vector: potential(vector, data))
    vector = descend(slope, start)
    # Newton's method with halved steps, until the mode is nearer than a thousandth of an sd.
    for _ in range(NEWTON_STEPS):
        value, gradient = slope(vector)
        # Differences of gradients: to compile second derivatives takes longer than all else.
        factor, lifted = _factor(hessian_of(slope, vector))
        step = cho_solve((factor, True), gradient)
        if gradient @ step / 2 < CLOSE_ENOUGH:
            return Mode(vector, factor, (_FLAT,) if lifted else (), slope)
        halves = [0.5**power for power in range(12)]
        shorter = next((part for part in halves if slope(vector - part * step)[0] < value), 0.0)
        if shorter == 0.0:
            break
        vector = vector - shorter * step
    return Mode(vector, factor, ("the posterior's mode was not found: use --method nuts",), slope)


_FLAT = "the posterior has no peak that a Gaussian could follow: use --method nuts"


def _factor(hessian: Vector) -> tuple[Vector, bool]:
    """Return the lower Cholesky factor, and whether the Hessian is no peak's: then its diagonal is lifted."""
    peak = bool(np.isfinite(hessian).all())
    # No larger: a lift must be able to exceed it.
    hessian = np.nan_to_num(hessian, posinf=LARGEST, neginf=-LARGEST)
    diagonal = np.abs(np.diag(hessian))
    lift = 0.0
    while True:
        try:
            return cholesky(hessian + lift * np.eye(len(hessian)), lower=True), lift > 0 or not peak
        except (LinAlgError, ValueError):
            lift = max(10 * lift, 1e-6 * float(diagonal.max(initial=1e-6)))


# For the Student t: so few that in a plane 10 of 2,000 draws are further out than 20 sds.
DEGREES_OF_FREEDOM = 2


def propose(draws: int, dimension: int, seed: int) -> tuple[Vector, Vector]:
    """Return so many draws of a Gaussian, then about half as many of a Student t with the same scale.

    In all a multiple of CHAINS, if `draws` is one: draws (draws, d) about 0 in posterior sds, and their log
    density (draws,) relative to (2π)^(-d/2).
    """
    random = np.random.default_rng(seed)
    beside, nu = draws // (2 * CHAINS) * CHAINS, DEGREES_OF_FREEDOM
    white = random.normal(size=(draws + beside, dimension))
    white[draws:] /= np.sqrt(random.chisquare(nu, size=(beside, 1)) / nu)
    squared = np.sum(white**2, axis=1)
    scale = gammaln((nu + dimension) / 2) - gammaln(nu / 2) + dimension / 2 * np.log(2 / nu)
    student = scale - (nu + dimension) / 2 * np.log1p(squared / nu)
    shares = np.log(np.asarray([draws, beside]) / len(white))
    return white, np.logaddexp(shares[0] - squared / 2, shares[1] + student)


MAX_PARETO_K = 0.7
# Log ratios this close to one another mean that the draws are from the posterior itself.
SAME_RATIO = 1e-9


@dataclass(frozen=True)
class ImportanceWeights:
    """Smoothed importance weights (draws,) that sum to one, and the Pareto shape of their tail."""

    values: Vector
    pareto_k: float

    @property
    def ess(self) -> float:
        """The effective sample size: how many equally weighted draws are as precise."""
        return float(1 / np.sum(self.values**2))

    @property
    def good(self) -> bool:
        return self.pareto_k <= MAX_PARETO_K and self.ess >= MIN_ESS


# At most this share may be far out, where sums overflow.
MAX_NOT_FINITE = 0.01
# A difference of logs that gives a weight of zero.
NOTHING = 1e4


def weigh(log_ratios: Vector) -> ImportanceWeights:
    """Pareto-smoothed weights of log importance ratios (draws,): 0 where one is not finite, if few are."""
    equal = np.full(len(log_ratios), 1 / len(log_ratios))
    finite_ones = np.isfinite(log_ratios)
    if np.mean(~finite_ones) > MAX_NOT_FINITE or np.isposinf(log_ratios).any():
        return ImportanceWeights(equal, float("inf"))
    log_ratios = np.where(finite_ones, log_ratios, log_ratios[finite_ones].min() - NOTHING)
    if np.ptp(log_ratios) < SAME_RATIO:
        return ImportanceWeights(equal, 0.0)
    # This import loads much that chains do not need.
    from arviz_stats.base.array import array_stats

    # ArviZ expects the ratios as in leave-one-out: with the other sign.
    smoothed, k = array_stats.psislw(-log_ratios)
    weights = np.exp(smoothed - np.max(smoothed))
    return ImportanceWeights(weights / weights.sum(), float(k))


def resample(weights: ImportanceWeights, seed: int, multiple: int, most: int) -> NDArray[np.intp]:
    """Systematic resampling, shuffled: as many as the effective sample size, a multiple of `multiple`.

    At most `most`.
    """
    random = np.random.default_rng([seed, 1])
    count = int(min(weights.ess, most)) // multiple * multiple
    places = (np.arange(count) + random.random()) / count
    rows = np.minimum(np.searchsorted(np.cumsum(weights.values), places), len(weights.values) - 1)
    return random.permutation(rows)


# The Hessian is dense: 1.2 GB at this size, and about a minute for its factor.
MOST_DIMENSIONS = 12_000
DRAWS_AT_ONCE = 250


def draw(model: Model, seed: int, draws: int = KEPT, chains: int = CHAINS) -> Sampled:
    """Draw from the Gaussian at the mode, resampled, as chains; reasons say when it is poor.

    Then the draws are the Gaussian's, without resampling. They are at least as many as NUTS keeps by default,
    because fewer weights could not be judged.

    Raises InputError beyond 12,000 parameters, because the Hessian would not fit into memory.
    """
    several = max(-(-chains * draws // CHAINS) * CHAINS, CHAINS * KEPT)
    with jax.enable_x64(True):
        space, data = space_of(model), as_arrays(model.data)
        if space.dimension > MOST_DIMENSIONS:
            raise InputError(
                f"--method gaussian_approx takes at most {MOST_DIMENSIONS} parameters, not "
                f"{space.dimension}: use --method nuts",
                code="fit.too_many_parameters_for_gaussian_approx",
            )
        start = compiled(space.start)(as_arrays(model.initial, float), data)
        mode = find_mode(space, np.asarray(start), data)
        white, log_density = propose(several, len(mode.at), seed)
        vectors = mode.at + solve_triangular(mode.factor, white.T, lower=True, trans="T").T
        potentials, sites = _evaluated(space, vectors, data)
    weights = weigh(-potentials - log_density)
    rows = resample(weights, seed, chains, several) if weights.good else np.arange(several // chains * chains)
    shape = (chains, len(rows) // chains)
    found = {name: value[rows].reshape(*shape, *value.shape[1:]) for name, value in sites.items()}
    poor = (
        f"the Gaussian approximation is poor (importance weights: Pareto k {weights.pareto_k:.2f}, may be "
        f"{MAX_PARETO_K}; effective draws {weights.ess:.0f}, should be {MIN_ESS:.0f}): use --method nuts"
    )
    reasons = mode.reasons if weights.good else (*mode.reasons, poor)
    return Sampled(found, np.zeros(shape, dtype=bool), reasons, chained=False)


def _evaluated(space: Space, vectors: Vector, data: Arrays) -> tuple[Vector, dict[str, Vector]]:
    """Potentials (draws,) and sites of vectors (draws, d)."""

    def one(vector: Array, data: Arrays) -> tuple[Array, dict[str, Array]]:
        return space.potential(vector, data), space.sites(vector, data)

    each = Program(lambda rows, data: jax.lax.map(lambda row: one(row, data), rows, batch_size=DRAWS_AT_ONCE))
    parts = np.stack(np.split(vectors, CHAINS))
    potentials, sites = (
        in_threads(each)(parts, data) if has_processors() else stacked([each(p, data) for p in parts])
    )
    together = {name: np.asarray(value, np.float64) for name, value in sites.items()}
    return np.ravel(potentials), {
        name: value.reshape(-1, *value.shape[2:]) for name, value in together.items()
    }
