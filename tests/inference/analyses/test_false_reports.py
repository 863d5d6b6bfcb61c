"""What false reports leave possible of analyses: exact, for the reports that move a quantity most."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.crossing import cross_table
from inference.analyses.page import save_analysis
from inference.analyses.table import Table, known_channel, table_of
from inference.results.intervals import Interval
from ldp_client.documents.errors import InputError

# So many that chance is nothing beside a share of false reports.
MANY = 10**12
SHARE = 0.01
YES_NO = np.asarray([[0.75, 0.25], [0.25, 0.75]])
JOBS = np.asarray([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
SIZES = np.asarray([0.5, 0.3, 0.2])
TRUTH = np.asarray([0.2, 0.35, 0.6])


def by_region(n, false=None, share=SHARE):
    """Yes or no in three regions; false: (region, report) of a share of all reports, or none."""
    kinds = list(product(range(3), range(2)))
    law = np.asarray([SIZES[c] * (TRUTH[c] * YES_NO[1, z] + (1 - TRUTH[c]) * YES_NO[0, z]) for c, z in kinds])
    if false is not None:
        law *= 1 - share
        law[kinds.index(false)] += share
    frame = pd.DataFrame({"region": pd.Categorical([list("abc")[c] for c, _ in kinds])})
    private = known_channel("ever", ["no", "yes"], [z for _, z in kinds], YES_NO)
    return Table(frame, {"ever": private}, np.rint(law * n).astype(np.int64))


def logit(p):
    return float(np.log(p / (1 - p)))


EXPECTED = {
    "Intercept": logit(0.2),
    "region[b]": logit(0.35) - logit(0.2),
    "region[c]": logit(0.6) - logit(0.2),
    "share ever = yes, region = a": 0.2,
    "share ever = yes, region = c": 0.6,
    "odds ratio region[c]": np.exp(logit(0.6) - logit(0.2)),
}


# Of which quantities a report of this region that says yes (1), or no, is the worst.
WORST = {(0, 1): ["Intercept", "share ever = yes, region = a"], (2, 0): ["share ever = yes, region = c"]}


@pytest.fixture(scope="module")
def analysed():
    """{false kind: posterior of very many reports}."""
    return {
        kind: analyse_table(by_region(MANY, kind), "ever ~ region", method="laplace", false_reports=SHARE)
        for kind in WORST
    }


@pytest.mark.slow
def test_the_truth_lies_inside_and_the_worst_reports_leave_it_at_the_end(analysed):
    for kind, found in analysed.items():
        assert found.identified.open == ""
        for name, truth in EXPECTED.items():
            low, high = found.identified.sets[name]
            slack = 0.01 * (high - low)
            assert low - slack <= truth <= high + slack, name
            gap = min(abs(low - truth), abs(high - truth)) / (high - low)
            assert name not in WORST[kind] or gap < 0.02, name


def test_the_set_is_said_where_the_analysis_is_read(tmp_path, analysed):
    found = analysed[0, 1]
    save_analysis(found, tmp_path)
    said = json.loads((tmp_path / "posterior.json").read_text())["questions"]["ever"]["false_reports"]
    assert set(EXPECTED) <= set(said["sets"])
    page = (tmp_path / "report.html").read_text()
    assert "; if at most 1 % of the reports were false, " in page
    assert "if 1 % were false" in page


def test_beside_an_interval_that_is_not_of_90_per_cent_a_set_says_that_it_is(tmp_path, analysed):
    found, said = analysed[0, 1], "; if at most 1 % of the reports were false, "
    for prob in (0.9, 0.99):
        save_analysis(found, tmp_path / str(prob), interval=Interval(prob))
        page = (tmp_path / str(prob) / "report.md").read_text()
        sets = [line.partition(said)[2] for line in page.splitlines() if said in line]
        assert sets
        assert {("(90 %)" in one) for one in sets} == {prob != 0.9}


def test_no_difference_of_shares_is_beyond_what_is_possible():
    """Of twenty people, of whom the young say no and the old yes."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 20).astype(float)
    answers = (rng.random(20) < 1 / (1 + np.exp(-(age - 50) / 6))).astype(int)
    reports = (rng.random(20) < YES_NO[answers, 1]).astype(int)
    few = table_of(pd.DataFrame({"age": age}), [known_channel("ever", ["no", "yes"], reports, YES_NO)])
    sets = analyse_table(few, "ever ~ age", method="laplace", false_reports=0.01).identified.sets
    ((low, high),) = (sets[name] for name in sets if name.startswith("share ") and " − " in name)
    assert low < high == 1


def test_groups_smaller_than_the_share_have_no_bound():
    found = analyse_table(by_region(20_000), "ever ~ region", method="laplace", false_reports=0.25)
    assert "share ever = yes, region = c" not in found.identified.sets
    assert "no larger than that share" in found.identified.open
    with pytest.raises(InputError, match="share of false reports"):
        analyse_table(by_region(100), "ever ~ region", false_reports=2)


def test_a_crossed_tables_shares_lie_inside():
    truth = np.asarray([[0.3, 0.2, 0.1], [0.05, 0.15, 0.2]])
    kinds = list(product(range(2), range(3)))
    honest = np.asarray([YES_NO[:, y] @ truth @ JOBS[:, j] for y, j in kinds])
    for place in (0, 4):
        law = (1 - SHARE) * honest
        law[place] += SHARE
        columns = {
            "ever": known_channel("ever", ["no", "yes"], [y for y, _ in kinds], YES_NO),
            "job": known_channel("job", list("abc"), [j for _, j in kinds], JOBS),
        }
        table = Table(pd.DataFrame(index=range(6)), columns, np.rint(law * 10**10).astype(np.int64))
        found = cross_table(table, ["ever", "job"], method="laplace")
        sets = np.asarray([found.identified.sets[name] for name in found.draws])
        assert (sets[:, 0] <= truth.ravel() + 1e-3).all()
        assert (sets[:, 1] >= truth.ravel() - 1e-3).all()
        assert np.abs(sets[place] - truth.ravel()[place]).min() < 2e-3
