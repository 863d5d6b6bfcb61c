"""A page of another origin is a device if the collector lists its site; browsers block others."""

import json

import pytest

from schemas import Study
from tests import studies
from tests.collector.conftest import Server
from tests.portable.chromium import attempt, run
from tests.portable.site import Site

STUDY = Study(studies.document(studies.YES_NO))
ANSWERS = """
const [collector, id] = args;
const found = await fetch(`${collector}/v1/studies/${id}`, { credentials: "omit" });
const study = await parseStudy(await found.text());
const device = await openDevice({ maxEpsilon: "4", collector });
await device.answer(study, { ever: "yes" });
await device.consent(study);
await device.flush({ attempts: 1 });
"""
WITHDRAWS = """
const [collector, id] = args;
const device = await openDevice({ maxEpsilon: "4", collector });
await device.withdraw(id);
await device.flush({ attempts: 1 });
"""
STATE = "return (await device.status(study)).report.state;"


@pytest.fixture
def listing(site, tmp_path):
    """A collector that lists the site."""
    started = Server(tmp_path, environment={"LDPKIT_CORS_ORIGINS": f"https://survey.example.org, {site.url}"})
    started.request("POST", "/v1/studies", STUDY.document)
    yield started
    started.kill()


def stored(server):
    lines = server.read(f"/v1/studies/{STUDY.id}/export").splitlines()
    return len([line for line in lines if "payloads" in json.loads(line)])


def test_a_listed_page_fetches_answers_sends_and_withdraws(page, listing):
    assert run(page, ANSWERS + STATE, listing.url, STUDY.id) == "sent"
    assert stored(listing) == 1
    run(page, WITHDRAWS, listing.url, STUDY.id)
    assert stored(listing) == 0


def test_another_page_gets_nothing(browser, listing):
    other = Site()
    try:
        browser.get(f"{other.url}/pages/blank.html")
        assert (
            attempt(browser, ANSWERS + STATE, listing.url, STUDY.id)["error"] == "TypeError: Failed to fetch"
        )
    finally:
        other.close()
    assert stored(listing) == 0
