"""Two arms of one study, devices and paper: whether they say the same of the same people."""

from __future__ import annotations

import numpy as np
from scipy import stats

from inference.analyses.cells import distinct_rows
from inference.analyses.design_based import as_draws, estimate, scores_of
from inference.analyses.few_reports import Lacking, People, bounds_of, lacking
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.result import Quantity
from inference.analyses.table import Codes, Private, Table, Values
from inference.models.base import Draws as Sites
from ldp_client.documents.errors import InputError

ARM, DEVICE, PAPER = "arm", "device", "paper"
# Arms that agree are called apart so often at most.
FALSE_ALARM = 1e-3
Found = tuple[list[Quantity], tuple[str, ...], tuple[str, ...]]


def arms_apart(analysis: Assembled, table: Table, sites: Sites) -> Found:
    """What each arm says alone, how far the two differ beyond what the fit expects, and what to say of it.

    The fit takes the arms together: what it expects of each differs as their public columns do. Returns
    quantities, reasons not to believe the fit, and notes; nothing where there are no arms, or `arm` is in it.
    """
    response = analysis.response
    needed = [str(name) for name in analysis.cells.frame.columns]
    if response is None or not has_arms(table) or ARM in needed:
        return [], (), ()
    cell, frame = distinct_rows(table.public[needed])
    predicted = Predicted(analysis, sites, len(frame))
    averages = []
    for arm in (DEVICE, PAPER):
        inside = (table.public[ARM] == arm).to_numpy()
        sizes = np.bincount(cell, table.counts * inside, len(frame)).astype(np.float64)
        averages.append(predicted.average(frame, sizes).mean(axis=(0, 1)))
    return arms_of(table, response, averages[1] - averages[0])


def has_arms(table: Table) -> bool:
    """Whether devices and paper are in it; a survey's own column may be called so too."""
    return ARM in table.public.columns and set(table.public[ARM].unique()) == {DEVICE, PAPER}


def arms_of(table: Table, column: Private, expected: Values | None = None) -> Found:
    """The same for one private column. expected: the difference of shares that public columns explain."""
    try:
        scores = scores_of(column)
        inside = [(table.public[ARM] == arm).to_numpy() for arm in (DEVICE, PAPER)]
        parts = [_part(column, scores[rows], table.counts[rows]) for rows in inside]
    except InputError as error:
        return [], (), (f"devices and paper were not held against each other: {error}",)
    moved = parts[1][0] - parts[0][0] - (0 if expected is None else expected)
    lacks = [one.beside(other) for one, other in zip(parts[0][2], parts[1][2], strict=True)]
    covariance = parts[0][1] + parts[1][1]
    covariance += np.diag([one.extra for one in lacks])
    rest = "" if expected is None else ", beyond what public columns explain"
    found = []
    for place in [1] if len(column.answers) == 2 else range(len(column.answers)):
        what = f"{column.name} = {column.answers[place]}"
        for arm, (shares, own, few) in zip((DEVICE, PAPER), parts, strict=True):
            name, words = f"share {what}, {ARM} = {arm} alone", f"share of {what} as {arm} alone says it"
            draws = as_draws(shares[place], own[place, place] + few[place].extra, few[place].degrees)
            found.append(Quantity(name, words + few[place].words, draws))
        beyond = f"difference of the share of {what}, paper − devices{rest}{lacks[place].words}"
        draws = as_draws(moved[place], covariance[place, place], lacks[place].degrees)
        found.append(Quantity(f"share {what}, {ARM}: {PAPER} − {DEVICE}", beyond, draws, contrast=True))
    # Shares add up to 1: one of them says nothing beside the others.
    statistic = float(moved[1:] @ np.linalg.pinv(covariance[1:, 1:]) @ moved[1:])
    if stats.chi2.sf(statistic, len(moved) - 1) >= FALSE_ALARM:
        return found, (), ()
    reason = (
        f"devices and paper disagree on {column.name}{rest}: do not take them together; name {ARM} in the "
        "formula, or find out who was asked on paper and what they did"
    )
    return found, (reason,), ()


def _part(column: Private, scores: Values, counts: Codes) -> tuple[Values, Values, list[Lacking]]:
    """An arm's shares, their covariance, and what each variance lacks."""
    shares, own = estimate(scores, np.ones(len(counts)), counts)
    people = People(counts, np.ones(len(counts)))
    pairs = enumerate(bounds_of(column))
    return shares, own, [lacking(own[at, at], scores[:, at], people, bounds) for at, bounds in pairs]
