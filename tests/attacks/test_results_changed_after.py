"""Change what posterior.json says beside the parameters, and have `reproduce` call it the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.table import known_channel, table_of
from inference.results.reproducing import DIFFERENT, WITHIN, WORDED, compared
from inference.results.saving import save_posteriors

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
Document = dict[str, Any]


def fitted(folder: Path, seed: int) -> Document:
    """The same 1500 reports, drawn from with a seed of its own."""
    random = np.random.default_rng(7)
    region = random.choice(["north", "south"], 1500)
    truth = random.random(1500) < np.where(region == "north", 0.2, 0.7)
    said = (random.random(1500) < np.asarray(FORCED)[truth.astype(int), 1]).astype(int)
    table = table_of(pd.DataFrame({"region": region}), [known_channel("armed", ("no", "yes"), said, FORCED)])
    found = analyse_table(table, "armed ~ region", method="laplace", draws=500, seed=seed)
    save_posteriors({"armed": found}, folder)
    document: Document = json.loads((folder / "posterior.json").read_text())
    return {**document, "seed": 0}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Document, Document]:
    folder = tmp_path_factory.mktemp("results")
    return fitted(folder / "one", 1), fitted(folder / "other", 2)


def held(before: Document, again: Document) -> str:
    """The verdict, by the documents alone."""
    return compared(before, again, Path("nowhere"), Path("nowhere"))[1]


def halved(entry: Document) -> None:
    for one in entry["quantities"].values():
        for key in ("mean", "q05", "q50", "q95"):
            one[key] *= 0.5


def turned(entry: Document) -> None:
    one = next(one for one in entry["quantities"].values() if "direction" in one)
    one["direction"] = "below 0" if one["direction"] == "above 0" else "above 0"


CHANGED: dict[str, Callable[[Document], object]] = {
    "halved quantities": halved,
    "a direction": turned,
    "no mode": lambda entry: entry.update(mode=None),
    "another likelihood": lambda entry: entry["maximum_likelihood"].update(log_likelihood=-1.0),
    "a quantity less": lambda entry: entry["quantities"].popitem(),
    "draws": lambda entry: entry.update(draws=50),
    "R-hat": lambda entry: entry["parameters"]["Intercept"].update(r_hat=1.5),
    "a key that nobody knows": lambda entry: entry.update(coverage=0.9),
    "a key that is gone": lambda entry: entry.pop("form"),
}


@pytest.mark.slow
def test_two_fits_with_seeds_of_their_own_are_the_same(results: tuple[Document, Document]) -> None:
    assert held(*results) == WITHIN
    assert compared(*results, Path("nowhere"), Path("nowhere"))[0] == []


@pytest.mark.parametrize("what", CHANGED)
def test_whatever_was_changed_is_seen(what: str, results: tuple[Document, Document]) -> None:
    """One fit's document after the change, against another fit's."""
    one, other = results
    changed = copy.deepcopy(one)
    CHANGED[what](changed["questions"]["armed"])
    assert held(changed, other) == DIFFERENT


def test_another_seed_and_other_sentences_are_seen(results: tuple[Document, Document]) -> None:
    one, other = results
    assert held({**one, "seed": 3}, other) == DIFFERENT
    changed = copy.deepcopy(one)
    changed["questions"]["armed"]["quantities"]["share armed = yes"]["words"] = "of all people on earth"
    assert held(changed, other) == WORDED
    density = {"q05": [0.1, 0.2], "q50": [0.2, 0.4], "q95": [0.3, 0.7]}
    law = {"edges": [0.0, 1.0, 2.0], "density": density, "at_bounds": density}
    with_law = [copy.deepcopy(document) for document in results]
    for document in with_law:
        document["questions"]["armed"]["law"] = copy.deepcopy(law)
    assert held(*with_law) == WITHIN
    with_law[0]["questions"]["armed"]["law"]["density"]["q50"][1] = 0.6
    assert held(*with_law) == DIFFERENT
