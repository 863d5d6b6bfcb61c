"""Predicts how wide an analysis's intervals will be, from the Fisher information of the noisy likelihood.

At a stated truth the information of one person is the sum, over all possible observations, of the probability
times the score's square: exact, without a simulated study. With N people and the priors of the analysis the
posterior is nearly normal with the covariance (N × information + the prior's information)⁻¹, unless N is
small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers
from scipy.special import ndtr

from inference.analyses.analysing import model_of
from inference.analyses.assembling import assemble
from inference.analyses.program import Assembled
from inference.analyses.table import Values
from inference.design.formula_truth import FormulaTruth
from inference.design.information import DEVICES, HALF, MOST_PEOPLE, check_wishes, fewest
from inference.design.possible_reports import Possible
from inference.laws import LOGIT_SCALE
from inference.models.base import Draws
from inference.results.verdict import listed
from inference.sampling import sample_prior
from ldp_client.documents.errors import InputError, UsageError

# Numbers in one matrix of scores: 800 MB.
MOST_SCORES = 100_000_000
# Tolerance: all probabilities add up to 1 in every cell, except that a number's reports are taken at places.
SUMS = 0.01
# As a share of its prior's sd: a wider posterior has learnt little.
LITTLE_KNOWN = 0.8
# As shares of the default prior's sd: a wider posterior of a choice is not normal, and wider still. For a
# column divided by its sd, for a level by 1; for a positive parameter as a share of itself.
ROUGH, ROUGH_LEVEL, ROUGH_OWN = 0.14, 0.32, 0.5
NUDGE = 1e-5


@dataclass(frozen=True)
class FormulaPlan:
    """The results for each number of people.

    people: numbers of them, increasing. half_widths: {parameter: (people,)} of 90 % intervals. truth:
    {parameter: value} that everything is computed at. power: {effect: (people,)}: how often its 90 % interval
    is on its own side of 0. odds: parameters whose exp is an odds ratio. rough: {number of people: whether
    they are so few that intervals are wider than these}. assumed: in words. needed: {parameter: people} for a
    width, 0 if the prior is as narrow, None if a thousand million are too few; needed_for_power: for effects.
    """

    formula: str
    family: str
    digest: str
    people: tuple[int, ...]
    truth: Mapping[str, float]
    half_widths: Mapping[str, Values]
    power: Mapping[str, Values]
    odds: tuple[str, ...]
    rough: Mapping[int, bool]
    assumed: tuple[str, ...]
    needed: Mapping[str, int | None] = field(default_factory=dict)
    needed_for_power: Mapping[str, int | None] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """This formula's entry in plan.json."""
        odds = {
            name: {
                "value": float(np.exp(self.truth[name])),
                "low": np.exp(self.truth[name] - self.half_widths[name]).tolist(),
                "high": np.exp(self.truth[name] + self.half_widths[name]).tolist(),
            }
            for name in self.odds
        }
        return {
            "formula": self.formula,
            "family": self.family,
            "method": "Fisher information of the noisy likelihood, and the priors; half of 90 % intervals",
            "truth": dict(self.truth),
            "assumed": list(self.assumed),
            "people": list(self.people),
            "too_few": [n for n in self.people if self.rough[n]],
            "half_widths": {name: widths.tolist() for name, widths in self.half_widths.items()},
            "odds_ratios": odds,
            "power": {name: values.tolist() for name, values in self.power.items()},
            "people_for_width": dict(self.needed),
            "people_for_power": dict(self.needed_for_power),
        }


def plan_formula(
    possible: Possible,
    formula: str,
    people: Sequence[int] = DEVICES,
    *,
    digest: str = "",
    shares: Mapping[str, float] | None = None,
    effects: Mapping[str, float] | None = None,
    priors: Any = None,
    family: str | None = None,
    width: float | None = None,
    power: float | None = None,
    parameter: str | None = None,
) -> FormulaPlan:
    """Predict the widths of a formula's coefficients, and how many people are needed.

    Args:
        possible: all possible reports.
        formula: as for `analyse`.
        people: numbers of people.
        digest: of the study or the design.
        shares: {"ever": 0.2, "job[worker]": 0.3} of answers; others are spread evenly.
        effects: {parameter: value}, by default 0.
        priors: as for `analyse`.
        family: as for `analyse`.
        width: how many people give ± this?
        power: how many give this probability that the 90 % interval of a stated effect is on its side of 0?
        parameter: the parameter for width, by default all.

    Returns:
        Half widths by parameter and number of people.

    Raises:
        InputError: a formula that cannot be fitted, or an impossible truth, width or parameter.
    """
    if not people or any(type(n) is not int or not 1 <= n <= MOST_PEOPLE for n in people):
        raise UsageError(
            f"numbers of people must be whole, from 1 to {MOST_PEOPLE:,}", code="plan.wrong_people_count"
        )
    check_wishes(width, power)
    analysis = assemble(possible.table, formula, priors, family)
    truth = FormulaTruth(analysis, shares or {}, effects or {})
    known = Expected.at(analysis, truth, possible)
    names = list(known.truth)
    if parameter is not None and parameter not in names:
        raise InputError(
            f"{parameter!r} is no parameter of the formula, which has {listed(names)}",
            code="plan.unknown_formula_parameter",
        )
    stated = [name for name in known.slopes if name in (effects or {}) and known.truth[name]]
    if power is not None and not stated:
        raise UsageError(
            "--power is of an effect: state it, such as --truth age=0.05", code="plan.power_needs_effect"
        )
    chosen = tuple(sorted(set(people)))
    halves = np.stack([known.half_widths(n) for n in chosen], axis=-1)
    wanted = (names if parameter is None else [parameter]) if width is not None else []
    needed = {name: known.people_for(name, width or 0.0) for name in wanted}
    for_power = {name: known.people_for_power(name, power) for name in stated} if power is not None else {}
    looked_at = [*chosen, *(n for n in (*needed.values(), *for_power.values()) if n)]
    return FormulaPlan(
        formula=formula,
        family=analysis.outcome.name,
        digest=digest,
        truth=known.truth,
        odds=known.slopes if analysis.outcome.odds else (),
        assumed=(*truth.words, *possible.words),
        people=chosen,
        half_widths=dict(zip(known.truth, halves, strict=True)),
        power={name: np.asarray([known.power(name, n) for n in chosen]) for name in stated},
        rough={n: known.rough(n) for n in looked_at},
        needed=needed,
        needed_for_power=for_power,
    )


