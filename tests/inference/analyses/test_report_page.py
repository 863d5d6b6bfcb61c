"""The folder of an analysis: its sentences, and a fit of every family that can be read back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from inference.analyses import analysing
from inference.analyses.analysing import analyse_table
from inference.analyses.report_page import save_analysis
from inference.results.quantity import Quantity
from inference.sampling import Sampled
from tests.inference.analyses.simulated import any_draws, table


def test_contrast_is_printed_with_its_direction():
    draws = np.asarray([[-0.1, 0.2, 0.3, 0.4]])
    quantity = Quantity("share q = yes, wave: b − a", "difference of the share", draws, contrast=True)
    assert quantity.to_document()["probability_of_direction"] == 0.75
    assert quantity.sentence().endswith("above 0 with probability 0.75.")
    below = Quantity("share q = yes, wave: b − a", "difference of the share", -draws, contrast=True)
    assert below.to_document()["direction"] == "below 0"
    assert "probability" not in Quantity("share q = yes", "share", draws).sentence()


@pytest.mark.slow
def test_drawn_result_can_be_read_back(tmp_path, monkeypatch):
    """No fit is lost after the sampler has run, here of made-up draws of cutpoints and groups."""

    def draws_of(analysis, _peaks, _method, _seed, draws, chains, _progress):
        sites = any_draws(analysis, chains * draws)
        sites["threshold"] = np.sort(sites["threshold"])
        kept = {name: one.reshape(chains, draws, *one.shape[2:]) for name, one in sites.items()}
        return "nuts", Sampled(kept, np.zeros((chains, draws), bool))

    monkeypatch.setattr(analysing, "draws_of", draws_of)
    formula = "mood ~ 0 + (1 | clinic)"
    found = analyse_table(table(60), formula, family="ordered", draws=100)
    save_analysis(found, tmp_path)
    assert set(found.rows()) == set(found.draws)
    assert "posterior" in found.to_arviz()
    entry = json.loads((tmp_path / "posterior.json").read_text())["questions"][found.question]
    assert set(entry["parameters"]) == set(found.draws)
    assert formula in (tmp_path / "report.html").read_text()
