"""Solutions for the covariance of sums of outer products, X -> X + r N X N on symmetric matrices, in O(p^3).

Sums over several numbers of records share the eigenvectors of N = E[v v'], so that one eigendecomposition
gives the log-determinants, quadratic forms and solutions of all of them. It is never differentiated (METHODS
4.1). Matrices stand for vectors in svec coordinates: <X, Y> = trace(X Y).
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
