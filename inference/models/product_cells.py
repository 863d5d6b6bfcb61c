"""The law of features that are all yes/no: 2^d cells, log-linear with all pairs.

The line gives each cell's share of yes, and sums over the cells give every product's mean exactly. The cells
form a table of the first features by the last, so that sums are products of small matrices.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference.models.regression import Regression

# Prior on log shares of cells: sd of a main effect; scale and degrees of freedom of a pair's Student's t.
MAIN, PAIR, TAILS = 1.0, 0.25, 4.0


def effects(d: int) -> tuple[Array, Any]:
    """Draw the main effects of d features and the effects of pairs on log shares of cells."""
    main = numpyro.sample("main", dist.Normal(0, MAIN).expand([d]).to_event(1))
    pairs = d * (d - 1) // 2
    if not pairs:
        return main, np.zeros(0)
    return main, numpyro.sample("pair", dist.StudentT(TAILS, 0, PAIR).expand([pairs]).to_event(1))


def start(d: int) -> dict[str, object]:
    """Return starting values: equal shares of all cells."""
    # With one feature there is no site "pair": samplers and files of draws accept no empty site.
    return {"main": np.zeros(d), **({"pair": np.zeros(d * (d - 1) // 2)} if d > 1 else {})}


def moments(line: Regression, sd: None, main: Any, pair: Any) -> Array:
    """Return M = E[uuᵀ], (d + 2, d + 2), u = (1, features, response) of −1 and 1, in O(d 2^d).

    main (d,), pair (d (d − 1) / 2,): coefficients of each feature and each product of two in a cell's log
    share.
    """
    del sd
    later, first = _signs(len(main))
    law, half = _law(main, pair), first.shape[1]
    slopes = line.coefficients
    log_odds = line.intercept + _crossed(later @ slopes[half:], first @ slopes[:half])
    among = _moments(law, later, first)
    cross = _means(law * jnp.tanh(log_odds / 2), later, first)
    return jnp.block([[among, cross[:, None]], [cross[None], jnp.ones((1, 1))]])


def _signs(d: int) -> tuple[Array, Array]:
    """Return the features' values in cells: (2^h, h) for the last features, (2^k, k) for the first.

    The upper bits of a cell's number belong to the last features; bit j is 1 for no (−1).
    """
    found = [
        1.0 - 2 * (np.arange(1 << size)[:, None] >> np.arange(size) & 1) for size in (d // 2, d - d // 2)
    ]
    return jnp.asarray(found[0]), jnp.asarray(found[1])


def _crossed(later: Any, first: Any) -> Array:
    """Add the contributions of the two groups, in cells (2^h, 2^k)."""
    return later[:, None] + first[None]


def _law(main: Any, pair: Any) -> Array:
    """Return the shares (2^h, 2^k) of the cells."""
    d = len(main)
    later, first = _signs(d)
    half, main = first.shape[1], jnp.asarray(main)
    pairs = jnp.zeros((d, d)).at[np.triu_indices(d, 1)].set(jnp.asarray(pair))
    own = [
        signs @ main[part] + jnp.sum((signs @ pairs[part, part]) * signs, axis=1)
        for signs, part in ((later, slice(half, d)), (first, slice(0, half)))
    ]
    logs = _crossed(*own) + later @ pairs[:half, half:].T @ first.T
    return jax.nn.softmax(logs, axis=(0, 1))


def _means(weights: Array, later: Array, first: Array) -> Array:
    """Return the sums (d + 1,) of weights (2^h, 2^k) times 1 and each feature."""
    columns, rows = jnp.sum(weights, axis=0), jnp.sum(weights, axis=1)
    return jnp.concatenate([jnp.sum(rows)[None], columns @ first, rows @ later])


def _moments(law: Array, later: Array, first: Array) -> Array:
    """Return the means (d + 1, d + 1) of products of two of (1, features)."""
    columns, rows = jnp.sum(law, axis=0), jnp.sum(law, axis=1)
    both = first.T @ law.T @ later
    alike = first.T @ (columns[:, None] * first), later.T @ (rows[:, None] * later)
    mean = _means(law, later, first)
    squares = jnp.block([[alike[0], both], [both.T, alike[1]]])
    return jnp.block([[mean[None]], [mean[1:, None], squares]])


def shares_of_cells(main: Any, pair: Any) -> NDArray[np.float64]:
    """Return the cells' shares (2, …, 2), with one axis for each feature: no, yes."""
    with jax.enable_x64(True):
        law = np.asarray(_law(main, pair))
    return np.flip(law.reshape((2,) * len(main)).T)