@dataclass(frozen=True)
class Expected:
    """truth: {parameter: value}. turn: (parameters, dimension), of sites. information: of one person.

    precision, pull: of the priors, and what they add to the score at the truth. slopes: which parameters
    are coefficients. limits: {parameter: the half width from which on its posterior is not normal}.
    questions: among how many each person answers one.
    """

    truth: Mapping[str, float]
    slopes: tuple[str, ...]
    turn: Values
    information: Values
    precision: Values
    pull: Values
    prior_sds: Mapping[str, float]
    limits: Mapping[str, float]
    questions: int = 1

    @classmethod
    def at(cls, analysis: Assembled, truth: FormulaTruth, possible: Possible) -> Expected:
        """Build it at a stated truth. Raises InputError if scores exceed memory, or sums are not 1."""
        with jax.enable_x64(True):
            vector = _Vector(truth.sites, truth.fixed)
            patterns = len(analysis.cells.counts)
            if patterns * len(vector.start) > MOST_SCORES:
                raise InputError(
                    f"{patterns:,} kinds of reports with {len(vector.start):,} parameters do not fit into "
                    "memory: name fewer columns, or coarser ones",
                    code="plan.too_large_for_memory",
                )
            information = _information(analysis, vector, possible)
            prior = _log_prior(analysis, vector)
            start = jnp.asarray(vector.start)
            precision = -np.asarray(jax.jit(jax.hessian(prior))(start))
            pull = np.asarray(jax.jit(jax.grad(prior))(start))
        names, turn = _parameters(analysis, vector)
        values = {name: float(value) for name, value in names.items()}
        slopes = {one.name for one in analysis.law.entries if one.spread is not None}
        prior_draws = analysis.parameters(sample_prior(model_of(analysis), 0))
        silent = analysis.without_prior()
        sds = {name: np.inf if name in silent else float(np.std(prior_draws[name])) for name in values}
        own = tuple(name for name in values if name in slopes)
        limits = _limits(analysis, values)
        limits = {name: min(limits.get(name, np.inf), LITTLE_KNOWN * HALF * sds[name]) for name in values}
        return cls(values, own, turn, information, precision, pull, sds, limits, possible.questions)

    def _moments(self, people: float) -> tuple[Values, Values, Values]:
        """Covariance of the posterior, of its mean over studies, and how far priors move that mean."""
        own = self.information * (people / self.questions)
        whole = own + self.precision
        try:
            covariance = np.asarray(np.linalg.inv(whole), np.float64)
        except np.linalg.LinAlgError:
            covariance = np.full_like(whole, np.nan)
        if not (np.isfinite(covariance).all() and np.linalg.eigvalsh(whole).min() > 0):
            raise InputError(
                "the reports and the priors leave some coefficient without a bound: state priors, or leave "
                "out what nothing is learnt of",
                code="plan.coefficient_unbounded",
            )
        return covariance, np.asarray(covariance @ own @ covariance), np.asarray(covariance @ self.pull)

    def half_widths(self, people: float) -> Values:
        """Return half of the 90 % interval of every parameter."""
        covariance = self._moments(people)[0]
        return np.asarray(HALF * np.sqrt(np.einsum("pi,ij,pj->p", self.turn, covariance, self.turn)))

    def rough(self, people: float) -> bool:
        """Return True if so few people leave a posterior that is not normal, so that intervals are wider."""
        return bool((self.half_widths(people) > list(self.limits.values())).any())

    def power(self, name: str, people: float) -> float:
        """Return how often the 90 % interval of an effect is on its own side of 0."""
        turn = self.turn[list(self.truth).index(name)]
        covariance, of_mean, moved = self._moments(people)
        sign = np.sign(self.truth[name])
        mean = sign * (self.truth[name] + turn @ moved)
        least = HALF * np.sqrt(turn @ covariance @ turn)
        return float(ndtr((mean - least) / np.sqrt(turn @ of_mean @ turn)))

    def people_for(self, name: str, width: float) -> int | None:
        """Return how many people give at most this half width, None if a thousand million do not."""
        if HALF * self.prior_sds[name] <= width:
            return 0
        place = list(self.truth).index(name)
        return fewest(lambda n: self.half_widths(n)[place] <= width)

    def people_for_power(self, name: str, power: float) -> int | None:
        """Return how many people give at least this power."""
        return fewest(lambda n: self.power(name, n) >= power)


