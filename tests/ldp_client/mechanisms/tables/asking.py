"""Table questions, their mechanisms, and tables of given places between the bounds."""

import numpy as np

from tests import studies

FIELDS = [*studies.TABLE["features"], studies.TABLE["response"]]


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


def clipped(places, norm=1.0):
    """What a mechanism makes of places, in floating point."""
    places = np.clip(places, -1, 1)
    lengths = np.maximum(np.linalg.norm(places[:, :2], axis=1, keepdims=True), norm)
    return np.column_stack([np.ones(len(places)), places[:, :2] * norm / lengths, places[:, 2]])
