"""Plans of formulas: widths match theory and fits, and mistakes are rejected."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from inference.analyses.analysing import model_of
from inference.analyses.design_file import read_design
from inference.analyses.program import assemble
from inference.design.formulas import plan_formula
from inference.design.information import HALF
from inference.design.simulated_posteriors import posterior_draws
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.inference.analyses.simulated import design, forced, rolled
from tests.kit.errors import raises

PUBLIC = [{"id": "region", "choices": ["north", "south"]}, {"id": "age", "bounds": ["18", "99"], "step": "1"}]
STUDY = Study(studies.document(studies.YES_NO, studies.NUMBER, studies.RECORD, public=PUBLIC))
DICE = read_design(design(armed={"design": "forced", "yes": "1/6", "no": "1/6"}))


def test_width_of_log_odds_matches_theory():
    """A share π has sd √(m (1 − m) / n) / (p − q) / (π (1 − π)), m = q + (p − q) π."""
    mechanism = mechanism_for(STUDY.question("ever"))
    p, q = float(mechanism.p), float(mechanism.q)
    m, n = q + (p - q) * 0.2, 50_000
    sd = np.sqrt(m * (1 - m) / n) / (p - q) / (0.2 * 0.8)
    truth = {"ever": 0.2, "region[south]": 1e-9}
    planned = plan_formula(STUDY, "ever ~ region", None, [2 * n], truth)
    assert planned.half_widths["1"]["Intercept"] == pytest.approx([HALF * sd], rel=1e-3)
    assert planned.half_widths["1"]["region[south]"] == pytest.approx([HALF * sd * np.sqrt(2)], rel=1e-3)
    # Nothing is found of no effect but by chance: half of the 10 %.
    assert planned.power("1", "region[south]") == pytest.approx([0.05], rel=1e-3)
    assert planned.odds == ("region[south]",)
    assert f"no 80 %, yes {100 * 0.2:g} %" in planned.notes[0]
    assert plan_formula(STUDY, "ever ~ 1", None, [n], {"ever[yes]": 0.2}).parameters == ("Intercept",)


def test_census_counts_equal_repeated_rows():
    """A row with `count` 3 equals three rows; an older survey's column of the outcome is ignored."""
    rows = pd.DataFrame({"sex": list("fmmm"), "armed": [1, 0, 1, 1]})
    census = pd.DataFrame({"sex": list("fmx"), "count": [1, 3, 0]})
    each, counted = (plan_formula(DICE, "armed ~ sex", known, [100]) for known in (rows, census))
    assert each.half_widths[""]["sex[m]"] == pytest.approx(counted.half_widths[""]["sex[m]"])


@pytest.mark.slow
def test_widths_of_a_formula_match_fits():
    known = pd.DataFrame({"age": [20.0, 40, 60] * 4, "married": [0, 1] * 6, "region": list("abbbba") * 2})
    truth = {"armed": 0.3, "married": 0.8, "age": 0.02}
    formula, people = "armed ~ age + married + region", known.loc[np.arange(6000) % 12]
    planned = plan_formula(DICE, formula, known, [len(people)], truth)
    linear = 0.02 * people["age"] + 0.8 * people["married"]
    middle = brentq(lambda middle: expit(linear + middle).mean() - 0.3, -9, 9)
    models = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        answers = random.random(len(people)) < expit(linear + middle)
        models.append(model_of(assemble(forced(people, rolled(random, answers)), formula)))
    draws = posterior_draws(models, 1, 200)
    for name, (half,) in planned.half_widths[""].items():
        ends = np.quantile(draws[name], [0.05, 0.95], axis=1)
        assert half == pytest.approx(np.median(ends[1] - ends[0]) / 2, rel=0.1), name


@pytest.mark.parametrize(
    ("formula", "truth", "code"),
    [
        ("ever ~ age", {"evr": 0.2}, "plan.unknown_truth"),
        ("ever ~ age", {"ever": 1.2}, "plan.wrong_shares"),
        ("ever ~ age", {"Intercept": 1.0}, "plan.intercept_follows"),
        ("ever ~ 0 + age", {}, "plan.intercept_follows"),
        ("hours ~ age", {"Intercept": 5.0}, ("plan.truth_missing", "sigma")),
        ("hours ~ age", {"Intercept": 5.0, "sigma": -1.0}, "plan.formula_truth_not_positive"),
        ("ever ~ hours", {}, ("plan.formula_not_plannable", "leave out hours")),
        ("region ~ age", {}, "plan.formula_not_plannable"),
        ("ever ~ (1 | region)", {}, "plan.formula_not_plannable"),
        ("ever ~ age + I(2 * age)", {}, "formula.collinear_columns"),
        ("wage ~ age", {}, "plan.outcome_not_plannable"),
    ],
)
def test_formula_or_truth_that_cannot_be_planned_is_rejected(formula, truth, code):
    with raises(InputError, code):
        plan_formula(STUDY, formula, None, [1000], truth)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"region": ["east"]}, ("plan.unknown_public_value", "region has 'east'")),
        ({"region": ["north"], "count": [0]}, "plan.table_without_people"),
        ({"region": [None]}, "table.blank_cells"),
        ({"place": ["north"]}, "table.unknown_column"),
    ],
)
def test_wrong_table_of_people_is_rejected(columns, code):
    with raises(InputError, code):
        plan_formula(STUDY, "ever ~ region", pd.DataFrame(columns), [1000])
