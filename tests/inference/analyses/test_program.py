"""Formulas as models: their columns, what cannot be fitted, names of results, and plans of the same model."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import notes_of
from inference.analyses.matrices import again, matrix_of, variables
from inference.analyses.program import assemble
from inference.analyses.study_formula import table_of_waves
from inference.design.formulas import plan_formula
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.inference.analyses.simulated import any_draws, forced, table
from tests.kit.errors import raises
from tests.kit.reporting import reports_of

REFUSED = {
    "ever ~": "formula.not_two_sides",
    "evr ~ age": ("table.unknown_column", "'evr'", "ever?"),
    "ever ~ agee": ("table.unknown_column", "'agee'", "age?"),
    "ever ~ ever": "formula.outcome_on_both_sides",
    "ever ~ age^2": ("formula.bare_power", "I(age**2)"),
    "ever ~ age + I(age * 2)": ("formula.collinear_columns", "age, I(age * 2)"),
    "ever ~ region + C(region)": ("formula.collinear_columns", "C(region)"),
    "ever ~ I(age * 0)": ("formula.constant_column", "I(age * 0)"),
    "ever ~ 1 | clinic": ("formula.varying_not_readable", "(1 | clinic)"),
    "ever ~ age - (1 | clinic)": ("formula.varying_not_readable", "(1 | clinic)"),
    "ever ~ (1 | job)": ("formula.private_group", "job"),
    "ever ~ (1 | clinic": ("formula.varying_not_readable", "(1 | clinic"),
    "ever ~ log(age - 1000)": ("formula.term_not_evaluated", "log(age - 1000)"),
    "ever ~ age.__class__": "formula.double_underscore",
    "ever ~ os.system('true')": ("table.unknown_column", "'os'"),
    "ever ~ region + 0*age:": ("formula.terms_not_readable", "region + 0*age:"),
    "ever ~ 0": "formula.empty_right_side",
}


@pytest.mark.parametrize(
    ("formula", "family", "code"),
    [
        *((text, None, code) for text, code in REFUSED.items()),
        ("ever ~ age", "softmax", "fit.family_not_for_choice"),
        ("income ~ age", "logistic", "fit.family_not_for_number"),
        ("income ~ age", "poisson", "fit.outcome_unfit_for_family"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unfittable_formula_is_rejected_in_one_line(formula, family, code):
    with raises(InputError, code) as error:
        assemble(table(), formula, family=family)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("formula", "columns"),
    [("sex + same", "sex[m], same[v]"), ("dose + ward", "dose"), ("ward * sex_of_ward", "sex_of_ward[m]")],
)
def test_collinear_columns_are_rejected_in_small_tables(formula, columns):
    sex, ward = np.where(np.arange(12) % 2, "m", "f"), np.repeat(["a", "b", "c"], 4)
    same = {"same": np.where(sex == "m", "v", "u"), "sex_of_ward": np.where(ward == "a", "f", sex)}
    whole = forced({"sex": sex, "ward": ward, "dose": np.repeat([1.0, 2.0, 3.0], 4), **same})
    with raises(InputError, "formula.collinear_columns", columns):
        assemble(whole, f"armed ~ {formula}")


@pytest.mark.parametrize(
    ("formula", "family"),
    [("mood ~ 0 + (1 | clinic)", "ordered"), ("mood ~ 1", "ordered"), ("ever ~ 0 + (1 | clinic)", None)],
)
def test_laws_without_columns_have_quantities(formula, family):
    """No fit is lost after the sampler has run."""
    analysis = assemble(table(), formula, family=family)
    parameters = analysis.parameters(any_draws(analysis, 30))
    assert parameters
    assert {np.shape(draws) for draws in parameters.values()} == {(1, 30)}


def regions(*seen):
    return pd.Categorical([seen[at % len(seen)] for at in range(30)], categories=["north", "south", "west"])


@pytest.mark.attack(18)
@pytest.mark.parametrize("seen", [("north", "south"), ("north", "south", "west")])
def test_group_without_reports_is_noted(seen):
    """A small table has no report of a listed region, whose numbers come from the groups' law alone."""
    notes = notes_of(assemble(forced({"region": regions(*seen)}), "armed ~ (1 | region)"))
    wanted = "no report has region west: these estimates come from"
    assert any(wanted in note for note in notes) == ("west" not in seen)


@pytest.mark.parametrize("formula", ["region", "region * sex"])
def test_empty_reference_level_is_rejected_with_remedy(formula):
    columns = {"region": regions("south", "west"), "sex": np.arange(30) % 2, "age": np.arange(30.0) % 10}
    with raises(InputError, "formula.collinear_columns", "reference level"):
        assemble(forced(columns), f"armed ~ {formula}")
    cured = assemble(forced(columns), 'armed ~ C(region, contr.treatment("south"))')
    assert any("no report has" in note and "north" in note for note in notes_of(cured))
    assert assemble(forced(columns), "armed ~ 0 + region").law.empty == ("region[north]",)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    ("formula", "name"),
    [
        ("ever ~ smokes + age + smokes_age", "smokes_age"),
        ("income ~ ever + sigma", "sigma"),
        ("ever ~ Intercept", "Intercept"),
    ],
)
def test_two_results_of_one_name_are_rejected(formula, name):
    """A column or label has the name that the analysis would give to another result."""
    whole = table()
    named = whole.public.assign(**{name: np.random.default_rng(3).normal(size=whole.n)})
    with raises(InputError, "result.duplicate_name", name):
        assemble(replace(whole, public=named), formula)


