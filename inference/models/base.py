"""A model conditioned on data: a NumPyro program, its starting values, and the meaning of its draws."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.results.verdict import NOTE, Finding, findings

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
class Sampling:
    """How samplers treat a model.

    target_acceptance: of NUTS; higher, with shorter steps, for posteriors with narrow regions.
    coordinates: coordinates in which the posterior of these data is straight enough to sample.
    redrawn: an unbounded site with a priori independent entries, which chains also redraw from its prior;
    requires the identity coordinates.
    may_diverge: tolerated share of divergent transitions, at which intervals were measured to hold.
    winding: whether short chains, one for each of many data sets, need longer paths and more warm-up.
    """

    target_acceptance: float = TARGET_ACCEPTANCE
    coordinates: Coordinates = IDENTITY
    redrawn: str | None = None
    may_diverge: float = 0.0
    winding: bool = False


@dataclass(frozen=True)
class Summaries:
    """How predictive checks read the summary in the program's `reports` site.

    channel: returns probabilities (answers, cells) of a report given answers evenly spaced from bound to
    bound. Set if the likelihood counts reports by cell; used to test the law.
    shown: selects the entries of summaries (…, size) that are compared; by default all.
    replicates: set if the law of the `reports` site is not a law of sums of reports.
    bounds: of a number, in own units.
    """

    channel: Callable[[], NDArray[np.float64]] | None = None
    shown: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda summaries: summaries
    replicates: Replicates | None = None
    bounds: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Fit:
    """A model's draws, as its checks see them.

    sites: {site: (chains, draws, …)}. parameters: {name: (chains, draws)}, in own units. prior_sites: {site:
    (draws, …)} before the reports. seed: for a check's own random numbers.
    """

    sites: Draws
    parameters: Mapping[str, NDArray[np.float64]]
    prior_sites: Draws
    seed: int


# A check of a fit returns what it found for or against its use.
Check = Callable[[Fit], Iterable[Finding]]


@dataclass(frozen=True)
class Model:
    """One question's model and its data.

    program: NumPyro model of the data's entries, in scaled units; `reports` is its observed site.
    data: arrays whose shapes depend on the question alone. initial: {site: value} to search the mode from.
    parameters: {site: draws (…, site shape)} -> {parameter name: draws (…)} in the question's own units.
    notes: the model's approximations for these data, for the reader. checks: further checks of a fit.
    derived: draws of the sites -> further fields of a posterior, such as the law of the answers.
    compared: draws of the sites -> {name: draws} that are compared with their prior besides the parameters.
    improper: parameters without a proper prior, whose prior draws are placeholders.
    pointwise: one draw of the sites -> (log-likelihood of each kind of report, how many came), if the program
    has no law of reports.
    """

    program: Callable[..., None]
    data: Mapping[str, object]
    initial: Mapping[str, object]
    parameters: Callable[[Draws], dict[str, NDArray[np.float64]]]
    notes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    derived: Callable[[Draws], Mapping[str, Any]] = lambda _sites: {}
    compared: Callable[[Draws], Mapping[str, NDArray[np.float64]]] | None = None
    improper: frozenset[str] = frozenset()
    pointwise: Callable[[Mapping[str, Any]], tuple[Array, Array]] | None = None
    summaries: Summaries = Summaries()
    sampling: Sampling = Sampling()


def notes_of(check: Callable[[Draws], Iterable[str]]) -> Check:
    """Return the check whose findings are notes on draws of the sites."""
    return lambda fit: findings(NOTE, check(fit.sites))
