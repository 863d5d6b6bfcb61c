"""Figures of posteriors, and rank histograms that tell agreeing chains from others."""

import io
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from inference.results.figures import (
    BAR,
    DOT,
    MOST_SHOWN,
    RANK_BINS,
    RAW,
    density_figure,
    interval_figure,
    rank_band,
    rank_counts,
    to_png,
    to_svg,
    worst_mixing,
)
from inference.results.intervals import USUAL
from tests.inference.posteriors import SHAPE, made


def chains(random, shift=0.0, spread=1.0):
    """Four chains, of which the last is elsewhere."""
    draws = random.normal(size=(4, 500))
    draws[3] = shift + spread * draws[3]
    return draws


def outside(draws):
    counts, (low, high) = rank_counts(draws), rank_band(500)
    assert counts.sum(axis=1).tolist() == [500] * 4
    assert counts.sum(axis=0).tolist() == [2000 // RANK_BINS] * RANK_BINS
    return ((counts < low) | (counts > high)).sum(axis=1)


def test_rank_bars_leave_band_only_if_chains_disagree():
    """Of 80 bars 0.8 are outside by chance; six or more in one run of agreeing chains: less than 1e-3."""
    random = np.random.default_rng(1)
    assert outside(chains(random)).sum() < 6
    assert outside(chains(random, shift=1.0))[3] > 5
    assert outside(chains(random, spread=0.3))[3] > 5


def test_worst_mixing_come_first_without_known_parameters():
    """Eight parameters; the larger the number, the worse the last chain. One is known."""
    random = np.random.default_rng(3)
    draws = {f"x{i}": chains(random, shift=0.2 * i) for i in range(8)}
    shown = worst_mixing(made(names=(), others={**draws, "known": np.ones((4, 500))}, measured=True))
    assert len(shown) == MOST_SHOWN
    assert shown[:3] == ["x7", "x6", "x5"]


SVG = "{http://www.w3.org/2000/svg}"


def test_interval_is_drawn_at_its_numbers_with_name_as_text():
    posterior = made()
    drawn = interval_figure(posterior, {"p[blue/green]": 0.6})
    tree = ElementTree.fromstring(to_svg(drawn))
    assert "<b>red</b>" in [text.text for text in tree.iter(f"{SVG}text")]
    assert not [element.tag for element in tree.iter() if element.tag.endswith("}b")]
    # Both have one scale, so that lengths and distances go together.
    (axes,) = drawn.axes
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == BAR]
    for (low, high), draws in zip(bars, posterior.draws.values(), strict=True):
        assert (low, high) == pytest.approx(USUAL.of(draws))
    dots = [line for line in axes.lines if line.get_markersize() == DOT and line.get_color() == RAW]
    assert [line.get_xdata()[0] for line in dots] == [0.6]
    picture = Image.open(io.BytesIO(to_png(drawn)))
    assert picture.size[0] == 720
    assert (27, 94, 158) in {colour[:3] for _, colour in picture.getcolors(1 << 24)}


def test_slopes_of_a_formula_are_drawn_for_one_sd_beside_zero():
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
