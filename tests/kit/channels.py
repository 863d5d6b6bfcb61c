"""Private columns whose reports have one stated law."""

import numpy as np

from inference.analyses.channel import Channel, Weights
from inference.analyses.table import Private


def known_channel(name, answers, reports, matrix, ordered=False):
    """Return a private column under one matrix P(report | answer), (answers, reports)."""
    channel = Channel.of(np.asarray(matrix, np.float64))
    return Private(name, tuple(answers), np.asarray(reports, np.int64), channel, ordered)


def open_share(name, reports, share):
    """Return a yes-no column of which an unknown share answers at random, and the others the truth."""
    weights, random, truth = Weights(share), np.full((2, 2), 0.5), np.eye(2)
    shows, part = np.eye(2, dtype=bool), np.zeros(2, np.int64)
    paths = (((share, 0),), ((share, 1),))
    channel = Channel(np.stack([random, truth])[:, None], shows, part, paths=paths, weights={share: weights})
    return Private(name, ("no", "yes"), np.asarray(reports, np.int64), channel)
