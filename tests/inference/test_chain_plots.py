"""The picture of the chains, and rank histograms that tell agreeing chains from others."""

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from inference.results.chain_plots import BINS, MOST_SHOWN, chains_in_words, chains_plot, ranks, worst_first
from inference.results.diagnostics import diagnose
from inference.results.posterior import Posterior


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
    assert "6 of 9 parameters" in chains_in_words(mixed)


def test_the_picture_has_a_trace_and_a_row_of_bars_for_every_chain(mixed):
    drawn = chains_plot(mixed)
    traces, bars = drawn.axes[::2], drawn.axes[1::2]
    assert [axes.get_title("left") for axes in traces[:2]] == ["x7", "x6"]
    assert sum(axes.get_title("left").startswith("R-hat") for axes in bars) == MOST_SHOWN
    for line, chain in zip(traces[0].lines, mixed.draws["x7"], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain)
    rows = [one.get_data() for one in bars[0].patches if isinstance(one, StepPatch)]
    assert [len(row.values) for row in rows] == [BINS] * 4
    # The last chain is elsewhere: most of its draws rank highest.
    heights = rows[3].values - rows[3].baseline
    assert heights[-1] > 4 * heights[0]


def test_picture_states_if_no_parameter_varies():
    known = posterior_of({"sd": np.ones((4, 500))})
    assert "No parameter varies" in chains_in_words(known)
    assert [one.get_text() for one in chains_plot(known).texts] == ["no parameter varies"]
