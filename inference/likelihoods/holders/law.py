"""The law of data holders' noisy sums of second moments, given their records' law (METHODS 4.1, 4.2, 6).

Records are u = (1, x, y), or (x, y) of mean zero without a constant, jointly normal; M = E[uu'], p = len(u).
A holder's sum over n records has mean n M and covariance n (M_ik M_jl + M_il M_jk - 2 m_i m_j m_k m_l), m =
E[u] (no such term without a constant), and noise. The sum is taken as normal. A number of records known to a
variance v adds v M_ij M_kl.

Holders whose records have one law differ in their number of records only, so that
`inference.likelihoods.covariance` solves for all of them together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

from inference.likelihoods.covariance import WeightedSums, solve_shared
from inference.likelihoods.holders.groups import HolderGroups, NoiseShape


def second_moments(
    coefficients: Array,
    intercept: Array | float,
    sd: Array,
    feature_mean: Array | float,
    feature_covariance: Array,
    *,
    constant: bool,
    average: int = 1,
) -> Array:
    """M (p, p) for y | x ~ N(intercept + coefficients' x, sd^2), x ~ N(feature_mean, feature_covariance).

    average: k where a row is the sum of k records over sqrt k, its constant sqrt k (DDPLR B.1).
    """
    cross = feature_covariance @ coefficients
    variance = coefficients @ cross + sd**2
    covariance = jnp.block([[feature_covariance, cross[:, None]], [cross[None], variance[None, None]]])
    if not constant:
        return covariance
    response = intercept + coefficients @ feature_mean
    mean = jnp.concatenate([jnp.ones(1), feature_mean, response[None]])
    return jnp.pad(covariance, (1, 0)) + average * mean[:, None] * mean


class Total(NamedTuple):
    """The total of all holders: sums, noise variances (p, p), 0 if not released; rows and their variance."""

    total: Array
    rows: Array
    rows_variance: Array
    noise_variance: Array


class HolderLaw(Distribution):
    """The base of both laws: M = `second` (p, p), and draws of the holders' total.

    constant: whether u has one. total: the sum of all releases. Log densities are up to a term free of M.
    """

    arg_constraints = {"second": constraints.positive_definite}  # noqa: RUF012

    def __init__(
        self, second: Array, constant: bool, event_shape: tuple[int, ...], total: Total | None
    ) -> None:
        self.second, self.constant, self.total = second, constant, total
        super().__init__((), event_shape)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        raise NotImplementedError("single holders cannot be drawn from groups of holders: use draw_total")

    @property
    def observed_total(self) -> Array:
        """The upper triangle of the sum over all holders, (D,), 0 where it is not released."""
        assert self.total is not None
        return self.total.total[np.triu_indices(len(self.second))]

    def draw_total(self, key: Array) -> Array:
        """Draw `observed_total`, the noise taken as normal."""
        total = self.total
        assert total is not None
        white, noise = jax.random.normal(key, (2, *self.second.shape))
        factor = jnp.linalg.cholesky(self.second)
        spread = jnp.sqrt(total.rows / 2) * factor @ (white + white.T) @ factor.T
        if self.constant:
            # The part that the number of records, which is given, does not explain.
            share = self.second[0] / self.second[0, 0]
            spread = spread - spread[0, 0] * share[:, None] * share
        noise = jnp.triu(noise) + jnp.triu(noise, 1).T
        count = jnp.sqrt(total.rows_variance) * jax.random.normal(jax.random.fold_in(key, 1))
        drawn = (total.rows + count) * self.second + spread + jnp.sqrt(total.noise_variance) * noise
        return jnp.where(total.noise_variance > 0, drawn, 0.0)[np.triu_indices(len(drawn))]


class HolderSums(HolderLaw):
    """Sums (k, e, p, p) of a `HolderGroups` in the units of a `NoiseShape`; O(p^3) for each of them.

    second: M (p, p) in own units. count_variance: v (k,), None if it is zero. constant: whether u has one.
    The log density covers all holders.
    """

    support = constraints.independent(constraints.real, 4)

    def __init__(
        self,
        second: Array,
        groups: HolderGroups,
        count_variance: ArrayLike | None,
        shape: NoiseShape,
        *,
        constant: bool,
        total: Total | None = None,
    ) -> None:
        self.groups, self.count_variance, self.shape_of_noise = groups, count_variance, shape
        super().__init__(second, constant, (*groups.records.shape, *second.shape), total)

    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        scale = jnp.asarray(self.shape_of_noise.scale)
        at, holders, records, weights = (jnp.asarray(part) for part in self.groups)
        if not len(at):
            return jnp.zeros(())
        second = self.second / (scale[:, None] * scale)
        sums = WeightedSums(2 * at, jnp.asarray(value), records, weights)
        basis = self._basis(second)
        solved = solve_shared(second, basis, sums)
        log_determinants, quadratic = solved.log_determinants, solved.quadratic
        if len(basis):
            more, less = self._corrections(second, basis, solved.basis, sums)
            log_determinants, quadratic = log_determinants + more, quadratic - less
        return -(holders @ log_determinants + quadratic) / 2

    def _basis(self, second: Array) -> Array:
        """Matrices on which the covariance differs from 2 n M X M plus unit noise, (b, p, p)."""
        places = np.asarray(self.shape_of_noise.places, int)
        units = np.zeros((len(places), *second.shape))
        units[np.arange(len(places)), places, places] = 1
        if self.count_variance is None:
            return jnp.asarray(units)
        # The sum's first entry is the number of records itself.
        counted = second.at[0, 0].set(0.0) if self.constant else second
        return jnp.concatenate([jnp.asarray(units), counted[None]])

    def _corrections(
        self, second: Array, basis: Array, solved: Array, sums: WeightedSums
    ) -> tuple[Array, Array]:
        """Return the basis's addition to log-determinants (k,) and cut of the quadratic form (Woodbury)."""
        inverse = 1 / jnp.asarray(self.shape_of_noise.excess)
        excess = jnp.broadcast_to(inverse, (len(sums.ratios), len(inverse)))
        if self.count_variance is not None:
            excess = jnp.concatenate([excess, 1 / jnp.asarray(self.count_variance)[:, None]], axis=-1)
        small = jnp.einsum("aij,kbij->kab", basis, solved) + excess[:, :, None] * jnp.eye(len(basis))
        seen = jnp.einsum("kbij,keij->keb", solved, sums.statistics)
        seen = seen - sums.records[..., None] * jnp.einsum("kbij,ij->kb", solved, second)[:, None]
        products = jnp.einsum("ke,kea,keb->kab", sums.weights, seen, seen)
        if len(basis) == 1:
            return jnp.log(jnp.abs(small[:, 0, 0])), jnp.sum(products / small)
        return jnp.linalg.slogdet(small)[1], jnp.sum(jnp.linalg.inv(small) * products)


class HolderEntries(HolderLaw):
    """Released entries (j, D) of each holder's sum, with noise of any variances, by dense matrices: O(D^3).

    second: M (p, p). records, count_variance: (j,). noise_variance: (j, D). pairs: (D, 2), which entries of
    uu' they are. constant: whether u has one; then entry (0, 0) is not among them.
    """

    support = constraints.independent(constraints.real, 2)

    def __init__(
        self,
        second: Array,
        records: ArrayLike,
        count_variance: ArrayLike,
        noise_variance: ArrayLike,
        pairs: np.ndarray,
        *,
        constant: bool,
        total: Total | None = None,
    ) -> None:
        self.pairs = pairs
        self.records, self.count_variance = jnp.asarray(records), jnp.asarray(count_variance)
        self.noise_variance = jnp.asarray(noise_variance)
        super().__init__(second, constant, self.noise_variance.shape, total)

    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        m, (i, j) = self.second, self.pairs.T
        of_one = m[np.ix_(i, i)] * m[np.ix_(j, j)] + m[np.ix_(i, j)] * m[np.ix_(j, i)]
        if self.constant:
            products = m[0, i] * m[0, j] / m[0, 0]
            of_one = of_one - 2 * products[:, None] * products
        mean = m[i, j]
        residual = jnp.asarray(value) - self.records[:, None] * mean
        covariance = self.records[:, None, None] * of_one
        covariance = covariance + self.count_variance[:, None, None] * (mean[:, None] * mean)
        covariance = covariance + self.noise_variance[:, :, None] * jnp.eye(len(mean))
        factor = jnp.linalg.cholesky(covariance)
        white = solve_triangular(factor, residual[..., None], lower=True)[..., 0]
        diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
        return -jnp.sum(white**2) / 2 - jnp.sum(jnp.log(diagonal))
