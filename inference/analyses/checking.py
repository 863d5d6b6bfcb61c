"""Check that the reports in a formula's columns are as frequent as its fit expects, by level of each column.

The outcome's reports are compared with what the fit expects by public columns, and each private predictor's
reports with what it expects by everything else, including the outcome. If the outcome's law is wrong, the fit
may take the outcome as evidence on the predictor's answers. It then expects associations with other columns
that the reports do not show. Reports that no answers can give are farther off than any fit can come.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from numpyro import handlers

from inference.analyses.channel import Channel
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.subgroups import MOST_GROUPS, MOST_LEVELS, cuts_of, groups_of, levels_or_bands
from inference.analyses.table import Codes, Private, Table, Values
from inference.compiling import compiled
from inference.models.base import Draws as Sites
from inference.predictive import LEAST_VARIANCE, SIMULATED, Predictive, p_values, some_draws
from inference.results.verdict import CARE, FALSE_ALARM, FIT, Finding

# Numbers in memory at a time, and in all draws of all cells.
AT_ONCE, MOST_AT_ONCE = 2_000_000, 10_000_000
# For a private number: values in memory for each law, and its cost relative to a law of choices.
HELD, LONGER = 60, {"laplace": 4, "gaussian": 40}
# The most levels of words in which reports are compared.
MOST_WORDS = 60
# Used instead of a column's name: groups by the expected frequency of the kind.
EXPECTED = ""
NOT_THE_NOISE = "people did not follow the noise"
FEW = "the law itself was not checked: there are too few reports"


def checked(
    analysis: Assembled, prior: Sites | None, posterior: Sites, seed: int, by: str | None = None
) -> Predictive:
    """Compare reports with what a fit expects of them; the page shows the outcome's by groups of people.

    A private number is checked by parts of its reports' range, and a public number by its distance from what
    the fit expects by public columns. prior: {site: (draws, …)}, None under flat priors, which expect
    anything. posterior: {site: (chains, draws, …)}. by: a column to group by first.
    """
    random, table = np.random.default_rng(seed), analysis.table
    sites = _single_chain(posterior, 2)
    is_public = analysis.response is None and not analysis.outcome.answers
    # Each cell's expected mean: distances from it show a number's law despite public columns.
    middles = np.zeros(len(table.frame))
    if is_public and analysis.values is not None:
        expected = Predicted(analysis, sites).means(analysis.table.frame)[:, 0]
        # Clip to the observed range: extreme draws may expect anything.
        middles = np.clip(np.nan_to_num(expected), analysis.values.min(), analysis.values.max())
    # 1. Count the outcome's reports, in some cells if there are very many.
    outcome = _outcome(analysis, middles)
    reports, combinations = outcome.reports, len(analysis.law.matrix.combinations)
    most = MOST_AT_ONCE // (SIMULATED * combinations * _kinds(reports) * outcome.longer)
    some = np.arange(len(table.frame))
    if len(some) > max(1, most):
        some = np.sort(np.random.default_rng(0).choice(some, max(1, most), replace=False))
    frame = table.frame.iloc[some].reset_index(drop=True)
    people, came = _in_cells(reports, table, some)
    # 2. Compare them with what the fit expects.
    drawn = np.stack(list(_expected(analysis, outcome, some, sites)))
    columns = _levels(frame, people)
    name, why = analysis.formula.outcome, "its law is another"
    subject = f"values of {name}" if analysis.response is None else f"reports of {name}"
    why += "" if analysis.response is None else f", or {NOT_THE_NOISE}"
    chances = drawn.mean(axis=0)
    against = list(_misfits(subject, why, people, came, chances, columns))
    if float(people @ (chances * (1 - chances)).max(axis=1)) < LEAST_VARIANCE:
        against.append(Finding(FIT, FEW, CARE))
    against += _against_predictors(analysis, sites, middles)
    # 3. Simulate as many reports, added up in groups of people.
    of_cells = people.reshape(-1, len(frame)).sum(axis=0)
    named = list(groups_of(frame, of_cells, by, MOST_GROUPS // came.shape[1]))
    groups = np.tile(np.stack([mask for _, mask in named]), len(people) // len(frame)).astype(np.float64)
    whole = np.maximum(groups @ people, 1)[:, None]

    def simulated(every: Values) -> Values:
        counts = random.binomial(people.astype(np.int64)[:, None], np.clip(np.nan_to_num(every), 0, 1))
        return np.asarray((groups @ counts / whole).reshape(len(every), -1))

    # The default prior of a public number is scaled to the number itself.
    before = None
    if prior is not None and not is_public:
        before = simulated(np.stack(list(_expected(analysis, outcome, some, _single_chain(prior, 1)))))
    names = {place * came.shape[1]: name for place, (name, _) in enumerate(named)}
    return Predictive(before, simulated(drawn), (groups @ came / whole).ravel(), tuple(against), names)


def impossible(private: Private, table: Table, law: Values, sites: Mapping[str, Values]) -> Iterator[Finding]:
    """Yield a finding if a private column's reports differ from a fitted law (cells, answers) in any cell.

    sites: the means of the unknown weights of its channel.
    """
    people, came = _in_cells(private, table, np.arange(len(table.frame)))
    chances, columns = (law @ _chances_of(private, sites)).reshape(came.shape), _levels(table.frame, people)
    yield from _misfits(f"reports of {private.name}", NOT_THE_NOISE, people, came, chances, columns)


def _misfits(
    subject: str, why: str, people: Values, came: Values, chances: Values, columns: Mapping[str, Codes]
) -> Iterator[Finding]:
    """Yield a finding if a column's reports by kind, (rows, kinds), are not as frequent as expected."""
    found: list[tuple[float, str]] = []
    for kind, expected in zip(came.T, chances.T, strict=True):
        bands = {EXPECTED: levels_or_bands(pd.Series(expected), people, MOST_LEVELS)}
        found += p_values(people, kind, expected, {**columns, **bands})
    # A column that is clear tells more than bands of what is expected.
    clear = [column for p, column in sorted(found) if len(found) * p < FALSE_ALARM]
    if clear:
        column = next(filter(None, clear), EXPECTED)
        where = f"do not go with {column} as the fit expects" if column else "are not as the fit expects"
        yield Finding(FIT, f"{subject} {where}: {why}")


