"""What an analyst does with a posterior: prints it, reads it, plots it, hands it to ArviZ, calculates."""

import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray
from PIL import Image
from scipy import stats

from inference.models.family import MODELS
from inference.predictive import Predictive
from inference.results.figures import BAR, density_figure, interval_figure, to_png, to_svg
from inference.results.fit import Fit
from inference.results.intervals import USUAL
from inference.results.quantity import Quantity
from inference.results.verdict import NOT_USABLE, USABLE
from ldp_client.documents.errors import InputError
from tests import studies
from tests.inference.golden import numbers
from tests.inference.posteriors import NOTHING, SHAPE, made
from tests.kit.errors import raises

mpl.use("Agg")


def test_summary_is_data_frame_with_chosen_interval(tmp_path):
    skewed = {"rate": stats.gamma.ppf((np.arange(4000) + 0.5) / 4000, 2).reshape(SHAPE)}
    found = made("hours", names=(), others=skewed)
    table = found.summary()
    assert isinstance(table, pd.DataFrame)
    assert table.loc["rate", "q05"] == pytest.approx(stats.gamma.ppf(0.05, 2), rel=0.01)
    assert found.summary(0.95).loc["rate", "q975"] == pytest.approx(stats.gamma.ppf(0.975, 2), rel=0.01)
    assert set(table["verdict"]) == {USABLE}
    bad = made(findings=NOTHING).summary()
    assert bad.attrs["word"] == NOT_USABLE
    assert set(bad["verdict"]) == {"not usable: the noise drowns the signal"}
    bad.to_parquet(tmp_path / "table.parquet")
    assert list(found.rows()["rate"])[:2] == ["mean", "sd"]


@pytest.mark.parametrize("level", [95, 0, "0.9"])
def test_invalid_interval_is_rejected(level):
    for job in (made().summary, made().plot, made()["p[blue/green]"].interval):
        with raises(InputError, "result.wrong_level"):
            job(level)


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
    found.save(tmp_path)
    (entry,) = json.loads((tmp_path / "posterior.json").read_text())["questions"].values()
    assert entry["verdict"]["word"] == USABLE
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


def test_derived_quantity_inherits_doubts():
    sound, silent = made(), made("other", findings=NOTHING)
    gap = sound["p[blue/green]"] - silent["p[blue/green]"]
    assert "other: not usable: the noise drowns the signal" in repr(gap)
    assert "not usable" not in repr(sound["p[blue/green]"])


LAWS = {**numbers.LAWS, "beta": lambda own: stats.beta(own["a"], own["b"], loc=2, scale=10)}


@pytest.mark.parametrize("law", LAWS)
def test_share_above_value_matches_the_law(law):
    question = studies.question_of(studies.NUMBER, bounds=["2", "12"], model={"name": law})
    family = MODELS[law]
    sites = {name: np.random.default_rng(1).uniform(0.2, 0.8, (2, 5)) for name in family.law.parameters}
    found = made(names=(), others=family.own(sites, family.units(question)))
    found = replace(found, implied=family.implied(question, sites))
    right = LAWS[law](found.draws)
    np.testing.assert_allclose(found.share_above(4).draws, right.sf(4), rtol=1e-9)
    np.testing.assert_allclose(found.mean().draws, right.mean(), rtol=1e-9)
    assert repr(found.share_above(4.5)).startswith("share above 4.5: ")
    for wrong in (1.9, 12, float("nan"), "4"):
        with raises(InputError, "result.value_beyond_bounds", "12"):
            found.share_above(wrong)


