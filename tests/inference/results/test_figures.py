"""Figures of posteriors."""

import io
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from inference.results.figures import (
    BAR,
    density_figure,
    interval_figure,
    to_png,
    to_svg,
)
from inference.results.intervals import USUAL
from tests.inference.posteriors import SHAPE, made

SVG = "{http://www.w3.org/2000/svg}"


def test_interval_is_drawn_at_its_numbers_with_name_as_text():
    posterior = made()
    drawn = interval_figure(posterior)
    tree = ElementTree.fromstring(to_svg(drawn))
    assert "<b>red</b>" in [text.text for text in tree.iter(f"{SVG}text")]
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
