"""Find the peak of a posterior density, and its curvature, in readable parameters."""

from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray
from numpyro import handlers
from scipy.linalg import cho_solve
from scipy.stats import norm

from inference.analyses.matrices import weights_of
from inference.analyses.program import Assembled
from inference.analyses.stated_priors import is_flat
from inference.compiling import Program
from inference.models.base import Draws, Model
from inference.results.verdict import listed
from inference.sampling.gaussian_approximation import find_mode
from inference.sampling.space import Arrays, Space, as_arrays, as_draws, space_of

Vector = NDArray[np.float64]

# Newton steps after the mode was found to a thousandth of an sd. Each step squares the error.
POLISHING = 3
NUDGE = 1e-4
# In the default priors' sds: a likelihood that leads farther out has no peak.
FAR_OUT = 4.0
# Two sds from a peak the log density is 2 lower. If it hardly falls, the apparent peak is a plateau.
STEP, LEAST_FALL = 2.0, 0.1

# The prior decides half of a tail if its own density falls by this factor from the median to the point
# that leaves a twentieth. If one tail is longer than the other by SKEW, the posterior is not bell-shaped.
HALF_OF_A_TAIL, SKEW = 0.1**0.5, 1.5
# If a coefficient's curvature is so many times as wide as its prior, the likelihood does not bound it.
OPEN = 3.0
# Around the start, to leave points at which effects happen to be 0.
SPREAD = 0.5
# A direction in which all probabilities of reports are constant: its information, as a share of the largest,
# and the least part of a direction that counts.
NO_INFORMATION, LEAST_PART = 1e-10, 1e-4


@dataclass(frozen=True)
class Peak:
    """values, sds: by parameter; sds come from the curvature (observed information under flat priors).

    log_likelihood: at the peak. found: False if there is no peak but an endless slope.
    """

    values: dict[str, float]
    sds: dict[str, float]
    log_likelihood: float
    found: bool
    sites: Draws = field(default_factory=dict, repr=False)

    def to_document(self) -> dict[str, object]:
        """Return the peak's entry in posterior.json."""
        parameters = {name: {"value": value, "sd": self.sds[name]} for name, value in self.values.items()}
        return {"log_likelihood": self.log_likelihood, "parameters": parameters}


def peak_of(analysis: Assembled, model: Model, with_prior: bool = True) -> Peak | None:
    """Return the posterior's peak, or the likelihood's; None with effects by group.

    With these it does not mean much. Under flat priors both are the same.
    """
    if analysis.every_group:
        return None
    with jax.enable_x64(True):
        # 1. Find the peak in the parameters themselves, and polish it by Newton's steps.
        space, data = space_of(model), as_arrays(model.data)
        # Each step of a function that is not compiled as a whole would be a separate program.
        start = np.asarray(Program(space.start, runs_once=True)(as_arrays(model.initial, float), data))
        height = partial(_height, model, space, with_prior)
        found = find_mode(Space(height, space.sites, space.start, space.dimension), start, data)
        at = found.at
        for _ in range(POLISHING):
            at = at - cho_solve((found.factor, True), found.slope(at)[1], check_finite=False)
        finite = bool(np.isfinite(at).all())
        at = at if finite else start
        # 2. Carry its curvature to the parameters.
        covariance = cho_solve((found.factor, True), np.eye(len(at)))
        moved = np.concatenate([at[None], at + NUDGE * np.eye(len(at)), at - NUDGE * np.eye(len(at))])
        sites = as_draws(Program(jax.vmap(space.sites, (0, None)), runs_once=True)(moved, data))
        values = analysis.parameters(sites)
        ahead, behind = (slice(1, len(at) + 1), slice(len(at) + 1, None))
        turn = np.stack([draws[ahead] - draws[behind] for draws in values.values()]) / (2 * NUDGE)
        sds = np.sqrt(np.einsum("ij,jk,ik->i", turn, covariance, turn))

        # 3. Look at the heights two sds from it, along each axis of its ellipse: an endless slope is no peak,
        # and no plateau, as where one law approaches another.
        def heights(vectors: Array, data: Arrays) -> tuple[Array, Array]:
            likelihood = _height(model, space, False, vectors[-1], data)
            return jax.lax.map(lambda at: height(at, data), vectors), likelihood

        sizes, ways = np.linalg.eigh(covariance)
        steps = STEP * (ways * np.sqrt(np.maximum(sizes, 0.0))).T
        points = np.concatenate([at + steps, at - steps, at[None]])
        around, at_peak = Program(heights, runs_once=True)(points, data)
        falls = np.asarray(around)[:-1] - np.asarray(around)[-1]
        # A direction may be so flat that its sds lead to non-finite values.
        is_plain = not (np.isfinite(falls) & (falls >= LEAST_FALL)).all()
        peaked = finite and not found.reasons and not _far_out(analysis, sites)
        return Peak(
            {name: float(draws[0]) for name, draws in values.items()},
            dict(zip(values, map(float, sds), strict=True)),
            -float(at_peak),
            peaked and not is_plain,
            {name: draws[0] for name, draws in sites.items()},
        )


