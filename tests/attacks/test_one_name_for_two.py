"""Has two results of an analysis go by one name, so that one is told as the other.

Defence: The analyst's fit, and `ldpkit plan`: reject it and name the result, parameters before anything is
fitted; a stated prior is of one parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.crossing import cross_table
from inference.analyses.parameter_names import united
from inference.analyses.table import Private, Table, table_of
from inference.design.formula_plan import plan_formula
from inference.design.possible_reports import Possible
from inference.results.netcdf import netcdf_of
from inference.results.tree import layout_of, tree_of
from ldp_client.documents.errors import InputError
from tests.kit.channels import known_channel
from tests.kit.errors import Code, raises

YES_NO = ("no", "yes")
ROWS = 120


def _people(public: Mapping[str, Sequence[object]], **private: Sequence[str]) -> Table:
    """Public columns of these values, numbers where there are none, and private ones of these answers."""
    random = np.random.default_rng(3)
    frame = {
        name: random.choice(values, ROWS) if values else random.normal(size=ROWS)
        for name, values in public.items()
    }
    return table_of(pd.DataFrame(frame), [_asked(name, answers, random) for name, answers in private.items()])


def _asked(name: str, answers: Sequence[str], random: np.random.Generator) -> Private:
    matrix = np.full((len(answers), len(answers)), 0.1 / (len(answers) - 1))
    np.fill_diagonal(matrix, 0.9)
    return known_channel(name, answers, random.integers(0, len(answers), ROWS), matrix)


def _refused(table: Table, formula: str, code: Code, family: str | None = None) -> None:
    with raises(InputError, code):
        assemble(table, formula, family=family)


@pytest.mark.parametrize("levels", [[], ["a", "b"]], ids=["numbers", "levels"])
def test_column_named_like_effect_on_predictor_is_rejected(levels):
    """The public column partner_age has the name that the effect of age on partner would get."""
    table = _people({"age": [], "partner_age": levels}, ever=YES_NO, partner=YES_NO)
    code = ("result.duplicate_name", "called partner_age")
    _refused(table, "ever ~ partner + age + partner_age", code)
    assemble(table, "ever ~ partner + age")
    call = "C" if levels else "I"
    names = list(assemble(table, f"ever ~ partner + age + {call}(partner_age)").axes())
    assert "partner_age[yes]" in names
    assert f"partner_{call}(partner_age)[{'b, ' if levels else ''}yes]" in names


def test_stated_prior_that_matches_two_parameters_is_rejected():
    table = _people({"age": [], "partner_age": []}, ever=YES_NO, partner=YES_NO)
    tight = {"partner_age": {"distribution": "normal", "loc": 0, "scale": 0.01}}
    with raises(InputError, "result.duplicate_name", "called partner_age"):
        assemble(table, "ever ~ partner + age + partner_age", tight)


def test_plan_rejects_column_named_like_effect():
    table = _people({"age": [], "partner_age": []}, ever=YES_NO, partner=YES_NO)
    with raises(InputError, "result.duplicate_name", "called partner_age"):
        plan_formula(Possible(table, 1), "ever ~ partner + age + partner_age")


@pytest.mark.parametrize(
    ("column", "family", "of"),
    [
        ("sigma", None, "count"),
        ("nu", "student_t", "count"),
        ("alpha", "negative_binomial", "count"),
        ("threshold", "ordered", "job"),
    ],
)
def test_column_named_like_outcome_parameter_is_rejected(column, family, of):
    table = _people({column: [], "count": [1, 2, 3]}, ever=YES_NO, job=("a", "b", "c"))
    _refused(table, f"{of} ~ ever + {column}", ("result.duplicate_name", f"called {column}"), family)


@pytest.mark.parametrize("column", ["chain", "draw", "reports", "Intercept", "region_dim"])
def test_column_with_reserved_result_name_is_rejected(column):
    table = _people({column: [], "region": ["a", "b"]}, ever=YES_NO)
    of_analysis = column == "Intercept"
    code = "formula.column_named_intercept" if of_analysis else "result.duplicate_name"
    _refused(table, f"ever ~ region + {column}", (code, column))
    assemble(table, f"ever ~ region + I({column})")


def test_unreserved_column_names_are_accepted():
    table = _people({name: [] for name in ("sd", "lp", "group", "diverging")}, ever=YES_NO)
    analysis = assemble(table, "ever ~ sd + lp + group + diverging")
    sites = {name: np.zeros((1, 2, *np.shape(value))) for name, value in analysis.initial().items()}
    checks = {
        "posterior_predictive": {"reports": np.zeros((1, 2, 3))},
        "sample_stats": {"diverging": np.zeros((1, 2), bool)},
    }
    layout = layout_of({"posterior": analysis.parameters(sites)}, analysis.axes(), checks)
    assert {"sd", "lp", "group", "diverging"} < set(tree_of({}, layout).posterior)
    assert netcdf_of({}, layout)


def test_group_effects_with_equal_names_are_rejected():
    table = _people({"clinic": ["a", "b"], "clinic_sigma": ["a", "b"], "age": []}, ever=YES_NO)
    for formula in ("ever ~ (1 | clinic) + (1 | clinic_sigma)", "ever ~ (1 | clinic) + (age | clinic)"):
        _refused(table, formula, ("result.duplicate_name", "1|clinic"))
    assemble(table, "ever ~ (1 | clinic) + (0 + age | clinic)")


def test_columns_named_like_levels_or_each_other_are_rejected():
    table = _people({"partner[yes]": [], "a/b": [], "a∕b": []}, ever=YES_NO, partner=YES_NO)
    _refused(table, "ever ~ partner + `partner[yes]`", ("result.duplicate_name", "called partner[yes]"))
    _refused(table, "ever ~ `a/b` + `a∕b`", ("result.duplicate_name", "a∕b"))


def test_labels_with_commas_that_collide_are_rejected():
    """Level "a" with answer "b, c" would get the same name as level "a, b" with answer "c"."""
    levels = ("0", "a", "a, b")
    table = _people({"region": levels}, p=levels, job=("x", "b, c", "c"), ever=YES_NO)
    for formula in ("job ~ region", "job ~ (1 | region)", "ever ~ p + job"):
        _refused(table, formula, ("result.duplicate_name", "a, b, c]"))
    # Of level "a" with answer "b", or of level "a, b" with all answers.
    flat = {"region[a, b]": "flat"}
    with raises(InputError, "prior.ambiguous_name", "region[a, b]"):
        assemble(_people({"region": levels}, job=("x", "b", "c")), "job ~ region", flat)


def test_open_design_shares_with_equal_names_are_rejected():
    """Share c of ever_b and share b_c of ever get one name; law_middle is a name of the sampler's own."""
    slopes = np.ones((2, 2))
    random = np.random.default_rng(5)

    def open_share(name: str, share: str) -> Private:
        one = _asked(name, YES_NO, random)
        return Private(name, YES_NO, one.codes, one.vectors, {f"{name}_{share}": slopes})

    age = pd.DataFrame({"age": random.normal(size=ROWS)})
    table = table_of(age, [open_share("ever", "b_c"), open_share("ever_b", "c")])
    _refused(table, "ever ~ ever_b + age", ("result.duplicate_name", "called ever_b_c"))
    code = ("result.duplicate_name", "called law_middle")
    _refused(table_of(age, [open_share("law", "middle")]), "law ~ age", code)


def test_equal_quantity_names_are_rejected():
    """The share of "a, region = n" would get the same name as the share of "a" in region n."""
    table = _people({"region": ["n", "s"]}, job=("a", "a, region = n", "b"))
    with raises(InputError, "result.duplicate_name", "share job = a, region = n"):
        analyse_table(table, "job ~ region", method="gaussian_approx", draws=100)


def test_crossed_labels_with_commas_are_rejected_before_fit():
    table = _people({"age": []}, q=("yes", "yes, daily"), w=("daily, at home", "at home"))
    with raises(InputError, "result.duplicate_name", "p[yes, daily, at home]"):
        cross_table(table, ["q", "w"])


def test_merging_results_rejects_duplicate_name():
    with raises(InputError, "result.duplicate_name"):
        united({"a": 1, "b": 2}, {"b": 3})


def test_equal_crossed_quantity_names_are_rejected():
    """A label such as "y among a = x" makes two shares of b get one name."""
    table = _people({"age": []}, a=("x", "y among a = x"), b=("0", "1", "1 among a = y"))
    with raises(InputError, "result.duplicate_name", "share b = 1 among a = y among a = x"):
        cross_table(table, ["a", "b"], method="gaussian_approx", draws=100)
