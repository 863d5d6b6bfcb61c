"""Fixed noisy statistics and their posteriors (tests/golden/ddplr.json): made with DDPLR's released code.

inputs: of the model, in the data's own units. posterior: by method, means, standard deviations and Monte
Carlo errors of θ and σ², by quadrature where `source` says so.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.conjugate import ConjugatePrior

CASES = json.loads((Path(__file__).parents[2] / "golden" / "ddplr.json").read_text())


def statistics_of(name, with_squares=False):
    """What the case's holders released: (S, z), or what MCMC-B&S reads, (S, z, u) with its own noise."""
    inputs = CASES[name]["inputs"]
    kind = "BS_" if with_squares else ""
    gram, cross = np.array(inputs[f"{kind}S_obs"]), np.array(inputs[f"{kind}Z_obs"])
    squares = np.array(inputs["BS_u_obs"]) if with_squares else np.zeros(len(gram))
    noise = np.full((cross.shape[1] + 1,) * 2, np.sqrt(inputs["var_SS" if with_squares else "var_S"]))
    if not with_squares:
        noise[-1, -1] = np.inf
    sums = np.concatenate(
        [
            np.concatenate([gram, cross[:, :, None]], 2),
            np.concatenate([cross, squares[:, None]], 1)[:, None],
        ],
        1,
    )
    return HolderStatistics(sums, noise, np.array(inputs["counts"]))


def prior_of(name):
    """The case's prior; features have mean 0."""
    inputs = CASES[name]["inputs"]
    size = len(inputs["m"])
    return ConjugatePrior(
        *(np.array(inputs["m"]), np.array(inputs["C"]), inputs["a"], inputs["b"]),
        *(np.array(inputs["Lambda"]), inputs["kappa"], np.zeros(size), 1.0),
    )


def reference(name, method):
    """Means, standard deviations and Monte Carlo errors of (θ, σ²), (3, q + 1)."""
    found = CASES[name]["posterior"][method]
    return np.array([found["mean"], found["sd"], found["mcse"]])
