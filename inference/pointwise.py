"""The log-likelihood of each report at each draw, from which ArviZ estimates how well models predict."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.compiling import Program
from inference.likelihoods import PackedSupportSets
from inference.likelihoods.common import CellCounts
from inference.models.base import Draws, Model
from inference.sampling.space import as_arrays, reports_site

Values = NDArray[np.float64]
# Reports × draws that a result holds, 800 MB. Larger fits have no log-likelihoods by report.
MOST_ENTRIES = 100_000_000


def log_likelihood(model: Model, sites: Draws) -> Values | None:
    """Return the log-likelihood of each report, (chains, draws, reports).

    Args:
        model: the model of the reports.
        sites: {site: draws (chains, draws, …)}.

    Returns:
        None if the model describes sums of reports, not single reports, or if there are too many reports.
    """
    first = {name: values[0, 0] for name, values in sites.items()}
    each = model.pointwise or _each(model, first)
    if each is None:
        return None
    draws = next(iter(sites.values())).shape[:2]
    with jax.enable_x64(True):
        counts = np.asarray(each(as_arrays(first))[1], np.int64)
        if counts.sum() * int(np.prod(draws)) > MOST_ENTRIES:
            return None
        flat = as_arrays({name: values.reshape(-1, *values.shape[2:]) for name, values in sites.items()})
        program = Program(lambda sites: jax.lax.map(lambda one: each(one)[0], sites), runs_once=True)
        kinds = np.asarray(program(flat), np.float64)
    # A report of a kind that came several times has an entry each.
    return np.repeat(kinds, counts, axis=1).reshape(*draws, -1)


def _each(model: Model, first: Draws) -> Callable[[Mapping[str, Any]], tuple[Array, Array]] | None:
    """Return a function from one draw to (log-likelihoods of each kind of report, their counts)."""

    def law_at(sites: Mapping[str, Any]) -> tuple[Any, Any]:
        site = reports_site(model, sites, as_arrays(model.data))
        return site["fn"], site["value"]

    def each(sites: Mapping[str, Any]) -> tuple[Array, Array]:
        law, value = law_at(sites)
        if isinstance(law, CellCounts):
            return law.log_cell_probs, value
        return law.log_densities(value).ravel(), law.counts.ravel()

    with jax.enable_x64(True):
        law, _ = law_at(as_arrays(first))
    known = isinstance(law, CellCounts | PackedSupportSets)
    return each if known else None
