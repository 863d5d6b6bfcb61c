"""Slow, direct computations that the likelihoods are compared with."""

import numpy as np


def derivative(function, step=1e-2):
    """Derivative at zero by a central difference of order eight."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (function(i * step) - function(-i * step)) for i, w in enumerate(weights, 1)) / step


def svec(matrices):
    """Upper triangles, off-diagonal entries times sqrt 2."""
    i, j = np.triu_indices(matrices.shape[-1])
    return matrices[..., i, j] * np.where(i == j, 1.0, np.sqrt(2.0))


def logistic_moments(coefficients, intercept, mean, covariance):
    """Exact moments of svec(v v') by quadrature over x and enumeration over y.

    The first axis of the features' whitened space lies along the linear predictor: a fine trapezoid
    integrates the sigmoid there, and five Gauss-Hermite nodes the polynomials elsewhere.
    """
    d = len(coefficients)
    root = np.linalg.cholesky(covariance)
    rotation = np.linalg.qr(np.column_stack([root.T @ coefficients, np.eye(d)]))[0]
    fine = np.arange(-10, 10.01, 0.05)
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(5)
    axes = [fine] + [nodes] * (d - 1)
    parts = [np.exp(-(fine**2) / 2) * 0.05] + [node_weights] * (d - 1)
    z = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], -1)
    w = np.prod([g.ravel() for g in np.meshgrid(*parts, indexing="ij")], axis=0)
    x = mean + z @ (root @ rotation).T
    yes = 1 / (1 + np.exp(-(intercept + x @ coefficients)))
    sides = [np.column_stack([np.ones(len(x)), x, np.full(len(x), y)]) for y in (1, -1)]
    vectors, weights = np.concatenate(sides), np.concatenate([w * yes, w * (1 - yes)]) / w.sum()
    values = svec(vectors[:, :, None] * vectors[:, None, :])
    middle = weights @ values
    return middle, (values - middle).T @ ((values - middle) * weights[:, None])
