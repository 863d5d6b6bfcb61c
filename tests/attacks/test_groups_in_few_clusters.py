"""Ask for a group, or a wave, that lies in three of forty clusters: the other 37 tell nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from inference.analyses.design_based import design_based, freedom
from inference.analyses.few_reports import SAID_OF_ONE
from inference.analyses.samples import Sampled, sampled_of
from inference.analyses.table import Table, known_channel, table_of
from inference.analyses.weights import ReplicateWeights
from inference.results.quantity import Quantity
from tests.statistics import FALSE_ALARM

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
PEOPLE, SD, MANY = 300, 0.5, 37


def asked(few: int, more: int = 0) -> Table:
    """A row for each cluster and report; of the first `few` clusters the west."""
    cluster = np.repeat(np.arange(few + MANY + more), 2)
    public = pd.DataFrame({"region": np.where(cluster < few, "west", "north"), "village": cluster})
    told = np.tile([0, 1], few + MANY + more)
    return table_of(public, [known_channel("armed", ("no", "yes"), told, FORCED)])


def surveys(table: Table, runs: int, seed: int) -> Iterator[Table]:
    """Drawn anew, clusters too, whose logits have the same law in the west as elsewhere."""
    random = np.random.default_rng(seed)
    for _ in range(runs):
        share = 1 / (1 + np.exp(-random.normal(0, SD, len(table.counts) // 2)))
        yes = random.binomial(PEOPLE, 1 / 6 + share * 4 / 6)
        yield replace(table, counts=np.column_stack([PEOPLE - yes, yes]).ravel())


def drawn(table: Table) -> Sampled:
    return sampled_of(table, np.ones(len(table.counts)), None, "village", False)


def estimates(table: Table, kind: str) -> list[Quantity]:
    if kind == "wave":
        return design_based(replace(table, waves="region"), "armed", drawn(replace(table, waves="region")))
    return design_based(table, "armed", drawn(table), "region")


@pytest.mark.parametrize(("few", "kind"), [(3, "group"), (3, "wave")])
def test_intervals_of_a_group_in_few_clusters_hold_the_truth(few: int, kind: str) -> None:
    """In 90 of 100 surveys; with the degrees of freedom of all clusters, in 70 to 80."""
    inside: dict[str, int] = {}
    runs = 250
    for table in surveys(asked(few), runs, seed=few):
        for one in estimates(table, kind):
            low, high = np.quantile(one.draws, [0.05, 0.95])
            inside[one.name] = inside.get(one.name, 0) + (low <= (0 if one.contrast else 0.5) <= high)
    assert len(inside) == (3 if kind == "wave" else 4)
    for name, held in inside.items():
        assert stats.binom.cdf(held, runs, 0.9) > FALSE_ALARM, name


def test_a_group_in_one_cluster_is_said_not_to_be_known() -> None:
    (table,) = surveys(asked(1), 1, seed=1)
    found = {one.name: one for one in estimates(table, "group")}
    for what in ("region = west", "region: west − north"):
        one = found[f"design-based share armed = yes, {what}"]
        assert SAID_OF_ONE.format("village") in one.words
        low, high = np.quantile(one.draws, [0.05, 0.95])
        assert high - low > 2
    assert "one village" not in found["design-based share armed = yes, region = north"].words


def test_degrees_are_of_the_units_that_hold_a_group_and_of_their_strata() -> None:
    table = asked(3)
    west = (table.public["region"] == "west").to_numpy(np.float64)
    assert freedom(table.counts, drawn(table)) == 39
    assert freedom(table.counts, drawn(table), west) == 2
    table.public["half"] = table.public["village"] % 2
    strata = sampled_of(table, np.ones(len(west)), "half", "village", False)
    assert freedom(table.counts, strata) == 38
    assert freedom(table.counts, strata, west) == 1


def test_replicates_that_leave_out_others_tell_nothing_of_a_group() -> None:
    """A jackknife of forty clusters, of which three are of the west."""
    table = asked(3)
    village = table.public["village"].to_numpy()
    for one in range(40):
        table.public[f"w{one + 1}"] = np.where(village == one, 0.0, 40 / 39)
    table.public["w"] = 1.0
    table = replace(table, counts=np.full(len(village), 20))
    whole = ReplicateWeights("w", "jk1", 39 / 40 / 40)
    replicates = whole.of(replace(table, counts=np.ones(len(village), np.int64)), "w")
    assert replicates.degrees == 39
    assert replicates.inside((village < 3).astype(np.float64)).degrees == 2
    assert replicates.inside((village < 1).astype(np.float64)).degrees == 0
