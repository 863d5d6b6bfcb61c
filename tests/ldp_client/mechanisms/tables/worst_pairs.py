"""The two tables whose statistics lie furthest apart, by numerical search: what sensitivities are held to.

A pair is (record, its replacement, the average of the other k − 1 records of its group), each with features
in the box and the ball and a response in [−1, 1]; the domain is convex, so equal others are no loss.
"""

import numpy as np

CANDIDATES = 128
STEPS = 300


def largest(distance, features, norm):
    """(the largest distance found, the pair that has it): a pair is an array (3, features + 1).

    Many candidates at once, each moved where that helps, by ever smaller steps; corners included.
    """
    random = np.random.default_rng(0)
    pairs = project(random.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (CANDIDATES, 3, features + 1)), norm)
    best = distance(pairs)
    for step in range(STEPS):
        size = 10 ** (-5 * step / STEPS)
        sparse = random.random(pairs.shape) < random.choice([0.2, 1.0])
        tried = project(pairs + size * sparse * random.normal(size=pairs.shape), norm)
        reached = distance(tried)
        better = reached > best
        pairs[better], best[better] = tried[better], reached[better]
        if step % 75 == 74:
            keep = np.argsort(best)[-CANDIDATES // 4 :]
            pairs, best = np.tile(pairs[keep], (4, 1, 1)), np.tile(best[keep], 4)
    return best.max(), pairs[best.argmax()]


def project(pairs, norm):
    """Into the box and the ball."""
    pairs = np.clip(pairs, -1, 1)
    lengths = np.linalg.norm(pairs[..., :-1], axis=-1, keepdims=True)
    shrink = np.minimum(1, norm / np.maximum(lengths, 1e-300))
    return np.concatenate([pairs[..., :-1] * shrink, pairs[..., -1:]], axis=-1)


def difference(pairs, average, constant, weight):
    """vvᵀ − wwᵀ of v = (constant·k, x, weight·y) for the group with and without the replacement."""
    products = []
    for member in (0, 1):
        sums = (average - 1) * pairs[:, 2] + pairs[:, member]
        constants = np.full((len(sums), 1), constant * average)
        v = np.concatenate([constants, sums[:, :-1], weight * sums[:, -1:]], axis=1)
        products.append(v[:, :, None] * v[:, None, :])
    return products[0] - products[1]


def norm_of(entries):
    return np.sqrt(np.sum(entries**2, axis=(1, 2)))


def svec_distance(norm, intercept, average):
    weight = norm / 2**0.5
    return lambda pairs: norm_of(difference(pairs, average, weight * intercept, weight))


def ddplr_distance(intercept, average):
    def distance(pairs):
        entries = np.triu(difference(pairs, average, float(intercept), 1.0))
        entries[:, -1, -1] = 0
        return norm_of(entries)

    return distance


def laplace_distance(intercept, average):
    return lambda pairs: np.abs(np.triu(difference(pairs, average, float(intercept), 1.0))).sum(axis=(1, 2))
