"""A search for the mode that ends in NaN restarts at its lowest point."""

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, minimize

from inference.sampling import whitening

TOP = np.array([3.0, -1.0])


def slope(vector):
    away = vector - TOP
    return float(away @ away), 2 * away


@pytest.mark.parametrize("lost", [1, whitening.SEARCHES])
def test_lost_search_restarts_at_its_lowest_point(monkeypatch, lost):
    started = []

    def losing(function, start, **options):
        started.append(start)
        if len(started) > lost:
            return minimize(function, start, **options)
        for part in (1.5, 0.5):
            function(start + part * (TOP - start) / 2)
        return OptimizeResult(x=np.full(2, np.nan))

    monkeypatch.setattr(whitening, "minimize", losing)
    found = whitening.descend(slope, np.zeros(2))
    assert np.array_equal(started[1], 0.75 * TOP)
    assert np.allclose(found, TOP, atol=1e-5 if lost == 1 else 0.01)
