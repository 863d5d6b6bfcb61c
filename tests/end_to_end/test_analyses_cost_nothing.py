"""Weights, censuses, groups and contrasts cost no ε: devices' ledgers and the collector stay as they are."""

import hashlib
import sqlite3

import pandas as pd
import pytest

from inference import analyse
from inference.analyses.population import Population
from ldp_client import Device
from schemas import Study
from summaries.reading import evidence_of
from tests import studies
from tests.end_to_end.conftest import ldpkit

PUBLIC = [
    {"id": "region", "choices": ["south", "north"]},
    {"id": "weight", "bounds": ["1", "3"], "step": "1"},
]
STUDY = Study(studies.document(studies.YES_NO, public=PUBLIC))
PEOPLE = 6
CENSUS = pd.DataFrame({"region": ["south", "north"], "count": [700, 300]})
FITS = [
    Population(by="region", weights="weight"),
    Population(by="region", census=CENSUS),
]


def state_of(folder):
    """Every byte of a device's files."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def rows_of(database):
    """Every row that the collector keeps."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return list(connection.iterdump())


@pytest.mark.slow
def test_analyses_spend_no_epsilon(collector, tmp_path):
    """Each device has spent ε = 1 of 4 with its report, and nothing more after any number of fits."""
    collector.publish(STUDY)
    devices = []
    for person in range(PEOPLE):
        device = Device(tmp_path / f"phone{person}", "4", collector.url)
        device.consent(STUDY)
        public = {"region": ("south", "north")[person % 2], "weight": 1 + person % 3}
        device.answer(STUDY, {"ever": person % 3 == 0}, public=public)
        assert device.flush().sent == 1
        devices.append(device)
    reports = tmp_path / "reports.ndjson"
    assert ldpkit("export", "survey", "--collector", collector.url, "--out", reports).returncode == 0
    # What fits need is in the file: nobody is asked again.
    collector.stop()
    left = [device.epsilon_left for device in devices]
    assert set(left) == {3}
    ledgers = [state_of(tmp_path / f"phone{person}") for person in range(PEOPLE)]
    kept = rows_of(collector.folder / "collector.sqlite3")
    for population in FITS:
        evidence = evidence_of(STUDY, reports)
        found = analyse(
            STUDY, evidence, "ever ~ region", method="gaussian_approx", draws=100, population=population
        )
        assert any(one.contrast for one in found.quantities)
        assert found.n == PEOPLE
    assert [device.epsilon_left for device in devices] == left
    assert [state_of(tmp_path / f"phone{person}") for person in range(PEOPLE)] == ledgers
    assert rows_of(collector.folder / "collector.sqlite3") == kept
