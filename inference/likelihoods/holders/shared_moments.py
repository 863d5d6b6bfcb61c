"""Many normal laws with one second-moment matrix: log-determinants, quadratic forms and solutions in O(p^3).

Holders whose records have one law differ in their number of records only. With A_k: X -> X + r_k M X M, all
A_k have M's eigenvectors, so one eigendecomposition serves all of them (METHODS 4.1).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


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


class _Spectrum(NamedTuple):
    vectors: Array
    values: Array
    variances: Array

    @classmethod
    def of(cls, second: Array, ratios: Array) -> _Spectrum:
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
    """What the log-density of `sums` needs of A_k; basis (b, p, p) and M = `second` (p, p) are symmetric.

    Differentiable in `second` and `basis` alone: `sums` are data. The eigendecomposition is taken once and
    never differentiated for a gradient: with Y = A^-1 R, d<R, Y> = -2 n <Y, dM> - 2 r <Y M Y, dM>.
    """
    spectrum = _Spectrum.of(second, sums.ratios)
    return _solved(spectrum, basis, sums)[0]


def _solved(spectrum: _Spectrum, basis: Array, sums: WeightedSums) -> tuple[Solved, Array]:
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
    spectrum = _Spectrum.of(second, sums.ratios)
    found, inside = _solved(spectrum, basis, sums)
    d_inside = spectrum.vectors.T @ d_second @ spectrum.vectors
    slopes = spectrum.log_determinant_slopes(sums.ratios)
    d_log_determinants = slopes @ jnp.diagonal(d_inside)
    d_quadratic = jnp.sum(_quadratic_slope(spectrum, inside, sums) * d_inside)
    half = sums.ratios[:, None, None, None] * (d_second @ found.basis @ second)
    moved = d_basis - half - jnp.swapaxes(half, -1, -2)
    d_solved = spectrum.unrotated(spectrum.rotated(moved) / spectrum.variances[:, None])
    return found, Solved(d_log_determinants, d_quadratic, d_solved)


def _quadratic_slope(spectrum: _Spectrum, inside: Array, sums: WeightedSums) -> Array:
    """-2 sum of weight * (n Y + r Y M Y) in the eigenbasis, (p, p)."""
    p = inside.shape[-1]
    linear = jnp.einsum("ke,keab->ab", sums.weights * sums.records, inside)
    scale = (sums.weights * sums.ratios[:, None])[..., None, None] * spectrum.values[:, None]
    # Both factors are symmetric, so their rows may be summed over in one product.
    squares = (scale * inside).reshape(-1, p).T @ inside.reshape(-1, p)
    return -2 * (linear + squares)
