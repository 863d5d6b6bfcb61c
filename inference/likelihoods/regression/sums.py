"""The law of noisy sums of records' second moments: of many devices, or of each data holder (METHODS 4, 6).

A sum over n records of uu' has mean n M and n times the covariance of one record's uu', and noise. The sum is
taken as normal: its skewness is of order 1 / sqrt n. A number of records known to a variance v adds v M M'.

Sums whose records have one law differ in their number of records only, so that
`inference.likelihoods.covariance` solves for all of them together.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

from inference.likelihoods.covariance import WeightedSums, solve_shared
from inference.likelihoods.holders.groups import HolderGroups, NoiseShape
from inference.likelihoods.regression.moments import Moments


class Total(NamedTuple):
    """The total of all sums: values, noise variances (p, p), 0 if not released; rows and their variance."""

    total: Array
    rows: Array
    rows_variance: Array
    noise_variance: Array


class RecordSums(Distribution):
    """The base of both laws: the records' moments, and draws of the total of all sums.

    Log densities are up to a term free of the moments.
    """

    def __init__(self, moments: Moments, event_shape: tuple[int, ...], total: Total | None) -> None:
        self.moments, self.total = moments, total
        super().__init__((), event_shape)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        raise NotImplementedError("single sums cannot be drawn from groups of sums: use draw_total")

    @property
    def observed_total(self) -> Array:
        """The upper triangle of the total, (D,), 0 where it is not released."""
        assert self.total is not None
        released = jnp.where(self.total.noise_variance > 0, self.total.total, 0.0)
        return released[np.triu_indices(len(released))]

    def draw_total(self, key: Array) -> Array:
        """Draw `observed_total`, the noise taken as normal."""
        total, second = self.total, self.moments.second
        assert total is not None
        of_noise, of_count, of_records = jax.random.split(key, 3)
        noise = jax.random.normal(of_noise, second.shape)
        noise = jnp.triu(noise) + jnp.triu(noise, 1).T
        count = jnp.sqrt(total.rows_variance) * jax.random.normal(of_count)
        drawn = self.moments.draw(of_records, total.rows) + count * second
        drawn = drawn + jnp.sqrt(total.noise_variance) * noise
        return jnp.where(total.noise_variance > 0, drawn, 0.0)[np.triu_indices(len(drawn))]


class NoisySums(RecordSums):
    """Sums (k, e, p, p) of a `HolderGroups` in the units of a `NoiseShape`; O(p^3) for each of them.

    moments: of the records in own units. count_variance: v (k,), None if it is zero. The log density covers
    all holders. Entries that are known exactly must have their value; they carry no information.
    """

    support = constraints.independent(constraints.real, 4)

    def __init__(
        self,
        moments: Moments,
        groups: HolderGroups,
        shape: NoiseShape,
        count_variance: ArrayLike | None = None,
        total: Total | None = None,
    ) -> None:
        self.groups, self.count_variance, self.shape_of_noise = groups, count_variance, shape
        super().__init__(moments, (*groups.records.shape, *moments.second.shape), total)

    def log_prob(self, value: ArrayLike) -> Array:
        at, holders, records, weights = (jnp.asarray(part) for part in self.groups)
        if not len(at):
            return jnp.zeros(())
        scale = jnp.asarray(self.shape_of_noise.scale)
        units = scale[:, None] * scale
        second = self.moments.second / units
        basis, factors = self._low_rank(at, units)
        sums = WeightedSums(2 * at, jnp.asarray(value), records, weights)
        solved = solve_shared(second, basis, sums)
        log_determinants, quadratic = solved.log_determinants, solved.quadratic
        if len(basis):
            # Woodbury's identity, without the inverse of the factors: some are 0.
            gram = jnp.einsum("aij,kbij->kab", basis, solved.basis)
            small = jnp.eye(len(basis)) + factors @ gram
            seen = jnp.einsum("kbij,keij->keb", solved.basis, sums.statistics)
            seen = seen - records[..., None] * jnp.einsum("kbij,ij->kb", solved.basis, second)[:, None]
            products = jnp.einsum("ke,kea,keb->kab", weights, seen, seen)
            log_determinants = log_determinants + jnp.linalg.slogdet(small)[1]
            quadratic = quadratic - jnp.sum(jnp.linalg.solve(small, factors) * products)
        return -(holders @ log_determinants + quadratic) / 2

    def _low_rank(self, at: Array, units: Array) -> tuple[Array, Array]:
        """Return where the covariance differs from 2 n M X M plus unit noise.

        A basis (b, p, p), and its factors (k, b, b).
        """
        moments, shape = self.moments, self.shape_of_noise
        places = np.asarray(shape.places, int)
        diagonal = np.zeros((len(places), *units.shape))
        diagonal[np.arange(len(places)), places, places] = 1
        basis = [moments.basis / units, jnp.asarray(diagonal)]
        own = jnp.broadcast_to(jnp.asarray(shape.excess), (len(at), len(places)))
        if self.count_variance is not None:
            # The sum's first entry is the number of records itself.
            counted = moments.second.at[0, 0].set(0.0) if moments.constant else moments.second
            basis.append((counted / units)[None])
            own = jnp.concatenate([own, jnp.broadcast_to(self.count_variance, at.shape)[:, None]], axis=-1)
        of_records, more = len(moments.basis), own.shape[-1]
        factors = jnp.pad(at[:, None, None] * moments.weights, ((0, 0), (0, more), (0, more)))
        of_noise = jnp.pad(own[:, :, None] * jnp.eye(more), ((0, 0), (of_records, 0), (of_records, 0)))
        return jnp.concatenate(basis), factors + of_noise


class DenseSums(RecordSums):
    """Released entries (j, D) of each holder's sum, with noise of any variances, by dense matrices: O(D^3).

    records, count_variance: (j,). noise_variance: (j, D). pairs: (D, 2), which entries of uu' they are, none
    of them exact.
    """

    support = constraints.independent(constraints.real, 2)

    def __init__(
        self,
        moments: Moments,
        records: ArrayLike,
        count_variance: ArrayLike,
        noise_variance: ArrayLike,
        pairs: np.ndarray,
        total: Total | None = None,
    ) -> None:
        self.pairs = pairs
        self.records, self.count_variance = jnp.asarray(records), jnp.asarray(count_variance)
        self.noise_variance = jnp.asarray(noise_variance)
        super().__init__(moments, self.noise_variance.shape, total)

    def log_prob(self, value: ArrayLike) -> Array:
        (m, basis, weights), (i, j) = self.moments, self.pairs.T
        of_one = m[np.ix_(i, i)] * m[np.ix_(j, j)] + m[np.ix_(i, j)] * m[np.ix_(j, i)]
        of_one = of_one + basis[:, i, j].T @ weights @ basis[:, i, j]
        mean = m[i, j]
        residual = jnp.asarray(value) - self.records[:, None] * mean
        covariance = self.records[:, None, None] * of_one
        covariance = covariance + self.count_variance[:, None, None] * (mean[:, None] * mean)
        covariance = covariance + self.noise_variance[:, :, None] * jnp.eye(len(mean))
        factor = jnp.linalg.cholesky(covariance)
        white = solve_triangular(factor, residual[..., None], lower=True)[..., 0]
        diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1)
        return -jnp.sum(white**2) / 2 - jnp.sum(jnp.log(diagonal))
