"""What an analyst does with a posterior: prints it, reads it, plots it, hands it to ArviZ, calculates."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray
from scipy import stats

from inference import Posterior
from inference.analyses.result import AnalysisPosterior
from inference.models import model_for
from inference.models.family import MODELS
from inference.models.nonparametric_law import NonparametricLaw
from inference.results.diagnostics import Mixing, diagnose
from inference.results.identified import Bounds, IdentifiedSets
from inference.results.intervals import interval_of
from inference.results.page import render_page
from inference.results.predictive import Predictive
from inference.results.saving import save_posteriors
from inference.results.verdict import BAD, Part
from inference.units import Units
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.kit.errors import raises

mpl.use("Agg")
SHAPE = (4, 1000)


def made(
    question="colour",
    names=("p[<b>red</b>]", "p[blue/green]"),
    seed=0,
    informativeness=None,
    study_digest="digest",
    **more,
):
    random = np.random.default_rng(seed)
    first = random.beta(30, 70, SHAPE)
    draws = dict(zip(names, (first, 1 - first), strict=False)) | more.pop("others", {})
    one = dict.fromkeys(draws, 1.0)
    mixing = Mixing(one, dict.fromkeys(draws, 4000.0), dict.fromkeys(draws, 4000.0))
    found = diagnose(draws, np.zeros(SHAPE, bool), found=mixing, informativeness=informativeness or Part())
    prior = {name: random.uniform(size=1000) for name in draws}
    return Posterior(
        question, "multinomial", 100, draws, one, found, study_digest, 1, prior_draws=prior, **more
    )


NOTHING = Part(BAD, ("the noise drowns the signal",))


def test_posterior_prints_short_table_with_verdict():
    found = made(identified=IdentifiedSets(0.01, {"p[<b>red</b>]": Bounds.of(0.19, 0.41)}))
    lines = repr(found).splitlines()
    assert lines[0] == "colour (multinomial, 100 reports): ok: no check speaks against these numbers"
    assert lines[1].split() == ["parameter", "median", "90", "%", "interval", "if", "1", "%", "were", "false"]
    low, middle, high = 100 * stats.beta.ppf([0.05, 0.5, 0.95], 30, 70)
    numbers = [float(word) for word in lines[2].replace("to", "").split() if word[0].isdigit()]
    assert numbers == pytest.approx([middle, low, high, 19, 41], abs=0.6)
    assert lines[2].count("%") == 3
    silent = repr(made(informativeness=NOTHING))
    assert "NOT OK: nothing was learnt: this is the prior" in silent
    assert "the noise drowns the signal" in silent
    many = made(others={f"p[{i}]": np.zeros(SHAPE) for i in range(40)})
    assert "… and 22 more: summary() has all" in repr(many)
    assert len(repr(many).splitlines()) == 23


def test_only_shares_of_people_are_shown_in_per_cent():
    """A geometric law has a p, and a column of a formula may have any name."""
    draws = {"p": np.full(SHAPE, 0.25)}
    assert "25.0 %" in repr(replace(made(names=(), others=draws), model="bernoulli"))
    assert "25.0" not in repr(replace(made(names=(), others=draws), model="geometric"))
    of_formula = {one.name: getattr(made(names=(), others=draws), one.name) for one in fields(Posterior)}
    asked = AnalysisPosterior(**{**of_formula, "model": "bernoulli", "spreads": {"p": 1.0}})
    assert "25.0" not in repr(asked)
    assert not asked["p"].is_share


def test_notebook_shows_escaped_table_with_verdict():
    page = made(informativeness=NOTHING)._repr_html_()
    assert "p[&lt;b&gt;red&lt;/b&gt;]" in page
    assert "<b>" not in page
    assert "NOT OK: nothing was learnt" in page


@pytest.mark.parametrize("part", [Part(), NOTHING, Part("partial", ("of some nothing",))])
def test_page_shows_no_green_if_nothing_was_learnt(part):
    """Good chains and a fitting model do not mean that anything was learnt."""
    study = Study(studies.document({**studies.ONE_OF, "choices": ["a", "b"]}))
    page = render_page(
        study, {"colour": made(names=("p[a]", "p[b]"), informativeness=part, study_digest=study.digest)}
    )
    assert page.count('<strong class="ok">good') == (0 if part.reasons else 3)
    assert ("Do not use these numbers as they stand" in page) == bool(part.reasons)


def test_summary_is_data_frame_with_chosen_interval(tmp_path):
    skewed = {"rate": stats.gamma.ppf((np.arange(4000) + 0.5) / 4000, 2).reshape(SHAPE)}
    found = made("hours", names=(), others=skewed)
    table = found.summary()
    assert isinstance(table, pd.DataFrame)
    assert table.loc["rate", "q05"] == pytest.approx(stats.gamma.ppf(0.05, 2), rel=0.01)
    assert found.summary(0.95).loc["rate", "q975"] == pytest.approx(stats.gamma.ppf(0.975, 2), rel=0.01)
    low, high = found.summary(level=0.8, kind="hdi").loc["rate", ["hdi80_low", "hdi80_high"]]
    assert stats.gamma.cdf(high, 2) - stats.gamma.cdf(low, 2) == pytest.approx(0.8, abs=0.01)
    # Of highest density: as dense at one end as at the other.
    assert stats.gamma.pdf(low, 2) == pytest.approx(stats.gamma.pdf(high, 2), rel=0.1)
    assert set(table["verdict"]) == {"no check speaks against these numbers"}
    bad = made(informativeness=NOTHING).summary()
    assert not bad.attrs["ok"]
    assert set(bad["verdict"]) == {"nothing was learnt: this is the prior"}
    bad.to_parquet(tmp_path / "table.parquet")
    assert list(found.rows()["rate"])[:2] == ["mean", "sd"]


@pytest.mark.parametrize(
    ("level", "columns"),
    [(0.9, ("q05", "q95")), (0.95, ("q025", "q975")), (0.5, ("q25", "q75")), (0.99, ("q005", "q995"))],
)
def test_interval_columns_are_named_by_quantiles(level, columns):
    assert interval_of(level).columns == columns


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"level": 95}, ("result.level_in_percent", "0.95", "95 %")),
        ({"level": 0}, "result.level_out_of_range"),
        ({"level": True}, "result.level_not_between_0_and_1"),
        ({"level": "0.9"}, "result.level_not_between_0_and_1"),
        ({"kind": "HPD"}, ("result.unknown_interval_kind", "hdi")),
    ],
)
def test_invalid_interval_is_rejected(asked, said):
    for job in (made().summary, made().plot, made()["p[blue/green]"].interval):
        with raises(InputError, said):
            job(**asked)


def test_plot_returns_matplotlib_axes_in_per_cent():
    axes = made(informativeness=NOTHING).plot(0.95)
    assert isinstance(axes, mpl.axes.Axes)
    figure = axes.figure
    assert len(figure.axes) == 2
    assert "nothing was learnt" in figure.get_supxlabel()
    assert figure.axes[-1].xaxis.get_major_formatter()(0.25) == "25 %"
    mpl.pyplot.close(figure)


def test_arviz_tree_has_all_groups_by_choice(tmp_path):
    simulated = np.random.default_rng(1).random((60, 3))
    diverging = np.zeros(SHAPE, bool)
    found = made(predictive=Predictive(simulated, simulated / 2, simulated[0]), diverging=diverging)
    tree = found.to_arviz()
    assert set(tree.children) == {
        "posterior", "prior", "sample_stats", "prior_predictive", "posterior_predictive", "observed_data",
    }  # fmt: skip
    assert tree["posterior"]["p"].dims == ("chain", "draw", "choice")
    for name, draws in found.draws.items():
        label = name.removeprefix("p[").removesuffix("]")
        np.testing.assert_array_equal(tree["posterior"]["p"].sel(choice=label), draws)
        np.testing.assert_array_equal(tree["prior"]["p"].sel(choice=label)[0], found.prior_draws[name])
    np.testing.assert_array_equal(tree["posterior_predictive"]["reports"][0], simulated / 2)
    np.testing.assert_array_equal(tree["observed_data"]["reports"], simulated[0])
    assert tree["sample_stats"]["diverging"].shape == SHAPE
    save_posteriors({"colour": found}, tmp_path)
    assert json.loads((tmp_path / "posterior.json").read_text())["questions"]["colour"]["ok"]
    with xarray.open_datatree(tmp_path / "colour.nc", engine="h5netcdf") as saved:
        assert saved.equals(tree)
        assert saved.attrs == tree.attrs
        assert saved["sample_stats"]["diverging"].dtype == bool
    # A scalar and parts that share a name keep both.
    both = made(names=(), others={"sd": np.ones(SHAPE), "sd[age]": np.zeros(SHAPE)}).to_arviz()["posterior"]
    assert set(both.data_vars) == {"sd", "sd_each"}


def test_quantities_of_one_fit_are_calculated_draw_by_draw():
    found = made()
    red, other = found["p[<b>red</b>]"], found["p[blue/green]"]
    np.testing.assert_allclose((other - red).draws, 1 - 2 * red.draws)
    np.testing.assert_allclose((other / red).draws, 1 / red.draws - 1)
    # As one is the rest of the other, the difference varies twice as much, not √2 times.
    assert (other - red).sd == pytest.approx(2 * red.sd)
    assert (other - red).above(0) == np.mean(red.draws < 0.5)
    assert "points" in repr(other - red)
    assert "%" not in repr(other / red).replace("90 % interval", "")
    assert other.interval(0.5) == pytest.approx(np.quantile(other.draws, [0.25, 0.75]))
    rate = found.quantity("share twice", "twice", 2 * red.draws)
    assert (rate / red).median == 2


def test_derived_quantity_inherits_not_ok():
    sound, silent = made(), made("other", informativeness=NOTHING)
    gap = sound["p[blue/green]"] - silent["p[blue/green]"]
    assert "NOT OK: other: nothing was learnt: this is the prior" in repr(gap)
    assert "NOT OK" not in repr(sound["p[blue/green]"])


def test_unknown_parameter_and_wrong_operand_are_rejected():
    found = made()
    with raises(InputError, "result.unknown_parameter", "did you mean p[blue/green]?"):
        found["p[blue/gren]"]
    with raises(InputError, "result.no_law_of_answers", "share_above"):
        found.share_above(3)
    with pytest.raises(TypeError, match='such as posterior\\["p"\\]'):
        _ = found["p[blue/green]"] - 0.5


LAWS = {
    "normal": lambda own: stats.norm(own["mean"], own["sd"]),
    "exponential": lambda own: stats.expon(scale=1 / own["rate"]),
    "lognormal": lambda own: stats.lognorm(own["log_sd"], scale=np.exp(own["log_mean"])),
    "gamma": lambda own: stats.gamma(own["shape"], scale=own["mean"] / own["shape"]),
    "weibull": lambda own: stats.weibull_min(own["shape"], scale=own["scale"]),
    "beta": lambda own: stats.beta(own["a"], own["b"], loc=2, scale=10),
    "poisson": lambda own: stats.poisson(own["rate"]),
    "geometric": lambda own: stats.geom(own["p"], loc=-1),
}


def asked_for(law):
    question = {**studies.NUMBER, "id": "hours", "bounds": ["2", "12"], "model": {"name": law}}
    return Study(studies.document(question)).questions[0]


@pytest.mark.parametrize("law", LAWS)
def test_share_above_value_matches_the_law(law):
    question, family = asked_for(law), MODELS[law]
    sites = {name: np.random.default_rng(1).uniform(0.2, 0.8, (2, 5)) for name in family.measures}
    found = made(names=(), others=family.own(sites, family.units(question)))
    found = replace(found, implied=family.implied(question, sites))
    right = LAWS[law](found.draws)
    np.testing.assert_allclose(found.share_above(4).draws, right.sf(4), rtol=1e-9)
    np.testing.assert_allclose(found.mean().draws, right.mean(), rtol=1e-9)
    assert repr(found.share_above(4.5)).startswith("share above 4.5: ")
    for wrong in (1.9, 12, float("nan"), "4"):
        with raises(InputError, "result.value_beyond_bounds", "12"):
            found.share_above(wrong)


def test_share_above_value_without_law_matches_shares():
    law, units = NonparametricLaw(1.0), Units(2.0, 10.0)
    sites = {"shares": np.random.default_rng(2).dirichlet(np.ones(law.cells + 2), (2, 5))}
    own, implied = law.own(sites, units, 10**6), law.implied(sites, units, 10**6)
    for place in (3, 4.5, 7, 9.5, 11):
        np.testing.assert_allclose(implied.above(place), own[f"above[{place:g}]"])
    np.testing.assert_allclose(implied.mean(), own["mean"])


@pytest.mark.parametrize("law", [*LAWS, "nonparametric"])
def test_every_number_model_has_implied_quantities(law):
    question = asked_for(law)
    mechanism = mechanism_for(question)
    payloads = np.asarray(
        perturb_many(mechanism, [3.0, 5.0], NotForRealAnswers(np.random.default_rng(1).bytes))
    )
    part = QuestionSummary.of(mechanism, payloads)
    assert model_for(question, part).implied is not None
