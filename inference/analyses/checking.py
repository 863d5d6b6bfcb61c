"""Whether reports look as the fitted law says: how often each came, of all people and by public column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.table import Codes, Private, Values
from inference.models.base import Draws as Sites
from inference.results.predictive import Predictive

SIMULATED = 60
# Groups of people, and of reports in each: a page shows no more.
MOST_LEVELS, MOST_GROUPS = 8, 48
AT_ONCE = 2_000_000


def checked(analysis: Assembled, prior: Sites | None, posterior: Sites, seed: int) -> Predictive | None:
    """Shares of reports, simulated and observed; None where the outcome is public or reports differ too much.

    prior: {site: (draws, …)}, None under flat priors, which expect anything. posterior: {site: (chains,
    draws, …)}.
    """
    response = analysis.response
    if response is None or response.expected is None:
        return None
    random = np.random.default_rng(seed)
    groups = list(_groups(analysis.cells.frame))[:MOST_GROUPS]
    observed = _observed(analysis, response, groups)
    after = _simulated(analysis, response, _some(posterior, 2), groups, random)
    if prior is None:
        before = random.random(after.shape)
    else:
        before = _simulated(analysis, response, _some(prior, 1), groups, random)
    # The last report's share follows from the others'.
    kept = [place for place in range(len(observed)) if (place + 1) % len(response.expected[0][0])]
    return Predictive(before[:, kept], after[:, kept], observed[kept])


def _groups(frame: pd.DataFrame) -> Iterator[np.ndarray]:
    """Which cells are in each group: all, and those of each level of a column with few."""
    yield np.ones(len(frame), bool)
    for column in frame.columns:
        values = frame[column]
        if 2 <= values.nunique() <= MOST_LEVELS:
            for level in values.unique():
                yield (values == level).to_numpy()


def _some(sites: Sites, axes: int) -> dict[str, Values]:
    """Some draws, evenly taken, as one chain: {site: (1, draws, …)}."""
    flat = {name: values.reshape(-1, *values.shape[axes:]) for name, values in sites.items()}
    places = np.linspace(0, len(next(iter(flat.values()))) - 1, SIMULATED).astype(int)
    return {name: values[places][None] for name, values in flat.items()}


def _parts(analysis: Assembled, response: Private) -> tuple[Codes, Codes]:
    """Of each pattern its part of the design and its report."""
    assert response.expected is not None
    width = response.expected.shape[2]
    codes = analysis.cells.reports[response.name]
    return codes // width, codes % width


def _observed(analysis: Assembled, response: Private, groups: list[np.ndarray]) -> Values:
    assert response.expected is not None
    part, report = _parts(analysis, response)
    said = part < len(response.expected)
    shares = []
    for group in groups:
        inside = group[analysis.cells.cell] & said
        counts = np.bincount(report[inside], analysis.cells.counts[inside], response.expected.shape[2])
        shares.append(counts / max(counts.sum(), 1))
    return np.concatenate(shares)


def _simulated(
    analysis: Assembled,
    response: Private,
    sites: dict[str, Values],
    groups: list[np.ndarray],
    random: np.random.Generator,
) -> Values:
    """(draws, groups × reports): shares of reports that a draw gives to as many people."""
    assert response.expected is not None
    frame = analysis.cells.frame
    part, _ = _parts(analysis, response)
    sizes = np.zeros((len(response.expected), len(frame)))
    said = part < len(sizes)
    np.add.at(sizes, (part[said], analysis.cells.cell[said]), analysis.cells.counts[said])
    each = len(frame) * len(response.answers) * len(analysis.law.matrix.combinations)
    step = max(1, AT_ONCE // each)
    found = []
    for start in range(0, SIMULATED, step):
        some = {name: values[:, start : start + step] for name, values in sites.items()}
        for place, answers in enumerate(Predicted(analysis, some).each(frame)):
            matrices = response.expected.copy()
            for name, slopes in response.expected_unknown.items():
                matrices += slopes * some[name][0, place]
            chances = np.einsum("ca,paj->pcj", answers, matrices)
            found.append(np.concatenate([_drawn(sizes, chances, group, random) for group in groups]))
    return np.stack(found)


def _drawn(sizes: Values, chances: Values, group: np.ndarray, random: np.random.Generator) -> Values:
    """Shares of reports of one group of cells."""
    mean = np.einsum("pc,pcj->j", sizes[:, group], chances[:, group])
    n = int(sizes[:, group].sum())
    if not n:
        return np.zeros(len(mean))
    return random.multinomial(n, mean / mean.sum()) / n