def _levels(frame: pd.DataFrame, people: Values) -> dict[str, Codes]:
    """Return {column: levels or bands}, shaped as people: (rows,) or, part after part, (parts × rows,)."""
    weights = people.reshape(-1, len(frame)).sum(axis=0)
    found = {}
    for name in frame.columns:
        most = MOST_LEVELS if pd.api.types.is_numeric_dtype(frame[name]) else MOST_WORDS
        levels = levels_or_bands(frame[name].reset_index(drop=True), weights, most)
        found[str(name)] = np.tile(levels, len(people) // len(frame))
    return found


def _single_chain(sites: Sites, axes: int) -> dict[str, Values]:
    """Return some draws as one chain: {site: (1, draws, …)}."""
    return {name: values[None] for name, values in some_draws(sites, axes).items()}


def _kinds(private: Private) -> int:
    """Return how many kinds of reports are compared: of exclusive kinds, the last follows from the others."""
    return private.choices.shows.shape[1] - private.choices.exact


def _in_cells(private: Private, table: Table, some: Codes) -> tuple[Values, Values]:
    """Return people (parts × cells,) and their reports of each kind (parts × cells, kinds)."""
    where = np.full(len(table.frame), -1)
    where[some] = np.arange(len(some))
    used, channel = where[table.cell] >= 0, private.choices
    row = (channel.part[private.codes] * len(some) + where[table.cell])[used]
    counts, rows = table.counts[used].astype(np.float64), len(channel.exclusive) * len(some)
    shows = channel.shows[private.codes[used], : _kinds(private)]
    came = [np.bincount(row, counts * kind, rows) for kind in shows.T]
    return np.bincount(row, counts, rows).astype(np.float64), np.stack(came, axis=1)


def _chances_of(private: Private, sites: Mapping[str, Values]) -> Values:
    """Return P(kind of report | answer) at one draw, (parts, answers, kinds)."""
    channel = private.choices
    return np.asarray(channel.mixed(channel.chances, sites))[..., : _kinds(private)]


def _seen(codes: Codes, count: int) -> Private:
    """Return a column that is observed directly: of each answer one kind."""
    return Private("", tuple(map(str, range(count))), codes, Channel.of(np.eye(count)))


class _Outcome(NamedTuple):
    """The outcome's reports, and what decides them: its answers, or the parts of a number's range.

    parts: (prediction, cells) -> the law of the parts, as `Predicted.parts` takes it. longer, held: its cost
    and memory relative to a law of choices.
    """

    reports: Private
    parts: Callable[[Predicted, Codes], Callable[[Array, Mapping[str, Array]], Array]] | None = None
    longer: int = 1
    held: int = 1


def _outcome(analysis: Assembled, middles: Values) -> _Outcome:
    """Return the outcome. middles: (cells,) that are subtracted from a public number."""
    table, response, values, law = analysis.table, analysis.response, analysis.values, analysis.outcome.law
    if response is not None and response.number is None:
        return _Outcome(response)
    if response is not None and response.number is not None:
        channel = response.number
        numbers = channel.reports[response.codes]
        cuts = cuts_of(numbers, table.counts)
        parts = jax.jit(lambda eta, own: channel.shares(law.at(eta[..., 0], own), cuts))
        reports = _seen(np.searchsorted(cuts, numbers), len(cuts) + 1)
        return _Outcome(reports, lambda _predicted, _some: parts, LONGER[channel.noise], HELD)
    assert values is not None
    if analysis.outcome.answers:
        return _Outcome(_seen(values.astype(int), len(analysis.outcome.answers)))
    away = values - middles[table.cell]
    cuts = cuts_of(away, table.counts)
    return _Outcome(
        _seen(np.searchsorted(cuts, away), len(cuts) + 1),
        lambda predicted, some: partial(predicted.between, middles[some][:, None, None] + cuts),
    )


def _expected(
    analysis: Assembled, outcome: _Outcome, some: Codes, sites: Mapping[str, Values]
) -> Iterator[Values]:
    """Yield each draw's chances of the outcome's kinds, (parts × cells, kinds).

    sites: {site: (1, draws, …)}.
    """
    frame = analysis.table.frame.iloc[some].reset_index(drop=True)
    answers = max(len(analysis.outcome.answers), 1) * len(analysis.law.matrix.combinations) * outcome.held
    step = max(1, AT_ONCE // (len(frame) * answers))
    for start in range(0, SIMULATED, step):
        part = {name: values[:, start : start + step] for name, values in sites.items()}
        predicted = Predicted(analysis, part)
        shares, eta = predicted.laws(frame)
        parts = outcome.parts and predicted.parts(eta, outcome.parts(predicted, some))
        laws = np.einsum("dck,dcka->dca", shares, predicted.expected(eta) if parts is None else parts)
        for place, law in enumerate(laws):
            chances = _chances_of(outcome.reports, {name: one[0, place] for name, one in part.items()})
            yield (law @ chances).reshape(-1, chances.shape[2])


def _against_predictors(
    analysis: Assembled, sites: Mapping[str, Values], middles: Values
) -> Iterator[Finding]:
    """Yield findings if a private predictor's reports are not as the fit expects given everything else."""
    table, response, outcome = analysis.table, analysis.response, analysis.formula.outcome
    if not analysis.predictors:
        return
    if response is None:
        assert analysis.values is not None
        values: Any = analysis.values - middles[table.cell]
    else:
        codes, number = response.codes, response.number
        values = number.reports[codes] if number is not None else list(map(str, codes))
    people = table.counts.astype(np.float64)
    levels = _levels(table.frame.iloc[table.cell].assign(**{outcome: values}), people)
    for predictor in analysis.predictors:
        came = people[:, None] * predictor.choices.shows[predictor.codes, : _kinds(predictor)]
        chances = _chances(analysis, predictor, sites)[:, : came.shape[1]]
        why = f"it may use {outcome} as evidence on {predictor.name}, whose coefficient is then an artefact"
        yield from _misfits(f"reports of {predictor.name}", why, people, came, chances, levels)


def _chances(analysis: Assembled, private: Private, sites: Mapping[str, Values]) -> Values:
    """Return (patterns, kinds): each kind's probability, given everything but the predictor's own report.

    This is the probability of the pattern with that kind as its report, divided by its probability without a
    report.
    """
    channel, leaves = private.choices, f"leaves_{analysis.privates.index(private)}"
    parts = channel.part[private.codes]
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
