"""Table questions and their mechanisms; and the two tables whose statistics lie furthest apart.

A pair is (record, its replacement, the average of the other k − 1 records of its group), each with features
in the box and the ball and a response in [−1, 1]; the domain is convex, so equal others are no loss.
"""

import numpy as np

from ldp_client.mechanisms.tables.powers import products_of
from tests import studies

FIELDS = [*studies.TABLE["features"], studies.TABLE["response"]]
CANDIDATES = 128
STEPS = 300


def mechanism(question=studies.TABLE, **options):
    """The mechanism of a question with other options; norm is the question's."""
    norm = options.pop("norm", question["norm"])
    return studies.mechanism_of(question, norm=norm, mechanism={**question["mechanism"], **options})


def table(places):
    """{field: column} of rows of places in [−1, 1]: features, then the response."""
    columns = np.asarray(places, float).T
    bounds = [np.asarray(field["bounds"], float) for field in FIELDS]
    return {
        field["id"]: low + (column + 1) / 2 * (high - low)
        for field, (low, high), column in zip(FIELDS, bounds, columns)
    }


def random_places(n, seed=1):
    return np.random.default_rng(seed).uniform(-1.3, 1.3, (n, 3))


def clipped(places, norm):
    """What a mechanism makes of places (…, features + 1), in floating point: into the box and the ball."""
    places = np.clip(places, -1, 1)
    lengths = np.linalg.norm(places[..., :-1], axis=-1, keepdims=True)
    shrink = np.minimum(1, norm / np.maximum(lengths, 1e-300))
    return np.concatenate([places[..., :-1] * shrink, places[..., -1:]], axis=-1)


def largest(distance, features, norm):
    """(the largest distance found, the pair that has it): a pair is an array (3, features + 1).

    Many candidates at once, each moved where that helps, by ever smaller steps; corners included.
    """
    random = np.random.default_rng(0)
    pairs = clipped(random.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (CANDIDATES, 3, features + 1)), norm)
    best = distance(pairs)
    for step in range(STEPS):
        size = 10 ** (-5 * step / STEPS)
        sparse = random.random(pairs.shape) < random.choice([0.2, 1.0])
        tried = clipped(pairs + size * sparse * random.normal(size=pairs.shape), norm)
        reached = distance(tried)
        better = reached > best
        pairs[better], best[better] = tried[better], reached[better]
        if step % 75 == 74:
            keep = np.argsort(best)[-CANDIDATES // 4 :]
            pairs, best = np.tile(pairs[keep], (4, 1, 1)), np.tile(best[keep], 4)
    return best.max(), pairs[best.argmax()]


def difference(pairs, average, constant, weight):
    """vvᵀ − wwᵀ of v = (constant·k, x, weight·y) for the group with and without the replacement."""
    products = []
    for member in (0, 1):
        sums = (average - 1) * pairs[:, 2] + pairs[:, member]
        constants = np.full((len(sums), 1), constant * average)
        v = np.concatenate([constants, sums[:, :-1], weight * sums[:, -1:]], axis=1)
        products.append(v[:, :, None] * v[:, None, :])
    return products[0] - products[1]


def svec_distance(norm, intercept, average):
    weight = norm / 2**0.5
    return lambda pairs: np.linalg.norm(difference(pairs, average, weight * intercept, weight), axis=(1, 2))


def ddplr_distance(intercept, average):
    def distance(pairs):
        entries = np.triu(difference(pairs, average, float(intercept), 1.0))
        entries[:, -1, -1] = 0
        return np.linalg.norm(entries, axis=(1, 2))

    return distance


def laplace_distance(intercept, average):
    return lambda pairs: np.abs(np.triu(difference(pairs, average, float(intercept), 1.0))).sum(axis=(1, 2))


def powers(x, intercept):
    """(…, d) features → their products of three and four."""
    chosen = products_of(x.shape[-1], intercept)
    return np.stack([np.prod(x[..., np.asarray(one) - 1], axis=-1) for one in chosen], axis=-1)


def powers_distance(intercept):
    def distance(pairs):
        x = powers(pairs[:, :2, :-1], intercept)
        return np.abs(x[:, 0] - x[:, 1]).sum(axis=-1)

    return distance