def _height(model: Model, space: Space, with_prior: bool, vector: Array, data: Arrays) -> Array:
    """Return the negative log density, in the parameters themselves, not the sampler's coordinates."""
    sites = space.sites(vector, data)
    trace = handlers.trace(handlers.substitute(model.program, data=sites)).get_trace(**data)
    counted = trace.values() if with_prior else [trace["reports"]]
    parts = [site["fn"].log_prob(site["value"]) for site in counted if site["type"] == "sample"]
    return -jnp.sum(jnp.stack([jnp.sum(part) for part in parts]))


def unidentified(analysis: Assembled) -> list[str]:
    """Return the parameters of a direction in which no report's probability changes, if one has a flat prior.

    Whatever is reported, the likelihood is constant along it. Effects by group are taken as known.
    """
    flat = {name for name, prior in analysis.priors().items() if is_flat(prior)}
    if not flat:
        return []
    model = Model(analysis.program, analysis.data_of_patterns(), analysis.initial(), analysis.parameters)
    known = {name for group in analysis.every_group for name in group.initial()}
    with jax.enable_x64(True):
        # 1. A point in general position, as sites.
        space, data = space_of(model), as_arrays(model.data)
        start = np.asarray(Program(space.start, runs_once=True)(as_arrays(model.initial, float), data))
        start = start + SPREAD * np.random.default_rng(0).normal(size=len(start))
        sites = {name: jnp.asarray(one) for name, one in Program(space.sites)(start, data).items()}
        vector, rebuilt = ravel_pytree({name: one for name, one in sites.items() if name not in known})

        # 2. How each pattern's log-likelihood moves with them, (sites, patterns).
        def log_chances(vector: Array, data: Arrays) -> Array:
            with handlers.block(), handlers.substitute(data={**sites, **rebuilt(vector)}):
                return analysis.each(dict(data), *analysis.drawn(dict(data)))

        def scores_of(vector: Array, data: Arrays) -> Array:
            slope = jax.linearize(partial(log_chances, data=data), vector)[1]
            return jax.lax.map(slope, jnp.eye(len(vector)))

        scores = np.asarray(Program(scores_of, runs_once=True)(vector, data))
        # 3. The directions of no information, and the parameters that move along them.
        norms = np.linalg.norm(scores, axis=1)
        units = np.where(norms > 0, norms, 1.0)
        sizes, ways = np.linalg.eigh(scores @ scores.T / np.outer(units, units))
        ways = ways[:, sizes < NO_INFORMATION * sizes[-1]]
        ways = np.where(np.abs(ways) > LEAST_PART, ways, 0.0).T / units
        found: set[str] = set()
        for way in ways:
            moved = [rebuilt(vector + step * way) for step in (NUDGE, -NUDGE)]
            ends = {name: np.stack([np.asarray(one[name]) for one in moved]) for name in moved[0]}
            values = analysis.parameters(
                {**{name: np.stack([one, one]) for name, one in sites.items()}, **ends}
            )
            names = {name for name, both in values.items() if both[0] != both[1]}
            found |= names if names & flat else set()
    return [name for name in analysis.priors() if name in found]


def _far_out(analysis: Assembled, sites: Draws) -> bool:
    """Return True if a linear predictor is so large that only shares of 0 and 1 are left."""
    if not analysis.outcome.answers:
        return False
    law = analysis.law
    middles = sites.get("law_middle", np.zeros((1, 1)))[0]
    # The slopes' sum: nearly collinear columns have large slopes that cancel.
    effects = law.standard @ sites.get("law_slopes", np.zeros((1, len(law.columns), 1)))[0]
    sds = np.sqrt(np.einsum("ck,cko->o", weights_of(law.matrix, analysis.table.sizes), effects**2))
    far = FAR_OUT * analysis.outcome.scale
    return bool(max(sds.max(initial=0.0), np.abs(middles).max()) > far)


def without_bound(analysis: Assembled, peak: Peak | None, draws: Draws, before: Draws) -> tuple[str, ...]:
    """Return a reason if reports bound coefficients on one side at most, for example if a level is unanimous.

    peak: the likelihood's. draws: of parameters. before: prior draws, of parameters with a prior.
    """
    coefficients = {one.name for one in analysis.law.entries}
    is_open = peak is not None and not peak.found
    names = []
    for name in draws:
        wide = OPEN * float(np.std(before[name])) if name in before else np.inf
        if (is_open and peak is not None and not peak.sds.get(name, 0.0) < wide) or (
            name in coefficients and name in before and _one_sided(draws[name], before[name])
        ):
            names.append(name)
    if not names and not is_open:
        return ()
    return (
        f"the reports alone bound {listed(names) or 'some coefficients'} on one side at most, for example "
        "because all of a level agree, or fewer say yes than under noise alone. On the other side the prior "
        "decides: quote only the bounded end, or ask more people",
    )


def _one_sided(draws: Vector, before: Vector) -> bool:
    """Return True if a posterior's longer tail falls as its (normal) prior does."""
    low, middle, high = (np.quantile(draws, [0.05, 0.5, 0.95]) - before.mean()) / before.std()
    if high - middle < middle - low:
        low, middle, high = -high, -middle, -low
    falls = norm.logsf(high) - norm.logsf(middle)
    return bool(high - middle > SKEW * (middle - low) and falls < np.log(HALF_OF_A_TAIL))
