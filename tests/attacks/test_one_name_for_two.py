"""Has two results of an analysis go by one name, so that one is told as the other.

Defence: The analyst's fit, and `ldpkit plan`: refuse it before anything is fitted, and name the column or
the labels; a stated prior is of one parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.crossing import cross_table
from inference.analyses.naming import united
from inference.analyses.table import Private, Table, known_channel, table_of
from inference.design.formula_plan import plan_formula
from inference.design.possible_reports import Possible
from inference.results.netcdf import netcdf_of
from inference.results.tree import layout_of, tree_of
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

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


def _refused(table: Table, formula: str, said: str, family: str | None = None) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        assemble(table, formula, family=family)


@pytest.mark.parametrize("levels", [[], ["a", "b"]], ids=["numbers", "levels"])
def test_a_column_called_as_an_effect_on_a_predictor_is(levels):
    """partner_age is public; so is what an effect of age on partner would be called."""
    table = _people({"age": [], "partner_age": levels}, ever=YES_NO, partner=YES_NO)
    said = "rename column partner_age, or write I(partner_age), of levels C(partner_age): "
    _refused(table, "ever ~ partner + age + partner_age", said)
    assemble(table, "ever ~ partner + age")
    call = "C" if levels else "I"
    names = list(assemble(table, f"ever ~ partner + age + {call}(partner_age)").axes())
    assert "partner_age[yes]" in names
    assert f"partner_{call}(partner_age)[{'b, ' if levels else ''}yes]" in names


def test_a_stated_prior_is_not_of_two_parameters():
    table = _people({"age": [], "partner_age": []}, ever=YES_NO, partner=YES_NO)
    tight = {"partner_age": {"distribution": "normal", "loc": 0, "scale": 0.01}}
    with pytest.raises(InputError, match="rename column partner_age"):
        assemble(table, "ever ~ partner + age + partner_age", tight)


def test_a_plan_refuses_it_too():
    table = _people({"age": [], "partner_age": []}, ever=YES_NO, partner=YES_NO)
    with pytest.raises(InputError, match="rename column partner_age"):
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
def test_a_column_called_as_a_parameter_of_the_outcomes_law_is(column, family, of):
    table = _people({column: [], "count": [1, 2, 3]}, ever=YES_NO, job=("a", "b", "c"))
    _refused(table, f"{of} ~ ever + {column}", f"rename column {column}", family)


@pytest.mark.parametrize("column", ["chain", "draw", "reports", "Intercept", "region_dim"])
def test_a_column_called_as_something_that_every_result_has(column):
    table = _people({column: [], "region": ["a", "b"]}, ever=YES_NO)
    _refused(table, f"ever ~ region + {column}", f"rename column {column}, or write I({column})")
    assemble(table, f"ever ~ region + I({column})")


def test_other_names_are_free():
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


def test_effects_of_groups():
    table = _people({"clinic": ["a", "b"], "clinic_sigma": ["a", "b"], "age": []}, ever=YES_NO)
    _refused(table, "ever ~ (1 | clinic) + (1 | clinic_sigma)", "rename column clinic_sigma: ")
    _refused(table, "ever ~ (1 | clinic) + (age | clinic)", "leave one out, as in (0 + age | clinic)")
    assemble(table, "ever ~ (1 | clinic) + (0 + age | clinic)")


def test_columns_called_as_levels_or_as_each_other():
    table = _people({"partner[yes]": [], "a/b": [], "a∕b": []}, ever=YES_NO, partner=YES_NO)
    _refused(table, "ever ~ partner + `partner[yes]`", "rename column partner[yes]: ")
    _refused(table, "ever ~ `a/b` + `a∕b`", "would have one place in the posterior's file")


def test_labels_with_commas_are_not_run_together():
    """Level "a" with answer "b, c", and level "a, b" with answer "c"."""
    levels = ("0", "a", "a, b")
    table = _people({"region": levels}, p=levels, job=("x", "b, c", "c"), ever=YES_NO)
    said = "'a' with 'b, c' would be called what 'a, b' with 'c' is: rename one of these labels"
    for formula in ("job ~ region", "job ~ (1 | region)", "ever ~ p + job"):
        _refused(table, formula, said)
    # Of level "a" with answer "b", or of level "a, b" with all answers.
    flat = {"region[a, b]": "flat"}
    with raises(InputError, "prior.ambiguous_name", "region[a, b]"):
        assemble(_people({"region": levels}, job=("x", "b", "c")), "job ~ region", flat)


def test_shares_that_designs_leave_open():
    """The share c of ever_b, and b_c of ever; and one that the sampler would take for its own."""
    slopes = np.ones((2, 2))
    random = np.random.default_rng(5)

    def open_share(name: str, share: str) -> Private:
        one = _asked(name, YES_NO, random)
        return Private(name, YES_NO, one.codes, one.vectors, {f"{name}_{share}": slopes})

    age = pd.DataFrame({"age": random.normal(size=ROWS)})
    table = table_of(age, [open_share("ever", "b_c"), open_share("ever_b", "c")])
    _refused(table, "ever ~ ever_b + age", "rename column ever_b")
    _refused(table_of(age, [open_share("law", "middle")]), "law ~ age", "rename column law: ")


def test_quantities_are_told_apart_before_the_fit():
    """The share of "a, region = n", and that of "a" in the north."""
    table = _people({"region": ["n", "s"]}, job=("a", "a, region = n", "b"))
    with raises(InputError, "result.duplicate_name", "share job = a, region = n"):
        analyse_table(table, "job ~ region")


def test_crossed_labels_with_commas_are_refused_before_the_fit():
    table = _people({"age": []}, q=("yes", "yes, daily"), w=("daily, at home", "at home"))
    said = "'yes' with 'daily, at home' would be called what 'yes, daily' with 'at home' is"
    with pytest.raises(InputError, match=said):
        cross_table(table, ["q", "w"])


def test_no_name_is_overwritten():
    """Whatever else may slip in."""
    with raises(InputError, "formula.duplicate_parameter"):
        united({"a": 1, "b": 2}, {"b": 3})


def test_crossed_quantities_are_told_apart_before_the_fit():
    """b among those of a = "x" and of a = "x among a = x", and more of such a kind."""
    table = _people({"age": []}, a=("x", "y among a = x"), b=("0", "1", "1 among a = y"))
    with raises(InputError, "result.duplicate_name", "share b = 1 among a = y among a = x"):
        cross_table(table, ["a", "b"])
