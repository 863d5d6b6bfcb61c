"""The picture of the chains, and rank histograms that tell agreeing chains from others."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from inference.results.chain_plots import BINS, MOST_SHOWN, ranks, worst_first
from inference.results.diagnostics import diagnose
from inference.results.figures import to_png, to_svg
from inference.results.intervals import USUAL
from inference.results.plots import BAR, density_plot, interval_plot
from inference.results.posterior import Posterior
from tests.inference.posteriors import SHAPE, made


def posterior_of(draws):
    prior = dict.fromkeys(draws, 5.0)
    found = diagnose(draws, np.zeros((4, 500), bool))
    return Posterior("q", "normal", 9, draws, prior, found, "", 0)


def chains(random, shift=0.0, spread=1.0):
    """Four chains, of which the last is elsewhere."""
    draws = random.normal(size=(4, 500))
    draws[3] = shift + spread * draws[3]
    return draws


@pytest.fixture(scope="module")
def mixed():
    """Eight parameters; the larger the number, the worse the last chain's place. One is known."""
    random = np.random.default_rng(3)
    draws = {f"x{i}": chains(random, shift=0.2 * i) for i in range(8)}
    return posterior_of({**draws, "known": np.ones((4, 500))})


def outside(draws):
    found = ranks(draws)
    assert found.counts.sum(axis=1).tolist() == [500] * 4
    assert found.counts.sum(axis=0).tolist() == [2000 // BINS] * BINS
    return ((found.counts < found.low) | (found.counts > found.high)).sum(axis=1)


def test_rank_bars_leave_band_only_if_chains_disagree():
    """Of 80 bars 0.8 are outside by chance; six or more in one run of agreeing chains: less than 1e-3."""
    random = np.random.default_rng(1)
    assert outside(chains(random)).sum() < 6
    assert outside(chains(random, shift=1.0))[3] > 5
    assert outside(chains(random, spread=0.3))[3] > 5


def test_worst_mixing_come_first_without_known_parameters(mixed):
    shown = worst_first(mixed)
    assert len(shown) == MOST_SHOWN
    assert shown[:3] == ["x7", "x6", "x5"]


SVG = "{http://www.w3.org/2000/svg}"


def lines_of(axes, width):
    """The numbers from which to which its lines of a width go."""
    return [line.get_xdata() for line in axes.lines if line.get_linewidth() == width]


def test_interval_is_drawn_at_its_numbers_with_name_as_text():
    posterior = made()
    drawn = interval_plot(posterior)
    tree = ElementTree.fromstring(to_svg(drawn))
    assert "p[<b>red</b>]" in [one.text for one in tree.iter(f"{SVG}text")]
    assert not [one.tag for one in tree.iter() if one.tag.endswith("}b")]
    # Both have one scale, so that lengths and distances go together.
    assert drawn.axes[0].get_xlim() == drawn.axes[1].get_xlim()
    for axes, draws in zip(drawn.axes, posterior.draws.values(), strict=True):
        ((low, high),) = lines_of(axes, BAR)
        assert (low, high) == pytest.approx(USUAL.of(draws))
    picture = Image.open(io.BytesIO(to_png(drawn)))
    assert picture.size[0] == 720
    assert (27, 94, 158) in {colour[:3] for _, colour in picture.getcolors(1 << 24)}


@pytest.mark.parametrize("name", ["a $x_1$ dollar", "\x07 bell", "\u202e turned"])
def test_unusual_names_can_be_drawn(name):
    odd = made(names=(), others={name: np.random.default_rng(1).normal(size=SHAPE)})
    svg = to_svg(interval_plot(odd))
    assert ElementTree.fromstring(svg) is not None
    assert "\u202e" not in svg
    assert "\x07" not in svg
    assert to_png(density_plot(odd)).startswith(b"\x89PNG")
