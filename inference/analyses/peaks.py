"""The peak of a likelihood or of a posterior density, in people's parameters, with its curvature there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro import handlers
from scipy.linalg import cho_solve
from scipy.stats import norm

from inference.analyses.program import Assembled
from inference.compiling import compiled
from inference.models.base import Draws, Model
from inference.results.diagnostics import listed
from inference.sampling.gaussian_approximation import find_mode
from inference.sampling.space import Arrays, Space, as_arrays, as_draws, space_of

Vector = NDArray[np.float64]

# Newton's steps after the mode was found to a thousandth of an sd: each squares what is missing.
POLISHING = 3
NUDGE = 1e-4
# In the default priors' sds: a likelihood that leads farther out has no peak.
FAR_OUT = 4.0
# Two sds from a peak its log density is 2 lower; where it is hardly lower, what looks like a peak is a plain.
STEP, LEAST_FALL = 2.0, 0.1

# Of a tail of the posterior the prior decides half where it falls by so much itself, from the median to where
# a twentieth is left; longer than the other one by so much it is no bell's.
HALF_OF_A_TAIL, SKEW = 0.1**0.5, 1.5
# The likelihood says nothing of a coefficient where its curvature is so many times as wide as the prior.
OPEN = 3.0


@dataclass(frozen=True)
class Peak:
    """values, sds: by parameter, the sds from the curvature (the observed information where priors are flat).

    log_likelihood: there. found: whether there is a peak, and not a slope that goes on for ever.
    """

    values: dict[str, float]
    sds: dict[str, float]
    log_likelihood: float
    found: bool
    sites: Draws = field(default_factory=dict, repr=False)

    def to_document(self) -> dict[str, object]:
        """A peak in posterior.json."""
        parameters = {name: {"value": value, "sd": self.sds[name]} for name, value in self.values.items()}
        return {"log_likelihood": self.log_likelihood, "parameters": parameters}


def peaks_of(analysis: Assembled, model: Model) -> tuple[Peak, Peak] | None:
    """The posterior's mode and the likelihood's; None where effects vary by group, as neither means much."""
    if analysis.every_group:
        return None
    return _peak(analysis, model, with_prior=True), _peak(analysis, model, with_prior=False)


def _peak(analysis: Assembled, model: Model, *, with_prior: bool) -> Peak:
    with jax.enable_x64(True):
        space, data = space_of(model), as_arrays(model.data)
        own = _density(model, space, with_prior)
        start = np.asarray(space.start(as_arrays(model.initial, float), data))
        found = find_mode(Space(own, space.sites, space.start, space.dimension), start, data)
        at, slope = found.at, compiled(jax.grad(own))
        for _ in range(POLISHING):
            at = at - cho_solve((found.factor, True), np.asarray(slope(at, data)), check_finite=False)
        finite = bool(np.isfinite(at).all())
        at = at if finite else start
        covariance = cho_solve((found.factor, True), np.eye(len(at)))
        moved = np.concatenate([at[None], at + NUDGE * np.eye(len(at)), at - NUDGE * np.eye(len(at))])
        sites = as_draws(jax.vmap(space.sites, (0, None))(jnp.asarray(moved), data))
        log_likelihood = -float(_density(model, space, with_prior=False)(jnp.asarray(at), data))
    values = analysis.parameters(sites)
    ahead, behind = (slice(1, len(at) + 1), slice(len(at) + 1, None))
    turn = np.stack([draws[ahead] - draws[behind] for draws in values.values()]) / (2 * NUDGE)
    sds = np.sqrt(np.einsum("ij,jk,ik->i", turn, covariance, turn))
    peaked = finite and not found.reasons and not _far_out(analysis, sites)
    with jax.enable_x64(True):
        peaked = peaked and not _plain(own, at, covariance, data)
    return Peak(
        {name: float(draws[0]) for name, draws in values.items()},
        dict(zip(values, map(float, sds), strict=True)),
        log_likelihood,
        peaked,
        {name: draws[0] for name, draws in sites.items()},
    )


def _density(model: Model, space: Space, with_prior: bool) -> Callable[[Array, Arrays], Array]:
    """−log density of the parameters themselves, not of the sampler's coordinates, or −log likelihood."""

    def of(vector: Array, data: Arrays) -> Array:
        sites = space.sites(vector, data)
        trace = handlers.trace(handlers.substitute(model.program, data=sites)).get_trace(**data)
        counted = trace.items() if with_prior else [("reports", trace["reports"])]
        parts = [site["fn"].log_prob(site["value"]) for _, site in counted if site["type"] == "sample"]
        return -jnp.sum(jnp.stack([jnp.sum(part) for part in parts]))

    return of


def _plain(own: Callable[[Array, Arrays], Array], at: Vector, covariance: Vector, data: Arrays) -> bool:
    """Whether some way leads on without a fall, as where a law comes ever nearer to another."""
    sizes, ways = np.linalg.eigh(covariance)
    steps = STEP * (ways * np.sqrt(np.maximum(sizes, 0.0))).T
    around = jnp.asarray(np.concatenate([at + steps, at - steps, at[None]]))
    *others, own_height = np.asarray(jax.lax.map(lambda vector: own(vector, data), around))
    falls = np.asarray(others) - own_height
    # So flat a way has sds that lead to no number.
    return not bool((np.isfinite(falls) & (falls >= LEAST_FALL)).all())


def _far_out(analysis: Assembled, sites: Draws) -> bool:
    """Whether coefficients lie where no share but 0 and 1 is left."""
    if not analysis.outcome.answers:
        return False
    far = FAR_OUT * analysis.outcome.scales.coefficient
    sizes = np.abs(analysis.law.at_middles(sites)[0]) * analysis.law.spreads_at_middles[:, None]
    middles = sites.get("law_middle", np.zeros((1, 1)))[0]
    return bool(max(sizes.max(initial=0.0), np.abs(middles).max()) > far)


def without_bound(
    analysis: Assembled, peak: Peak | None, draws: Draws, before: Draws, prior_sd: Mapping[str, float]
) -> tuple[str, ...]:
    """A reason where reports bound coefficients on one side at most, as where all of a level say the same.

    peak: the likelihood's; draws: of parameters; before: of those with a prior; prior_sd: of all.
    """
    is_open = peak is not None and not peak.found
    own = {name for row in analysis.law.names() for name in row}
    names = [
        name
        for name in draws
        if (is_open and peak is not None and not peak.sds.get(name, 0.0) < OPEN * prior_sd[name])
        or (name in own and name in before and _one_sided(draws[name], before[name]))
    ]
    if not names and not is_open:
        return ()
    return (
        f"the reports alone bound {listed(names) or 'some coefficients'} on one side at most, as where all "
        "of a level say the same, or fewer say yes than the noise alone would: there the prior decides how "
        "far intervals reach; quote the other end, or ask more people",
    )


def _one_sided(draws: Vector, before: Vector) -> bool:
    """Whether a posterior is long on a side on which it falls as its prior does, which is a normal one."""
    low, middle, high = (np.quantile(draws, [0.05, 0.5, 0.95]) - before.mean()) / before.std()
    if high - middle < middle - low:
        low, middle, high = -high, -middle, -low
    falls = norm.logsf(high) - norm.logsf(middle)
    return bool(high - middle > SKEW * (middle - low) and falls < np.log(HALF_OF_A_TAIL))