def _limits(analysis: Assembled, truth: Mapping[str, float]) -> dict[str, float]:
    """{parameter: the half width up to which a posterior is nearly normal}."""
    found = {name: ROUGH_OWN * truth[name] for name in analysis.outcome.own if name in truth}
    choices = (analysis.law,) if analysis.outcome.answers else ()
    for law in (*choices, *([analysis.shares] if analysis.shares else [])):
        scale = analysis.outcome.scales.coefficient if law is analysis.law else LOGIT_SCALE
        names, levels = law.names(), law.matrix.levels
        for place, column in enumerate(law.columns):
            own = ROUGH_LEVEL if levels[column] else ROUGH / law.spreads[place]
            found |= dict.fromkeys(names[column], own * scale)
        if not len(law.columns):
            found |= {name: ROUGH_LEVEL * scale for row in names for name in row}
    return found


class _Vector:
    """The sites that are learnt, as one vector, together with the sites that are taken as known."""

    def __init__(self, sites: Mapping[str, Values], fixed: Sequence[str]) -> None:
        self._fixed = {name: np.asarray(sites[name], float) for name in fixed}
        self._shapes = {name: np.shape(value) for name, value in sites.items() if name not in fixed}
        parts = [np.ravel(sites[name]) for name in self._shapes]
        self.start = np.concatenate(parts).astype(np.float64)

    def sites(self, vector: Any) -> dict[str, Any]:
        """{site: value} of a vector (dimension,), or of many (n, dimension)."""
        found, at, lead = {}, 0, vector.shape[:-1]
        for name, shape in self._shapes.items():
            size = int(np.prod(shape, dtype=np.int64))
            found[name] = vector[..., at : at + size].reshape(*lead, *shape)
            at += size
        return found | {
            name: np.broadcast_to(value, (*lead, *value.shape)) for name, value in self._fixed.items()
        }


def _information(analysis: Assembled, vector: _Vector, possible: Possible) -> Values:
    """Return one person's information: Σ over possible reports of probability times squared score."""
    data = {name: jnp.asarray(value) for name, value in analysis.data().items()}

    def log_chances(point: Array) -> Array:
        with handlers.block(), handlers.substitute(data=vector.sites(point)):
            return analysis.each(data, *analysis.drawn(data))

    start = jnp.asarray(vector.start)
    cells = analysis.cells
    shares = cells.counts * (possible.rows / cells.counts.sum())
    for one in analysis.privates:
        if one.name in possible.steps:
            shares = shares * possible.steps[one.name][cells.reports[one.name]]
    weights = shares * np.exp(np.asarray(jax.jit(log_chances)(start)))
    if abs(weights.sum() - 1) > SUMS:
        raise InputError(
            "the reports that may come are too many to sum over: plan with less ε, or fewer answers",
            code="plan.too_many_possible_reports",
        )
    scores = np.asarray(jax.jit(jax.jacfwd(log_chances))(start))
    return np.asarray((scores * (weights / weights.sum())[:, None]).T @ scores)


def _log_prior(analysis: Assembled, vector: _Vector) -> Callable[[Array], Array]:
    """The log density of the priors, at the parameters that are learnt."""
    data = {name: jnp.asarray(value) for name, value in analysis.data().items()}

    def of(point: Array) -> Array:
        with handlers.block(), handlers.substitute(data=vector.sites(point)):
            trace = handlers.trace(analysis.program).get_trace(**data)
        own = [site for name, site in trace.items() if site["type"] == "sample" and name != "reports"]
        return sum((jnp.sum(site["fn"].log_prob(site["value"])) for site in own), jnp.zeros(()))

    return of


def _parameters(analysis: Assembled, vector: _Vector) -> tuple[dict[str, float], Values]:
    """{parameter: value} of all but the groups', and how they turn with the vector."""
    steps = NUDGE * np.eye(len(vector.start))
    moved = vector.start + np.concatenate([np.zeros_like(steps[:1]), steps, -steps])
    found: Draws = analysis.parameters(vector.sites(moved))
    groups = (*analysis.groups, *analysis.shares_groups)
    left_out = {one.name for group in groups for one in group.entries}
    kept = {name: np.asarray(values) for name, values in found.items() if name not in left_out}
    size = len(vector.start)
    turn = np.stack([values[1 : size + 1] - values[size + 1 :] for values in kept.values()]) / (2 * NUDGE)
    return {name: float(values[0]) for name, values in kept.items()}, turn