def test_fit_is_a_table_with_sentences_to_quote():
    fit = Fit({"colour": made(names=("p[red]", "p[blue]")), "size": made(findings=NOTHING)})
    table = fit.table(0.95)
    assert list(table["question"]) == ["colour", "colour", "size", "size"]
    assert list(table["quantity"][:2]) == ["red", "blue"]
    low, high = np.quantile(fit["colour"].draws["p[red]"], [0.025, 0.975])
    assert (table["low"][0], table["high"][0]) == (low, high)
    assert table["median"][2:].isna().all()
    first, second = fit.sentences()
    assert first.startswith("colour: red 3")
    assert "90 % interval" in first
    assert second.startswith("colour: blue")
    assert "red" in repr(fit)
    assert "<table" in fit._repr_html_()


def quantity_of(study, seed=0):
    """A fit's draws of a share; equal seeds give correlated draws."""
    draws = np.random.default_rng(seed).normal(0.4, 0.03, (4, 1000))
    return Quantity("p", f"p of {study}", draws, fits=(draws,), studies=frozenset({study}))


@pytest.mark.attack(18)
def test_note_about_same_people_survives_longer_calculations():
    """Hide in a longer calculation that the same people answered both fits."""
    first, second, other = quantity_of("same"), quantity_of("same", seed=1), quantity_of("another", seed=2)
    for found in ((first - other) - second, first - (other - second), (first / other) / second):
        assert "the same people answered both" in repr(found)
    assert "the same people" not in repr((first - other) - quantity_of("a third", seed=3))


def test_contrast_is_printed_with_its_direction():
    draws = np.asarray([[-0.1, 0.2, 0.3, 0.4]])
    quantity = Quantity("share q = yes, wave: b − a", "difference of the share", draws, contrast=True)
    assert quantity.to_document()["probability_of_direction"] == 0.75
    assert quantity.sentence().endswith("above 0 with probability 0.75.")
    below = Quantity("share q = yes, wave: b − a", "difference of the share", -draws, contrast=True)
    assert below.to_document()["direction"] == "below 0"
    assert "probability" not in Quantity("share q = yes", "share", draws).sentence()


@pytest.mark.attack(18)
def test_difference_cannot_be_combined_with_its_own_part():
    """Combine a difference with its own part, whose draws no longer pair."""
    one, two = quantity_of("last year's"), quantity_of("this year's")
    for again in (lambda: (one - two) - one, lambda: two / (one - two), lambda: (one - two) - (two - one)):
        with raises(InputError, "result.draws_do_not_pair"):
            again()


def test_interval_is_drawn_at_its_numbers_with_name_as_text():
    posterior = made()
    drawn = interval_figure(posterior)
    tree = ElementTree.fromstring(to_svg(drawn))
    assert "<b>red</b>" in [text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert not [element.tag for element in tree.iter() if element.tag.endswith("}b")]
    # Both have one scale, so that lengths and distances go together.
    (axes,) = drawn.axes
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == BAR]
    for (low, high), draws in zip(bars, posterior.draws.values(), strict=True):
        assert (low, high) == pytest.approx(USUAL.of(draws))
    picture = Image.open(io.BytesIO(to_png(drawn)))
    assert picture.size[0] == 720
    assert (27, 94, 158) in {colour[:3] for _, colour in picture.getcolors(1 << 24)}


def test_slopes_of_a_formula_are_drawn_with_zero():
    formula = replace(made(names=("age", "sex")), spreads={"age": 20.0, "sex": 1.0}, formula="a ~ age + sex")
    (axes,) = interval_figure(formula).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age (per sd)", "sex"]
    low, high = axes.get_xlim()
    assert low < 0 < 20 * formula.draws["age"].mean() < high


@pytest.mark.parametrize("name", ["a $x_1$ dollar", "\x07 bell", "\u202e turned"])
def test_unusual_names_can_be_drawn(name):
    odd = replace(made(names=(), others={name: np.random.default_rng(1).normal(size=SHAPE)}), model="normal")
    svg = to_svg(interval_figure(odd))
    assert ElementTree.fromstring(svg) is not None
    assert "\u202e" not in svg
    assert "\x07" not in svg
    assert to_png(density_figure(odd)).startswith(b"\x89PNG")
