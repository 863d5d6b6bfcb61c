"""A model conditioned on data: a NumPyro program, its starting values, and the meaning of its draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.results.answer_law import AnswerLaw, Implied

TARGET_ACCEPTANCE = 0.9
Unbounded = dict[str, Array]


@dataclass(frozen=True)
class Coordinates:
    """A bijection of a model's unbounded space for samplers. It leaves the posterior unchanged.

    forward: maps other unbounded numbers of the same shapes to {site: unbounded value}, log |det Jacobian|.
    inverse: the inverse map, without the Jacobian.
    """

    forward: Callable[[Unbounded], tuple[Unbounded, Array]]
    inverse: Callable[[Unbounded], Unbounded]


IDENTITY = Coordinates(lambda values: (values, jnp.zeros(())), lambda values: values)

Draws = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Truth:
    """The true parameters from which answers are simulated.

    parameters: {name: value} in own units, named as in a posterior. sites: {site: value} of one draw.
    """

    parameters: Mapping[str, float]
    sites: Draws


@dataclass(frozen=True)
class Replicates:
    """Sums of n reports for predictive checks of a likelihood that takes reports one by one.

    observed: (size,). draw: (one draw's sites, random numbers) -> sums (size,) of n reports under the model.
    """

    n: int
    observed: NDArray[np.float64]
    draw: Callable[[Draws, np.random.Generator], NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """One question's model and its data.

    program: NumPyro model of the data's entries, in scaled units; `reports` is its observed site.
    data: arrays whose shapes depend on the question alone. initial: {site: value} by moments.
    notes: the model's approximations for these data, for the reader; remarks: further notes, computed from
    the draws that `parameters` takes.
    replicates: set if the law of the program's `reports` site is not a law of sums of reports.
    parameters: {site: draws (…, site shape)} -> {parameter name: draws (…)} in the question's own units.
    target_acceptance: of NUTS; higher, with shorter steps, for posteriors with narrow regions.
    channel: returns probabilities (answers, cells) of a report given answers evenly spaced from bound to
    bound. Set if the likelihood counts reports by cell; used to test the law.
    coordinates: coordinates in which the posterior of these data is straight enough to sample.
    redrawn: an unbounded site with a priori independent entries, which chains also redraw from its prior;
    requires the identity coordinates.
    may_diverge: tolerated share of divergent transitions, at which intervals were measured to hold.
    winding: whether short chains, one for each of many data sets, need longer paths and more warm-up.
    density: maps draws of the sites to the distribution of the answers, for a model without a law.
    resting: maps draws of sites and parameters to reasons why some parameters rest on more than the reports.
    implied: maps draws of the sites to the consequences of a number's law.
    shown: selects the entries of summaries (…, size) that predictive checks use; by default all.
    """

    program: Callable[..., None]
    data: Mapping[str, object]
    initial: Mapping[str, object]
    parameters: Callable[[Draws], dict[str, NDArray[np.float64]]]
    notes: tuple[str, ...] = ()
    replicates: Replicates | None = None
    remarks: Callable[[Draws], tuple[str, ...]] = lambda _draws: ()
    target_acceptance: float = TARGET_ACCEPTANCE
    coordinates: Coordinates = IDENTITY
    redrawn: str | None = None
    channel: Callable[[], NDArray[np.float64]] | None = None
    may_diverge: float = 0.0
    winding: bool = False
    density: Callable[[Draws], AnswerLaw] | None = None
    resting: Callable[[Draws, Draws], tuple[str, ...]] = lambda _sites, _parameters: ()
    implied: Callable[[Draws], Implied] | None = None
    shown: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda summaries: summaries