def test_names_of_choices_groups_and_thresholds_match_bambi():
    found = assemble(table(), "mood ~ job + (age | clinic)")
    axes = found.axes()
    assert axes["threshold[low]"].coordinates == {"threshold_dim": "low"}
    assert axes["1|clinic[2]"].coordinates == {"clinic__factor_dim": "2"}
    assert axes["job[teacher]"].coordinates == {"job_dim": "teacher"}
    assert {"1|clinic_sigma", "age|clinic_sigma"} <= set(found.priors())


SCALE = {**studies.CHOICE, "id": "tired", "choices": ["never", "seldom", "often"], "ordered": True}
KINDS = {
    "yes or no": studies.YES_NO,
    "choice or neither": {**studies.CHOICE, "refusal": True},
    "scale": SCALE,
    "scale in blocks": {**SCALE, "mechanism": {"name": "hadamard", "epsilon": "2"}},
    "scale or neither": {**SCALE, "refusal": True},
    "number": studies.NUMBER,
}
PUBLIC = [{"id": "region", "choices": ["north", "south"]}, {"id": "k", "bounds": ["18", "20"], "step": "1"}]


@pytest.mark.attack(17)
@pytest.mark.parametrize("kind", KINDS)
def test_planned_model_matches_fitted_model(kind):
    """A scale was planned as a softmax and fitted as an ordered logit, so the plan was for another model."""
    study = Study(studies.document(KINDS[kind], public=PUBLIC))
    (question,) = study.questions
    values = question.choices or tuple(range(1, 6))
    people = [
        {question.id: values[at % len(values)], "region": ("north", "south")[at % 2], "k": 18 + at % 3}
        for at in range(60)
    ]
    text = f"{question.id} ~ region + k"
    analysis = assemble(table_of_waves({"": (study, reports_of(study, people))}, text), text)
    truth = {"Intercept": 5.0, "sigma": 2.0} if question.ask == "number" else {}
    planned = list(plan_formula(study, text, None, [100], truth).parameters)
    assert planned == list(analysis.parameters(any_draws(analysis)))
    # A refusal has no place in the order.
    assert ("threshold[never]" in planned) == (kind in ("scale", "scale in blocks"))
    if kind == "scale":
        assert planned == ["region[south]", "k", "threshold[never]", "threshold[seldom]"]


# Most people are 70; of patterns, which stand once each, the mean is 40.
PATTERNS = pd.DataFrame({"age": [20.0, 30.0, 70.0], "region": pd.Categorical(["n", "s", "n"])})
SIZES = np.array([1, 1, 998])
ROWS = pd.DataFrame(
    {
        "age": [20.0, 30.0, 70.0, 50.0],
        "sex": ["f", "m", "f", "m"],
        "region": ["north", "north", "south", "south"],
        "x-1": [1.0, 0.0, 3.0, 2.0],
        "one": ["north"] * 4,
    }
)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    "term", ["I(age - age.mean())", "I(age.rank())", "np.cumsum(age)", "region + I(age - age.max())"]
)
def test_term_that_depends_on_other_rows_is_rejected(term):
    """Rows are patterns of reports, so age.mean() would be the mean of patterns, and differ in a census."""
    with raises(InputError, "formula.term_depends_on_rows"):
        variables(term, list(PATTERNS))


@pytest.mark.parametrize("term", ["center(age)", "poly(age, 2)", "np.log(age)", "I(age**2) + C(region)"])
def test_term_of_single_row_is_same_in_any_census(term):
    assert "age" in variables(term, list(PATTERNS))
    matrix = matrix_of(term, PATTERNS, (), SIZES)
    for row in range(len(PATTERNS)):
        np.testing.assert_allclose(again(matrix, PATTERNS[row : row + 1])[0], matrix.values[row], atol=1e-9)


def test_transform_uses_statistics_of_reports_not_of_cells():
    found = assemble(table(), "ever ~ scale(cov.size)")
    sizes = table().public["cov.size"].to_numpy(float)
    wanted = (np.unique(sizes) - sizes.mean()) / sizes.std(ddof=1)
    assert np.allclose(found.law.matrix.values[:, 0, 1], wanted, atol=1e-12)


@pytest.mark.attack(19)
@pytest.mark.parametrize("side", ["one + age", "age * one", "{one}", "region + region:one"])
def test_term_that_vanishes_is_rejected(side):
    """A column with one level has no effect: the formula would be fitted without it, and not say so."""
    with raises(InputError, "formula.one_level_factor", "one"):
        matrix_of(side, ROWS, (), np.ones(4, np.int64))


@pytest.mark.parametrize(
    ("side", "names"),
    [
        ("sex * age - age:sex", ["Intercept", "age", "sex[m]"]),
        ("x-1", ["Intercept", "x-1"]),
        ("0 + one", ["one[north]"]),
        ("one:age", ["Intercept", "one:age[north]"]),
    ],
)
def test_terms_have_names_of_columns_and_levels(side, names):
    assert sorted(matrix_of(side, ROWS, (), np.ones(4, np.int64)).names) == names


def test_level_names_are_kept():
    """The "T." that formulaic adds for contrasts is removed, but not a level's own first letters."""
    frame = pd.DataFrame({"region": ["N.Korea", "Korea", "T.x"], "place": ["a]b", "a]c", "d"]})
    assert matrix_of("region", frame, (), SIZES).levels == ("", "N.Korea", "T.x")
    assert matrix_of("region * place", frame, (), SIZES).levels[3:6] == ("a]c", "d", "N.Korea, a]c")
