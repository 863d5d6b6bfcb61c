"""Weigh a study that asks each device one of m questions: totals were those of one device in m."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from inference.analyses.design_based import design_based
from inference.analyses.joining import joined
from inference.analyses.population import Population
from inference.analyses.reports import table_of_reports
from inference.analyses.table import Others, Table, known_channel, table_of
from inference.analyses.weights import ReplicateWeights
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from schemas import Report, Study
from summaries import summarize
from tests import studies
from tests.statistics import FALSE_ALARM

FORCED = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])
PEOPLE, QUESTIONS, GROUPS = 600, 3, 30
SHARES, WEIGHTS = np.array([0.2, 0.5]), np.array([10.0, 30.0])
TRUTH = {"": PEOPLE / 2 * float(SHARES @ WEIGHTS), ", region = s": PEOPLE / 2 * SHARES[1] * WEIGHTS[1]}
WAYS = {
    "one by one": Population(weights="w"),
    "clusters": Population(weights="w", cluster="village"),
    "jackknife": Population(weights="w", replicates=ReplicateWeights("r", "jk1")),
}
REGION = [{"id": "region", "choices": ["n", "s"]}, {"id": "w", "bounds": ["1", "100"], "step": "1"}]


def surveys(runs: int) -> Iterator[Table]:
    """People drawn one by one, each of whom draws one of the questions."""
    random = np.random.default_rng(18)
    for _ in range(runs):
        region, village = random.integers(0, 2, PEOPLE), random.integers(0, GROUPS, PEOPLE)
        public = pd.DataFrame(
            {"region": np.where(region, "s", "n"), "w": WEIGHTS[region], "village": village}
        )
        for group in range(GROUPS):
            public[f"r{group + 1}"] = np.where(village == group, 0.0, public["w"] * GROUPS / (GROUPS - 1))
        told = (random.random(PEOPLE) < FORCED[(random.random(PEOPLE) < SHARES[region]) * 1, 1]).astype(int)
        mine = random.integers(0, QUESTIONS, PEOPLE) == 0
        table = table_of(public[mine], [known_channel("a", ("no", "yes"), told[mine], FORCED)])
        rest = public[~mine].reset_index(drop=True)
        yield replace(table, others=Others(rest, np.ones(len(rest), np.int64)))


def held(way: Population, runs: int, *, dropped: bool = False) -> dict[str, int]:
    """How often intervals of 90 % hold the totals; dropped: without those who answered another question."""
    inside = dict.fromkeys(TRUTH, 0)
    for table in surveys(runs):
        whole = replace(table, others=None) if dropped else table.everybody
        found = {one.name: one.draws for one in design_based(whole, "a", way.sampled(whole), "region")}
        for where, truth in TRUTH.items():
            low, high = np.quantile(found[f"design-based total a = yes{where}"], [0.05, 0.95])
            inside[where] += bool(low <= truth <= high)
    return inside


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_intervals_of_totals_hold_the_truth(way: str) -> None:
    runs = 30 if way == "jackknife" else 80
    for where, inside in held(WAYS[way], runs).items():
        assert stats.binom.cdf(inside, runs, 0.9) > FALSE_ALARM, where
        assert stats.binom.sf(inside - 1, runs, 0.9) > FALSE_ALARM, where
    for inside in held(WAYS[way], 10, dropped=True).values():
        assert inside <= 1


def made(count: int) -> tuple[Study, list[Report]]:
    asked = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "4"}}
    study = Study(studies.document(*({**asked, "id": name} for name in "abc"), ask_one=True, public=REGION))
    random = np.random.default_rng(4)
    source, mechanisms = NotForRealAnswers(random.bytes), mechanisms_of(study)
    rows = [
        {**{name: random.random() < 0.3 for name in "abc"}, "region": "ns"[one % 2], "w": (10, 30)[one % 2]}
        for one in range(count)
    ]
    return study, [perturb_answers(study, mechanisms, row, source) for row in rows]


def total(table: Table) -> float | None:
    whole, over = table.everybody, Population(weights="w")
    found = {one.name: float(one.draws.mean()) for one in design_based(whole, "a", over.sampled(whole))}
    return found.get("design-based total a = yes")


def test_totals_count_those_who_answered_another_question() -> None:
    """Of 900 people for 18,000 some 5,400 have it; a third of that was said."""
    study, reports = made(900)
    table = table_of_reports(study, reports, ["a", "region", "w"])
    assert total(table) == pytest.approx(5400, rel=0.2)
    assert any("times the weight of all" in note for note in Population(weights="w").notes(table))
    both = joined({"1": table, "2": table}, "wave")
    assert both.everybody.n == 1800
    assert total(both) == pytest.approx(2 * (total(table) or 0))


def test_a_summary_by_cell_counts_them_too() -> None:
    study, reports = made(300)
    names = ["a", "region"]
    given = (reports, summarize(study, reports))
    one, other = (table_of_reports(study, each, names).others for each in given)
    assert one is not None
    assert other is not None
    counts = [dict(zip(each.public["region"], each.counts.tolist(), strict=True)) for each in (one, other)]
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) == sum("a" not in report.payloads for report in reports)


def test_without_the_others_there_are_no_totals() -> None:
    study, reports = made(300)
    alone = [report for report in reports if "a" in report.payloads]
    table = table_of_reports(study, alone, ["a", "region", "w"])
    assert total(table) is None
    assert any("totals are left out" in note for note in Population(weights="w").notes(table))
    assert total(joined({"1": table_of_reports(study, reports, ["a", "w"]), "2": table}, "wave")) is None
