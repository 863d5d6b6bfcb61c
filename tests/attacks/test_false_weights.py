"""Carry weighted averages by a few reports of large weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.cli import quantity_lines
from inference.analyses.false_reports import WEIGHTED
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
    public = pd.DataFrame({"region": pd.Categorical(places), "w": weights})
    private = known_channel("ever", ("no", "yes"), said, YES_NO)
    return Table(public, {"ever": private}, np.rint(counts).astype(np.int64)), sum(HONEST.values()) / 2


@pytest.mark.slow
def test_weighted_averages_have_no_set_that_leaves_out_the_honest_share(capsys):
    table, honest = attacked()
    over = Population(weights="w", by="region")
    found = analyse_table(table, "ever ~ region", method="laplace", draws=200, population=over)
    weighted = [one for one in found.quantities if "weighted" in one.name]
    draws = {one.name: one.draws for one in weighted}
    assert np.quantile(draws["share ever = yes, weighted"], 0.05) > honest + 0.1
    for name in draws:
        assert name not in found.identified.sets
    assert found.identified.open == WEIGHTED
    low, high = found.identified.sets["share ever = yes"]
    assert low < honest < high
    print(*quantity_lines(found), sep="\n")
    for text in (capsys.readouterr().out, found.identified.on_page()):
        assert WEIGHTED in text
