"""The law of noisy sums of records' second moments: of many devices, or of each data holder (METHODS 4, 6).

A sum over n records of uu' has mean n M and n times the covariance of one record's uu', and noise. The sum is
taken as normal: its skewness is of order 1 / sqrt n. A number of records known to a variance v adds v M M'.

Sums whose records have one law differ in their number of records only, and are solved together. Their
covariance is X -> X + r N X N on symmetric matrices, N = E[v v']. Sums over several numbers of records share
the eigenvectors of N, so that one eigendecomposition gives the log-determinants, quadratic forms and
solutions of all of them in O(p^3). It is never differentiated (METHODS 4.1). Matrices stand for vectors in
svec coordinates: <X, Y> = trace(X Y).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

from inference.likelihoods.holders import HolderGroups, NoiseShape
from inference.likelihoods.regression.moments import Moments


class WeightedSums(NamedTuple):
    """Sums X (k, e, p, p) of n (k, e) records, e of them under each ratio r (k,), with weights (k, e)."""

    ratios: Array
    statistics: Array
    records: Array
    weights: Array


class Solved(NamedTuple):
    """log_determinants (k,); quadratic (): sum of weight <R, A_k^-1 R>, R = X - n M; basis (k, b, p, p)."""

    log_determinants: Array
    quadratic: Array
    basis: Array


class Spectrum(NamedTuple):
    vectors: Array
    values: Array
    variances: Array

    @classmethod
    def of(cls, second: Array, ratios: Array) -> Spectrum:
        values, vectors = jnp.linalg.eigh(second)
        values = jnp.maximum(values, 0.0)
        return cls(vectors, values, 1 + ratios[:, None, None] * (values[:, None] * values))

    def rotated(self, stack: Array) -> Array:
        """U' X U of symmetric matrices (..., p, p), as two wide products."""
        p = stack.shape[-1]
        half = jnp.swapaxes((stack.reshape(-1, p) @ self.vectors).reshape(stack.shape), -1, -2)
        return (half.reshape(-1, p) @ self.vectors).reshape(stack.shape)

    def unrotated(self, matrices: Array) -> Array:
        """U X U' of symmetric matrices (..., p, p): undoes `rotated`."""
        return self.vectors @ matrices @ self.vectors.T

    def log_determinants(self) -> Array:
        diagonal = jnp.diagonal(self.variances, axis1=-2, axis2=-1)
        return (jnp.log(self.variances).sum((-1, -2)) + jnp.log(diagonal).sum(-1)) / 2

    def log_determinant_slopes(self, ratios: Array) -> Array:
        """Derivatives of the log-determinants in each eigenvalue, (k, p)."""
        diagonal = jnp.diagonal(self.variances, axis1=-2, axis2=-1)
        return ratios[:, None] * ((self.values / self.variances).sum(-1) + self.values / diagonal)


@jax.custom_jvp
def solve_shared(second: Array, basis: Array, sums: WeightedSums) -> Solved:
    """Compute the log-density's terms of `sums` and A_k; basis (b, p, p), M = `second` (p, p) are symmetric.

    Differentiable in `second` and `basis` alone: `sums` are data. The eigendecomposition is taken once and
    never differentiated for a gradient: with Y = A^-1 R, d<R, Y> = -2 n <Y, dM> - 2 r <Y M Y, dM>.
    """
    spectrum = Spectrum.of(second, sums.ratios)
    return _solved(spectrum, basis, sums)[0]


def _solved(spectrum: Spectrum, basis: Array, sums: WeightedSums) -> tuple[Solved, Array]:
    """The solution, and each A_k^-1 R in the eigenbasis."""
    residual = spectrum.rotated(sums.statistics)
    residual = residual - sums.records[..., None, None] * jnp.diag(spectrum.values)
    inside = residual / spectrum.variances[:, None]
    quadratic = jnp.sum(sums.weights[..., None, None] * residual * inside)
    solved = spectrum.unrotated(spectrum.rotated(basis) / spectrum.variances[:, None])
    return Solved(spectrum.log_determinants(), quadratic, solved), inside


@solve_shared.defjvp
def _solve_shared_jvp(
    primals: tuple[Array, Array, WeightedSums], tangents: tuple[Array, Array, WeightedSums]
) -> tuple[Solved, Solved]:
    second, basis, sums = primals
    d_second, d_basis, _ = tangents
    spectrum = Spectrum.of(second, sums.ratios)
    found, inside = _solved(spectrum, basis, sums)
    d_inside = spectrum.vectors.T @ d_second @ spectrum.vectors
    slopes = spectrum.log_determinant_slopes(sums.ratios)
    d_log_determinants = slopes @ jnp.diagonal(d_inside)
    d_quadratic = jnp.sum(_quadratic_slope(spectrum, inside, sums) * d_inside)
    half = sums.ratios[:, None, None, None] * (d_second @ found.basis @ second)
    moved = d_basis - half - jnp.swapaxes(half, -1, -2)
    d_solved = spectrum.unrotated(spectrum.rotated(moved) / spectrum.variances[:, None])
    return found, Solved(d_log_determinants, d_quadratic, d_solved)


def _quadratic_slope(spectrum: Spectrum, inside: Array, sums: WeightedSums) -> Array:
    """-2 sum of weight * (n Y + r Y M Y) in the eigenbasis, (p, p)."""
    p = inside.shape[-1]
    linear = jnp.einsum("ke,keab->ab", sums.weights * sums.records, inside)
    scale = (sums.weights * sums.ratios[:, None])[..., None, None] * spectrum.values[:, None]
    # Both factors are symmetric, so their rows may be summed over in one product.
    squares = (scale * inside).reshape(-1, p).T @ inside.reshape(-1, p)
    return -2 * (linear + squares)


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
