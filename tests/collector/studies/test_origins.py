"""Pages may connect to the issuers of their studies, whatever other documents say."""

from __future__ import annotations

import pytest

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
ISSUER = "https://issuer.example"


@pytest.fixture
def tokened(make_harness, study):
    """A collector with the study `habits` and a study that names an issuer of tokens."""
    harness = make_harness()
    for one in (study, study_of(f"{ISSUER}/tokens", id="tokened")):
        assert harness.publish(one).status_code == 201
    return harness


PAGES = ("/s/habits", "/s/sales", "/assets/worker.js")


def policies(harness):
    answers = [harness.client.get(path) for path in PAGES]
    assert [answer.status_code for answer in answers] == [200] * len(PAGES)
    return [answer.headers["Content-Security-Policy"].split("connect-src ")[1] for answer in answers]


@pytest.mark.attack(15)
def test_feature_named_channel_does_not_change_the_policy(tokened):
    """A study names something "channel": the pages of other studies must not fail with it."""
    assert tokened.publish(Study(studies.document(SALES, id="sales"))).status_code == 201
    assert origins.CHANNEL_KEY in Study(studies.document(SALES, id="sales")).canonical()
    for policy in policies(tokened):
        assert policy.split(";")[0] == f"'self' {ISSUER}"


@pytest.mark.attack(15)
def test_document_is_parsed_once_for_many_page_requests(tokened, monkeypatch):
    """Publish long versions of one study until each page takes seconds: a document is parsed once."""
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
