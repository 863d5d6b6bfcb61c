"""A model conditioned on data: a NumPyro program, where to start it, and how its draws read."""

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
    """A bijection of a model's unbounded space, for samplers: the posterior stays what it is.

    forward: {site: unbounded value} from other unbounded numbers of the same shapes, and log |det Jacobian|.
    inverse: the other way.
    """

    forward: Callable[[Unbounded], tuple[Unbounded, Array]]
    inverse: Callable[[Unbounded], Unbounded]


IDENTITY = Coordinates(lambda values: (values, jnp.zeros(())), lambda values: values)

Draws = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Truth:
    """What answers are simulated from.

    parameters: {name: value} in own units, as a posterior names them. sites: {site: value} of one draw.
    """

    parameters: Mapping[str, float]
    sites: Draws


@dataclass(frozen=True)
class Replicates:
    """Sums of n reports for predictive checks, where the likelihood takes reports one by one.

    observed: (size,). draw: (one draw's sites, random numbers) -> sums (size,) of n reports under the model.
    """

    n: int
    observed: NDArray[np.float64]
    draw: Callable[[Draws, np.random.Generator], NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """One question's model and its data.

    program: NumPyro model of the data's entries, in scaled units; `reports` is its observed site.
    data: arrays, of shapes that depend on the question alone. initial: {site: value} by moments.
    notes: what a reader must know of the model's own approximations for these data; remarks: the same from
    its draws, as `parameters` takes them.
    replicates: where the program's own law is no sum of reports.
    parameters: {site: draws (…, site shape)} -> {parameter name: draws (…)} in the question's own units.
    target_acceptance: of NUTS; higher, with shorter steps, where a posterior has narrow places.
    channel: gives probabilities (answers, cells) of a report given each of some answers, evenly spaced from
    bound to bound, where the likelihood counts reports by cell: for a test of the law.
    coordinates: in which the posterior of these data is straight enough to draw from.
    redrawn: a site, unbounded and with a priori independent entries, that chains also redraw from its prior;
    with coordinates as they are.
    may_diverge: the share of transitions that may diverge, where it is measured that intervals hold then.
    winding: whether short chains, one for each of many data sets, need longer paths and more warm-up.
    density: from draws of the sites, the distribution of the answers, where the model is no law.
    resting: from draws of sites and parameters, reasons why some parameters rest on more than the reports.
    implied: from draws of the sites, what follows from a number's law.
    shown: of summaries (…, size) what predictive checks look at, where not all entries tell of the model.
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
