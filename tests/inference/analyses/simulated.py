"""A small table of public columns and private reports, for tests of analyses."""

from __future__ import annotations

import numpy as np
import pandas as pd

from inference.analyses.table import Private, Table, table_of
from tests.kit.channels import known_channel

YES_NO = [[0.8, 0.2], [0.3, 0.7]]
JOBS = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]
CHANNELS = {"ever": YES_NO, "smokes": YES_NO, "job": JOBS, "mood": JOBS}
ANSWERS = {
    "ever": ("no", "yes"),
    "smokes": ("no", "yes"),
    "job": ("none", "worker", "teacher"),
    "mood": ("low", "so", "high"),
}


def table(n: int = 40, seed: int = 0) -> Table:
    """Reports that say nothing of anything; every seventh has none of `job`."""
    random = np.random.default_rng(seed)
    public = pd.DataFrame(
        {
            "age": random.normal(40, 10, n).round(1),
            "region": pd.Categorical(random.choice(["east", "north", "west"], n)),
            "clinic": random.integers(0, 4, n),
            "cov.size": random.integers(0, 3, n),
            "income": random.normal(5, 2, n),
            "died": random.integers(0, 2, n),
            "visits": random.poisson(3, n),
        }
    )
    return table_of(public, [_private(name, random, n) for name in CHANNELS])


def _private(name: str, random: np.random.Generator, n: int) -> Private:
    reports = random.integers(0, len(CHANNELS[name][0]), n)
    if name == "job":
        reports[::7] = -1
    return known_channel(name, ANSWERS[name], reports, CHANNELS[name], ordered=name == "mood")
