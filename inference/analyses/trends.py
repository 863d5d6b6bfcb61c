"""Whether a private predictor's reports go with each other column as the fit expects, band after band.

Where an outcome's law is wrong the fit may take the outcome for what tells the predictor's answers, and so
have them go with other columns as nobody reported. No band alone need show it: together they do.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from numpyro import handlers
from scipy import stats

from inference.analyses.groups_of_people import MOST_LEVELS, levels_or_bands
from inference.analyses.program import Assembled
from inference.analyses.table import Codes, Looks, Private, Values
from inference.compiling import compiled
from inference.results.predictive import FALSE_ALARM

# Levels and bands in which a kind's number varies less say next to nothing.
LEAST_VARIANCE = 1.0
# In place of a column: how often the kind is expected to show.
EXPECTED = ""


def against_columns(analysis: Assembled, sites: Mapping[str, Values], middles: Values) -> tuple[str, ...]:
    """Why the model is not to be believed: of each private predictor, of sound models once in a thousand.

    Its reports are held against what the fit expects of them given all else, the outcome too. sites: {site:
    (1, draws, …)}. middles: (cells,) what is expected of a public number.
    """
    levels = _levels(analysis, middles)
    found = []
    for one in analysis.predictors:
        if one.looks is None:
            continue
        codes = analysis.cells.reports[one.name]
        said = codes < len(one.looks.shows)
        counts = analysis.cells.counts[said].astype(np.float64)
        chances = _chances(analysis, one, one.looks, sites)[said]
        p: dict[str, list[float]] = {}
        for kind in _kinds(one.looks):
            shows, chance = one.looks.shows[codes[said], kind], chances[:, kind]
            along = {name: level[said] for name, level in levels.items()}
            along[EXPECTED] = levels_or_bands(pd.Series(chance), counts, MOST_LEVELS)
            for name, level in along.items():
                p.setdefault(name, []).extend(_p_values(level, counts, shows, chance))
        tried = sum(map(len, p.values()))
        wrong = {name: min(each) for name, each in p.items() if each and tried * min(each) < FALSE_ALARM}
        if wrong:
            found.append(_said(one.name, min(wrong, key=lambda name: wrong[name]), analysis.formula.outcome))
    return tuple(found)


def _said(name: str, column: str, outcome: str) -> str:
    where = "are not where the fit expects them"
    if column != EXPECTED:
        where = f"do not go with {column} as the fit expects"
    return (
        f"the reports of {name} {where}: it may take {outcome} for what tells the answers to {name}, whose "
        "coefficient is then an artefact"
    )


def _kinds(looks: Looks) -> range:
    """Those looked at: where each report is of one kind the last's number follows from the others'."""
    return range(looks.shows.shape[1] - bool(looks.exclusive_parts.all()))


def _levels(analysis: Assembled, middles: Values) -> Mapping[str, Codes]:
    """{column: of each pattern its level or band}, of the public columns and the outcome."""
    cells = analysis.cells
    columns = {str(name): cells.frame[name].iloc[cells.cell] for name in cells.frame.columns}
    columns[analysis.formula.outcome] = pd.Series(_outcome(analysis, middles))
    counts = cells.counts.astype(np.float64)
    return {
        name: levels_or_bands(column.reset_index(drop=True), counts, MOST_LEVELS)
        for name, column in columns.items()
    }


def _outcome(analysis: Assembled, middles: Values) -> Values | list[str]:
    """Of each pattern: a number's distance from what is expected, a choice, or what was reported of it."""
    cells, response = analysis.cells, analysis.response
    if response is None:
        assert analysis.values is not None
        return analysis.values - middles[cells.cell]
    codes = cells.reports[response.name]
    return response.vectors[codes, 0] if response.channel is not None else list(map(str, codes))


def _chances(analysis: Assembled, one: Private, looks: Looks, sites: Mapping[str, Values]) -> Values:
    """(patterns, kinds): how often each kind shows, given all but the predictor's own report.

    It is how probable the pattern is with that kind in place of its report, by how probable without any.
    """
    place = analysis.privates.index(one)
    codes = analysis.cells.reports[one.name]
    parts = looks.part[np.where(codes < len(looks.part), codes, 0)]
    with jax.enable_x64(True):
        data = {name: jnp.asarray(values) for name, values in analysis.data().items()}
        draws = {name: jnp.asarray(values[0]) for name, values in sites.items()}

        def of(chances: Values, slopes: Mapping[str, Values]) -> dict[str, Array]:
            own = {f"slopes_{place}_{name}": jnp.asarray(slope[parts]) for name, slope in slopes.items()}
            return {**data, f"vectors_{place}": jnp.asarray(chances[parts]), **own}

        silent = of(
            np.ones(looks.chances.shape[:2]),
            {name: np.zeros(slopes.shape[:2]) for name, slopes in looks.unknown.items()},
        )

        @compiled
        def mean(draws: dict[str, Array], shown: dict[str, Array], silent: dict[str, Array]) -> Array:
            def at(own: dict[str, Array]) -> Array:
                with handlers.seed(rng_seed=0), handlers.substitute(data=own):
                    drawn = analysis.drawn(shown)
                return jnp.exp(analysis.each(shown, *drawn) - analysis.each(silent, *drawn))

            return jax.lax.map(at, draws).mean(axis=0)

        kinds = [
            of(
                looks.chances[:, :, kind],
                {name: slopes[:, :, kind] for name, slopes in looks.unknown.items()},
            )
            for kind in range(looks.shows.shape[1])
        ]
        return np.stack([np.asarray(mean(draws, kind, silent)) for kind in kinds], axis=1)


def _p_values(levels: Codes, counts: Values, shows: Values, chances: Values) -> list[float]:
    """Of a kind the p-values of its trend over the levels, in their order, and of its sum of squares.

    Each level's count is a normal score of the binomial law, in the spread of people whose chances differ.
    That is at least wide enough: reports that the fit has seen are nearer to it than new ones.
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
    """Normal scores of binomial counts, by the middle of each count's probability."""
    law = stats.binom(np.round(sizes), chance)
    half = law.pmf(np.round(came)) / 2
    below, above = law.cdf(np.round(came)) - half, law.sf(np.round(came)) + half
    least = np.clip(np.minimum(below, above), 1e-300, 0.5)
    return np.asarray(np.where(above < below, 1, -1) * stats.norm.isf(least))
