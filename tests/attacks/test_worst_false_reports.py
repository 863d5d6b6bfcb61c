"""Tries to move a quantity beyond its set by false reports that are not of the most influence at first."""

from __future__ import annotations

import jax
import numpy as np
import pandas as pd
import pytest

from inference.analyses import false_reports
from inference.analyses.analysing import model_of
from inference.analyses.assembling import assemble
from inference.analyses.false_reports import Kinds, _Moved, analysis_sets
from inference.analyses.peaks import peaks_of
from inference.analyses.table import Table, known_channel
from inference.sampling.space import as_arrays, space_of

SHARE = 0.01
KEEP = 20.1 / 23.1
CHANNEL = np.full((4, 4), (1 - KEEP) / 3) + np.eye(4) * (KEEP - (1 - KEEP) / 3)


def steps_by_region():
    """Four steps in three regions, of few people, so that what is rare moves much."""
    random = np.random.default_rng(2)
    region = random.choice(list("abc"), 500)
    laws = [random.dirichlet(np.ones(4)) for _ in "abc"]
    answers = [random.choice(4, p=laws["abc".index(one)]) for one in region]
    reports = [int(random.choice(4, p=CHANNEL[one])) for one in answers]
    frame = pd.DataFrame({"region": pd.Categorical(region)})
    private = known_channel("ever", list("wxyz"), reports, CHANNEL)
    return Table(frame, {"ever": private}, np.ones(500, np.int64))


@pytest.fixture(scope="module")
def moved():
    with jax.enable_x64(True):
        analysis = assemble(steps_by_region(), "ever ~ region", None, "ordered")
        kinds = Kinds.of(analysis)
        peak = peaks_of(analysis, model_of(analysis))[0]
        space = space_of(kinds.model)
        start = space.start(as_arrays(peak.sites, float), as_arrays(kinds.model.data))
        yield analysis, kinds, start, _Moved(kinds, space, np.asarray(start), SHARE), peak.sites


@pytest.mark.slow
def test_no_single_kind_of_false_report_moves_a_quantity_further(moved, monkeypatch):
    _, kinds, start, found, _ = moved
    assert kinds.weights.min() > SHARE
    slopes = np.random.default_rng(1).standard_normal((10, len(start)))
    ends = [found.to(slope, 1) for slope in slopes]
    for kind in range(len(kinds.cell)):
        only = np.where(np.arange(len(kinds.cell)) == kind, SHARE, 0.0)
        monkeypatch.setattr(found, "_false", lambda *_, only=only: only)
        for end, slope in zip(ends, slopes, strict=True):
            assert slope @ (end - start) > 0.98 * slope @ (found.to(slope, 1) - start)


@pytest.mark.slow
def test_a_search_that_does_not_settle_says_so(moved, monkeypatch):
    analysis, _, _, found, sites = moved
    monkeypatch.setattr(false_reports, "EXCHANGES", 0)
    monkeypatch.setattr(false_reports, "_Moved", lambda *_: found)
    sites = {name: np.asarray(value)[None, None] for name, value in sites.items()}
    sets = analysis_sets(analysis, sites, analysis.parameters(sites), analysis.parameters, SHARE)
    assert not sets.sets
    assert "region[b]" in sets.open
    assert "did not settle" in sets.open
