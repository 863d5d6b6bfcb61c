"""Check that a private predictor's reports depend on each other column as expected, across bands.

If the outcome's law is wrong, the fit may take the outcome as evidence on the predictor's answers. The fit
then expects associations with other columns that the reports do not show. No single band need reveal this,
but all bands together do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from numpyro import handlers
from scipy import stats

from inference.analyses.program import Assembled
from inference.analyses.subgroups import MOST_LEVELS, levels_or_bands
from inference.analyses.table import Codes, Private, Values
from inference.compiling import compiled
from inference.results.predictive import FALSE_ALARM
from inference.results.verdict import FIT, Finding

# Levels and bands whose count of a kind varies less carry almost no information.
LEAST_VARIANCE = 1.0
# Used instead of a column's name: groups by the expected frequency of the kind.
EXPECTED = ""


def against_columns(analysis: Assembled, sites: Mapping[str, Values], middles: Values) -> Iterator[Finding]:
    """Yield reasons against the model, at most once in a thousand sound models for each private predictor.

    The predictor's reports are compared with the fit's expectation given everything else, including the
    outcome. sites: {site: (1, draws, …)}. middles: (cells,) the expected value of a public number.
    """
    if not analysis.predictors:
        return
    columns, outcome = _columns(analysis, middles), analysis.formula.outcome
    for predictor in analysis.predictors:
        codes, channel = analysis.cells.reports[predictor.name], predictor.choices
        said = codes >= 0
        counts = analysis.cells.counts[said].astype(np.float64)
        chances = _chances(analysis, predictor, sites)[said]
        every: dict[str, list[float]] = {}
        # If each report is of exactly one kind, the last follows from the others.
        for kind in range(channel.shows.shape[1] - channel.exact):
            shows, chance = channel.shows[codes[said], kind], chances[:, kind]
            levels = {name: level[said] for name, level in columns.items()}
            levels[EXPECTED] = levels_or_bands(pd.Series(chance), counts, MOST_LEVELS)
            for name, level in levels.items():
                every.setdefault(name, []).extend(_p_values(level, counts, shows, chance))
        tried = sum(map(len, every.values()))
        least = {name: min(each) for name, each in every.items() if each}
        worst = min(least, key=lambda name: least[name], default=EXPECTED)
        if least and tried * least[worst] < FALSE_ALARM:
            where = "are not where the fit expects them"
            if worst != EXPECTED:
                where = f"do not go with {worst} as the fit expects"
            reason = (
                f"the reports of {predictor.name} {where}: it may use {outcome} as evidence on "
                f"{predictor.name}, whose coefficient is then an artefact"
            )
            yield Finding(FIT, reason)


def _columns(analysis: Assembled, middles: Values) -> Mapping[str, Codes]:
    """Return {column: each pattern's level or band}, for the public columns and the outcome."""
    cells, response = analysis.cells, analysis.response
    columns = {str(name): cells.frame[name].iloc[cells.cell] for name in cells.frame.columns}
    if response is None:
        assert analysis.values is not None
        columns[analysis.formula.outcome] = pd.Series(analysis.values - middles[cells.cell])
    else:
        codes = cells.reports[response.name]
        number = response.number
        values = number.reports[codes] if number is not None else list(map(str, codes))
        columns[analysis.formula.outcome] = pd.Series(values)
    counts = cells.counts.astype(np.float64)
    return {
        name: levels_or_bands(column.reset_index(drop=True), counts, MOST_LEVELS)
        for name, column in columns.items()
    }


def _chances(analysis: Assembled, one: Private, sites: Mapping[str, Values]) -> Values:
    """Return (patterns, kinds): each kind's probability, given everything but the predictor's own report.

    This is the probability of the pattern with that kind as its report, divided by its probability without a
    report.
    """
    channel, leaves = one.choices, f"leaves_{analysis.privates.index(one)}"
    parts = channel.part[analysis.cells.reports[one.name]]
    with jax.enable_x64(True):
        data = {name: jnp.asarray(values) for name, values in analysis.data().items()}
        draws = {name: jnp.asarray(values[0]) for name, values in sites.items()}

        @compiled
        def mean(draws: dict[str, Array], shown: dict[str, Array], silent: dict[str, Array]) -> Array:
            def at(own: dict[str, Array]) -> Array:
                with handlers.seed(rng_seed=0), handlers.substitute(data=own):
                    drawn = analysis.drawn(shown)
                return jnp.exp(analysis.each(shown, *drawn) - analysis.each(silent, *drawn))

            return jax.lax.map(at, draws).mean(axis=0)

        silent = {**data, leaves: jnp.broadcast_to(channel.silent[:, None], data[leaves].shape)}
        kinds = [
            {**data, leaves: jnp.asarray(channel.chances[..., kind][:, parts])}
            for kind in range(channel.shows.shape[1])
        ]
        return np.stack([np.asarray(mean(draws, kind, silent)) for kind in kinds], axis=1)


def _p_values(levels: Codes, counts: Values, shows: Values, chances: Values) -> list[float]:
    """Return the p-values of a kind's trend over the ordered levels, and of its sum of squares.

    Each level's count becomes a normal score of the binomial law, scaled to the spread of people with
    different chances. That spread is wide enough: reports that the fit has seen are closer to it than new
    reports.
    """
    inside = (levels == np.unique(levels)[:, None]) * counts
    sizes, came, variance = inside.sum(axis=1), inside @ shows, inside @ (chances * (1 - chances))
    told = variance > LEAST_VARIANCE
    if told.sum() < 2:
        return []
    inside, sizes, came, variance = inside[told], sizes[told], came[told], variance[told]
    chance = inside @ chances / sizes
    scores = _scores(came, sizes, chance) * np.sqrt(sizes * chance * (1 - chance) / variance)
    order = np.flatnonzero(told)
    weights = (order - np.average(order, weights=variance)) * np.sqrt(variance)
    trend = abs(weights @ scores) / np.linalg.norm(weights)
    return [float(2 * stats.norm.sf(trend)), float(stats.chi2.sf(scores @ scores, len(scores)))]


def _scores(came: Values, sizes: Values, chance: Values) -> Values:
    """Return normal scores of binomial counts, by the middle of each count's probability."""
    law = stats.binom(np.round(sizes), chance)
    half = law.pmf(np.round(came)) / 2
    below, above = law.cdf(np.round(came)) - half, law.sf(np.round(came)) + half
    least = np.clip(np.minimum(below, above), 1e-300, 0.5)
    return np.asarray(np.where(above < below, 1, -1) * stats.norm.isf(least))
