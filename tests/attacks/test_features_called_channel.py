"""A study names something "channel", and every participants' page of its collector fails.

Defence: The collector: parses each document as JSON to find where its reports go, and an unreadable
document does not affect other pages.
"""

from __future__ import annotations

import pytest
from sqlalchemy import text

from collector.studies import origins
from schemas import Study
from tests import studies
from tests.ldp_client.issuers import study_of

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
ISSUER = "https://issuer.example"


@pytest.fixture
def tokened(make_harness, study):
    """A collector with the study `habits` and a study that names an issuer of tokens."""
    harness = make_harness()
    for one in (study, study_of(f"{ISSUER}/tokens", id="tokened")):
        assert harness.publish(one).status_code == 201
    return harness


def policies(harness):
    answers = [harness.client.get(path) for path in PAGES]
    assert [answer.status_code for answer in answers] == [200] * len(PAGES)
    return [answer.headers["Content-Security-Policy"].split("connect-src ")[1] for answer in answers]


def test_feature_named_channel_does_not_change_the_policy(tokened):
    assert tokened.publish(Study(studies.document(SALES, id="sales"))).status_code == 201
    assert origins.CHANNEL_KEY in Study(studies.document(SALES, id="sales")).canonical()
    for policy in policies(tokened):
        assert policy.split(";")[0] == f"'self' {ISSUER}"


DAMAGED = [b'{"channel":{', b'\xff"channel":{', b'[{"channel":{}}]', b'{"channel":{}}']


@pytest.mark.slow
@pytest.mark.parametrize("damaged", DAMAGED)
def test_unreadable_document_does_not_break_other_pages(tokened, damaged):
    assert tokened.publish(Study(studies.document(SALES, id="sales"))).status_code == 201
    assert tokened.publish(Study(studies.document(SALES, id="other"))).status_code == 201
    assert tokened.client.get("/s/other").status_code == 200
    with tokened.collector.database.write() as session:
        of_other = "(SELECT number FROM studies WHERE id = 'other')"
        statement = f"UPDATE documents SET canonical = :text WHERE study = {of_other}"
        session.execute(text(statement), {"text": damaged})
    # As in a process that has just started.
    tokened.app.extensions.pop("ldpkit-origins")
    origins._ORIGINS._found.clear()
    for policy in policies(tokened):
        assert policy.split(";")[0] == f"'self' {ISSUER}"


def test_document_is_parsed_once_for_many_page_requests(tokened, monkeypatch):
    """A key of one study could publish long versions until each page and publication took seconds."""
    read = []
    plain = origins._channel_in
    monkeypatch.setattr(origins, "_channel_in", lambda text: read.append(text) or plain(text))
    origins._ORIGINS._found.clear()
    for version in (1, 2, 3):
        sales = Study(studies.document(SALES, id="sales", version=version))
        assert tokened.publish(sales).status_code == 201
        tokened.app.extensions.pop("ldpkit-origins", None)
        policies(tokened)
    assert len(read) == len(set(read)) == 5
