"""Whether reports look as the fitted law says: how often each came, of all people and by public column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.table import Looks, Private, Values
from inference.models.base import Draws as Sites
from inference.results.diagnostics import Diagnostics, diagnose
from inference.results.predictive import Predictive
from inference.results.prior_notes import contradictions, knowledge, prior_notes
from inference.results.verdict import Part
from inference.samplers import SAMPLERS
from inference.sampling import Sampled

Mask = NDArray[np.bool_]

SIMULATED = 60
# Groups of people, and of reports in each: a page shows no more.
MOST_LEVELS, MOST_GROUPS = 8, 48
AT_ONCE = 2_000_000


def judged(
    parameters: Mapping[str, Values],
    prior: Mapping[str, Values],
    drawn: Sampled,
    n: int,
    notes: Sequence[str],
    method: str,
) -> Diagnostics:
    """Judge an analysis by its draws and its prior's, by parameter, from n reports."""
    return diagnose(
        parameters,
        drawn.diverging,
        n,
        (*notes, *prior_notes(parameters, prior)),
        drawn.reasons,
        drawn.mixing,
        SAMPLERS[method].remedy,
        drawn.chained,
        Part.of(contradictions(parameters, prior)),
        knowledge(parameters, prior),
    )


def checked(analysis: Assembled, prior: Sites | None, posterior: Sites, seed: int) -> Predictive | None:
    """Shares of reports, simulated and observed; None where the outcome is public or reports differ too much.

    prior: {site: (draws, …)}, None under flat priors, which expect anything. posterior: {site: (chains,
    draws, …)}.
    """
    response = analysis.response
    if response is None or response.looks is None:
        return None
    random = np.random.default_rng(seed)
    features = response.looks.shows.shape[1]
    most = max(1, MOST_GROUPS // features)
    groups = list(_groups(analysis.cells.frame))[:most]
    reports = _Reports(analysis, response, response.looks)
    observed = np.concatenate([reports.observed(group) for group in groups])
    after = reports.simulated(_some(posterior, 2), groups, random)
    if prior is None:
        before = random.random(after.shape)
    else:
        before = reports.simulated(_some(prior, 1), groups, random)
    # Of features of which each report has one, the last's share follows from the others'.
    alone = bool(response.looks.exclusive_parts.all())
    kept = [place for place in range(len(observed)) if not alone or (place + 1) % features]
    return Predictive(before[:, kept], after[:, kept], observed[kept])


def _groups(frame: pd.DataFrame) -> Iterator[Mask]:
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


class _Reports:
    """The reports of a private outcome: how many of each part came in each cell, and what they show."""

    def __init__(self, analysis: Assembled, response: Private, looks: Looks) -> None:
        self.analysis, self.looks = analysis, looks
        codes = analysis.cells.reports[response.name]
        said = codes < len(looks.shows)
        self._cell, self._code = analysis.cells.cell[said], codes[said]
        self._counts = analysis.cells.counts[said]
        self._sizes = np.zeros((len(looks.chances), len(analysis.cells.frame)))
        np.add.at(self._sizes, (looks.part[self._code], self._cell), self._counts)

    def observed(self, group: Mask) -> Values:
        """The share of a group's reports that show each feature."""
        inside = group[self._cell]
        counts = self._counts[inside]
        return np.asarray(counts @ self.looks.shows[self._code[inside]] / max(counts.sum(), 1))

    def simulated(self, sites: dict[str, Values], groups: list[Mask], random: np.random.Generator) -> Values:
        """(draws, groups × features): the same of as many people at each draw."""
        frame = self.analysis.cells.frame
        choices = len(self.analysis.outcome.answers) * len(self.analysis.law.matrix.combinations)
        step = max(1, AT_ONCE // (len(frame) * choices))
        found = []
        for start in range(0, SIMULATED, step):
            some = {name: values[:, start : start + step] for name, values in sites.items()}
            for place, answers in enumerate(Predicted(self.analysis, some).each(frame)):
                chances = self.looks.chances.copy()
                for name, slopes in self.looks.unknown.items():
                    chances += slopes * some[name][0, place]
                of_cells = np.einsum("ca,paf->pcf", answers, chances)
                found.append(np.concatenate([self._drawn(of_cells, group, random) for group in groups]))
        return np.stack(found)

    def _drawn(self, of_cells: Values, group: Mask, random: np.random.Generator) -> Values:
        sizes = self._sizes[:, group]
        n = int(sizes.sum())
        found = np.zeros(of_cells.shape[2])
        for exclusive in (True, False):
            parts = self.looks.exclusive_parts == exclusive
            own = int(sizes[parts].sum())
            if not own:
                continue
            mean = np.clip(np.einsum("pc,pcf->f", sizes[parts], of_cells[parts][:, group]) / own, 0, 1)
            found += random.multinomial(own, mean / mean.sum()) if exclusive else random.binomial(own, mean)
        return np.asarray(found / max(n, 1))
