"""Figure 4: how near private posteriors are to the non-private one of the same table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.dpblr.calibration import worlds_and_releases
from benchmarks.dpblr.posteriors import Drawn, Lengths, draws_of, methods_for
from benchmarks.dpblr.scores import PARAMETERS, by_parameter, mmd_squared, published_mmd_squared
from benchmarks.dpblr.worlds import Noise
from benchmarks.running import show_table, verdict

# Draws of each posterior that are compared, as many as in the paper.
DRAWS = 300


def run(
    settings: Sequence[tuple[int, float]], noise: Noise, lengths: Lengths, methods: Sequence[str]
) -> None:
    """Print the median squared MMD for each method and parameter, right and as published."""
    for records, epsilon in settings:
        _, releases = worlds_and_releases(records, epsilon, noise, lengths.tables)
        exact = draws_of("non_private", releases, lengths)
        rows: list[list[object]] = []
        for method in methods_for(noise):
            if method in methods and method != "non_private":
                drawn = draws_of(method, releases, lengths)
                rows.append([method, *_medians(drawn, exact)])
        print(f"\n  n = {records}, ε = {epsilon:g}: median MMD², and as published", flush=True)
        show_table(["method", *(f"{name}{text}" for name in PARAMETERS for text in ("", " publ."))], rows)
        best = min(rows, key=lambda row: float(str(row[1])) + float(str(row[3])))
        verdict(f"nearest to the non-private posterior of θ: {best[0]}")


def _medians(drawn: Drawn, exact: Drawn) -> list[float]:
    found = []
    ours, theirs = by_parameter(drawn), by_parameter(exact)
    for name in PARAMETERS:
        pairs = list(zip(_some(ours[name]), _some(theirs[name]), strict=True))
        found.append(float(np.median([mmd_squared(*pair) for pair in pairs])))
        found.append(float(np.median([published_mmd_squared(*pair) for pair in pairs])))
    return found


def _some(draws: np.ndarray) -> np.ndarray:
    """DRAWS of each posterior, spread over its chain."""
    return draws[:, np.linspace(0, draws.shape[1] - 1, DRAWS).astype(int)]
