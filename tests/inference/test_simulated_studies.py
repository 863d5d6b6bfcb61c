"""Batches of simulated studies: their numbers and progress do not depend on what ran before."""

import numpy as np
import pytest

from inference.design import simulated_posteriors
from inference.design.simulated_posteriors import Studies, fit_studies


class Fits:
    """Draws of a batch: each study's model, and the seed."""

    def __init__(self, _first, _count, seed, *_kept):
        self.seed = seed

    def draws(self, models, places):
        return {"x": np.asarray([[model, self.seed, place] for model, place in zip(models, places)])}


@pytest.fixture(autouse=True)
def few_side_by_side(monkeypatch):
    monkeypatch.setattr(simulated_posteriors, "Batches", Fits)
    monkeypatch.setattr(simulated_posteriors, "MOST_SIDE_BY_SIDE", 4)


def studies_of(seed, count=9):
    return Studies(
        lambda place: 10 * place, count, seed, 1, 1, lambda _places, draws: {"all": draws}, "{} of nine"
    )


def test_studies_return_statistics_and_report_progress():
    told = []
    found = fit_studies([studies_of(1), studies_of(2, count=4)], told.append)
    assert found[0]["all"]["x"].tolist() == [[10 * place, 1, place] for place in range(9)]
    again = fit_studies([studies_of(2, count=4)])
    assert found[1]["all"]["x"].tolist() == again[0]["all"]["x"].tolist()
    assert told[0] == "0 of nine"
    assert "9 of nine" in told
    shares = [line.share for line in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1
