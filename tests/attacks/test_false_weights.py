"""Carry a weighted average by a few reports that state the largest weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.cli import print_quantities
from inference.analyses.false_reports import MODEL_FREE, OTHERS, WEIGHTED
from inference.analyses.population import Population
from inference.analyses.table import Table, known_channel
from tests.inference.analyses.simulated import YES_NO

N, HONEST, HEAVY = 20_000, {"north": 0.6, "south": 0.1}, 1000.0


def attacked() -> tuple[Table, float]:
    """One report of a hundred says north, yes and the largest weight, others 1; and the honest share."""
    rows = [("north", 1, HEAVY, N / 100)]
    for place, share in HONEST.items():
        yes = share * YES_NO[1][1] + (1 - share) * YES_NO[0][1]
        rows += [(place, said, 1.0, 0.495 * N * (yes if said else 1 - yes)) for said in (0, 1)]
    places, said, weights, counts = zip(*rows, strict=True)
    public = pd.DataFrame({"region": pd.Categorical(places), "w": weights, "p": 1 / np.asarray(weights)})
    private = known_channel("ever", ("no", "yes"), said, YES_NO)
    return Table(public, {"ever": private}, np.rint(counts).astype(np.int64)), sum(HONEST.values()) / 2


@pytest.mark.slow
def test_weighted_averages_have_no_set_that_leaves_out_the_honest_share(capsys):
    table, honest = attacked()
    over = Population(weights="w", by="region")
    found = analyse_table(table, "ever ~ region", method="laplace", draws=200, population=over)
    weighted = [one for one in found.quantities if "weighted" in one.name or "design-based" in one.name]
    draws = {one.name: one.draws for one in weighted}
    assert np.quantile(draws["share ever = yes, weighted"], 0.05) > honest + 0.1
    for name in draws:
        assert name not in found.identified.sets
    assert found.identified.open == WEIGHTED
    low, high = found.identified.sets["share ever = yes"]
    assert low < honest < high
    print_quantities(found)
    for text in (capsys.readouterr().out, found.identified.on_page()):
        assert WEIGHTED in text


def test_the_words_are_those_of_what_has_no_set():
    """Without weights, a design-based estimate has none for another reason."""
    table, _ = attacked()
    table.public["town"] = np.arange(len(table.counts))
    found = analyse_table(
        table, "ever ~ region", method="laplace", draws=200, population=Population(cluster="town")
    )
    assert found.identified.open == MODEL_FREE != OTHERS


@pytest.mark.parametrize("over", [Population(weights="w"), Population(inclusion="p")], ids=str)
def test_few_reports_that_carry_the_weight_are_noted(over):
    table, _ = attacked()
    (note,) = over.heavy(table)
    assert "the heaviest 1 % of them have 91 % of it" in note
    assert "worth those of 242 reports of equal weight" in note


def test_usual_weights_are_not_noted():
    """Equal ones, few reports, and those of a survey with a design effect of two."""
    random = np.random.default_rng(3)
    for weights in (np.ones(3), np.ones(500), random.lognormal(0, 0.83, 5000)):
        private = known_channel("ever", ("no", "yes"), np.zeros(len(weights), int), YES_NO)
        table = Table(pd.DataFrame({"w": weights}), {"ever": private}, np.ones(len(weights), np.int64))
        assert Population(weights="w").heavy(table) == ()
