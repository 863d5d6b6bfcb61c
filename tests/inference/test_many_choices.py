"""Thousands of choices: texts stay readable, and nothing needs a matrix of choices by choices."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray

from inference.likelihoods import SubsetCounts
from inference.results.diagnostics import MOST_NAMED, Mixing, diagnose, listed
from inference.results.posterior import Posterior


def test_long_list_of_names_ends_with_a_count():
    names = [f"p[{i}]" for i in range(10_000)]
    assert listed(names[:MOST_NAMED]) == ", ".join(names[:MOST_NAMED])
    assert listed(names).endswith("p[6] and 9,993 more")


def test_reasons_and_notes_do_not_name_all_of_many_parameters():
    random = np.random.default_rng(1)
    draws = {f"p[{i}]": random.normal(size=(4, 20)) for i in range(500)}
    found = diagnose(draws, np.zeros((4, 20), bool))
    assert not found.ok
    for line in (*found.reasons, *found.notes):
        assert "more" in line
        assert len(line) < 300


def test_simulating_the_counts_of_twenty_thousand_choices():
    """Their covariance alone would take 3.2 GB."""
    k, size, n = 20_000, 9, 10**6
    with jax.enable_x64(True):
        law = SubsetCounts(np.full(k, 1 / k), 0.6, size, n)
        draws = np.asarray(law.sample(jax.random.key(1), (3,)))
        away = (draws - np.asarray(law.mean)) / np.sqrt(np.asarray(law.variance))
    assert draws.sum(axis=1) == pytest.approx([size * n] * 3, rel=1e-9)
    assert away.std() == pytest.approx(1, abs=0.02)


def test_draws_of_many_shares_are_saved_as_one_variable(tmp_path):
    random = np.random.default_rng(2)
    draws = {f"p[{i}]": random.normal(size=(2, 5)) for i in range(300)} | {"concentration": np.ones((2, 5))}
    one = dict.fromkeys(draws, 1.0)
    found = diagnose(draws, np.zeros((2, 5), bool), found=Mixing(one, one, one))
    Posterior("rare", "multinomial", 9, draws, one, found, "digest", 1).save(tmp_path)
    with xarray.open_dataset(tmp_path / "rare.nc", group="posterior", engine="h5netcdf") as saved:
        assert set(saved.data_vars) == {"p", "concentration"}
        np.testing.assert_array_equal(saved["p"].sel(choice="17"), draws["p[17]"])
