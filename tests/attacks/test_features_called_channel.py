"""A study names something "channel", and every participants' page of its collector fails.

Defence: The collector: parses each document as JSON to find where its reports go, and an unreadable
document does not affect other pages.
"""

from __future__ import annotations

import pytest
from sqlalchemy import text

from collector.oblivious.keys import GatewayKeys
from collector.studies import origins
from schemas import Study
from tests import studies
from tests.oblivious.conftest import relayed_study

PRIOR = {"coefficients": {"channel": {"distribution": "normal", "loc": "0", "scale": "10"}}}
SALES = {
    "id": "spend",
    "ask": "record",
    "features": [{"id": "age", "bounds": ["18", "90"]}, {"id": "channel", "bounds": ["0", "1"]}],
    "response": {"id": "money", "bounds": ["0", "200"]},
    "norm": "2",
    "mechanism": {"name": "gaussian_statistics", "epsilon": "1", "delta": "1e-6"},
    "model": {"name": "linear_regression", "prior": PRIOR},
}
PAGES = ("/s/habits", "/s/sales", "/assets/worker.js")
RELAY = "https://relay.example"


@pytest.fixture
def relayed(make_harness, study, tmp_path):
    """A collector with the study `habits`, and one whose reports go through a relay."""
    keys = GatewayKeys.generate()
    keys.save(tmp_path / "ohttp.keys")
    harness = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"))
    for one in (study, relayed_study(f"{RELAY}/ldpkit", keys, id="relayed")):
        assert harness.publish(one).status_code == 201
    return harness


def policies(harness):
    answers = [harness.client.get(path) for path in PAGES]
    assert [answer.status_code for answer in answers] == [200] * len(PAGES)
    return [answer.headers["Content-Security-Policy"].split("connect-src ")[1] for answer in answers]


def test_feature_named_channel_does_not_change_the_policy(relayed):
    assert relayed.publish(Study(studies.document(SALES, id="sales"))).status_code == 201
    assert origins.CHANNEL_KEY in Study(studies.document(SALES, id="sales")).canonical()
    for policy in policies(relayed):
        assert policy.split(";")[0] == f"'self' {RELAY}"


DAMAGED = [b'{"channel":{', b'\xff"channel":{', b'[{"channel":{}}]', b'{"channel":{}}']


@pytest.mark.slow
@pytest.mark.parametrize("damaged", DAMAGED)
def test_unreadable_document_does_not_break_other_pages(relayed, damaged):
    assert relayed.publish(Study(studies.document(SALES, id="sales"))).status_code == 201
    assert relayed.publish(Study(studies.document(SALES, id="other"))).status_code == 201
    assert relayed.client.get("/s/other").status_code == 200
    with relayed.collector.database.write() as session:
        of_other = "(SELECT number FROM studies WHERE id = 'other')"
        statement = f"UPDATE documents SET canonical = :text WHERE study = {of_other}"
        session.execute(text(statement), {"text": damaged})
    # As in a process that has just started.
    relayed.app.extensions.pop("ldpkit-origins")
    origins._ORIGINS._found.clear()
    for policy in policies(relayed):
        assert policy.split(";")[0] == f"'self' {RELAY}"


def test_document_is_parsed_once_for_many_page_requests(relayed, monkeypatch):
    """A key of one study could publish long versions until each page and publication took seconds."""
    read = []
    plain = origins._channel_in
    monkeypatch.setattr(origins, "_channel_in", lambda text: read.append(text) or plain(text))
    origins._ORIGINS._found.clear()
    for version in (1, 2, 3):
        sales = Study(studies.document(SALES, id="sales", version=version))
        assert relayed.publish(sales).status_code == 201
        relayed.app.extensions.pop("ldpkit-origins", None)
        policies(relayed)
    assert len(read) == len(set(read)) == 5
