"""Have devices send requests through a relay that exceed `body_limit`, so that none is ever opened.

Defence: The collector: compares the whole request, publishes no such study, and does not start
while one is open or has reports that could not be withdrawn.
"""

from __future__ import annotations

import pytest
from sqlalchemy import update

from collector.oblivious.keys import GatewayKeys
from collector.reports.rules import Rules
from collector.storage.models import DocumentRow
from ldp_client.device.relayed import KEY_PROBLEM
from ldp_client.documents.errors import InputError
from ldp_client.oblivious.encapsulation import encapsulate
from ldp_client.oblivious.sizes import body_bytes, request_bytes
from tests import studies
from tests.kit.errors import raises
from tests.oblivious.conftest import Gateway, make_gateway, relayed_study

__all__ = ["make_gateway"]

RELAY = "https://relay.example/ldpkit"
SMALL = 2048


@pytest.fixture
def keys():
    return GatewayKeys.generate()


@pytest.fixture
def relayed(keys):
    return relayed_study(RELAY, keys, id="relayed")


@pytest.fixture
def make_place(make_harness, keys, tmp_path):
    """A collector on the one database, with a gateway's key and this limit."""
    keys.save(path := tmp_path / "ohttp.keys")
    return lambda **limits: make_harness(ohttp_keys=str(path), **limits)


def test_study_with_too_long_requests_is_not_published(make_place, relayed):
    """The reports without the relay's encryption would fit."""
    rules = Rules.of(relayed)
    size = rules.body_size
    assert size > SMALL > rules.form.size
    response = make_place(body_limit=size - 1).publish(relayed)
    assert response.status_code == 422
    detail = response.get_json()["detail"]
    assert f"requests of {size} bytes through its relay" in detail
    assert "raise body_limit" in detail


def test_study_with_requests_at_limit_is_published_and_served(make_place, make_report, keys, relayed):
    report = make_report(study=relayed)
    place = make_place(body_limit=body_bytes(len(report.to_json())))
    assert place.publish(relayed).status_code == 201
    asked = Gateway(place, keys).encapsulated(bytes(request_bytes(len(report.to_json()))))
    assert len(asked.message) == Rules.of(relayed).body_size
    assert Gateway(place, keys).post(asked.message).status_code == 200


def test_collector_does_not_start_with_limit_below_open_study(make_place, relayed):
    assert make_place().publish(relayed).status_code == 201
    with raises(InputError, "settings.body_limit_too_small", "relayed", "through"):
        make_place(body_limit=SMALL)


@pytest.mark.parametrize("over", ["closed", "another version"])
def test_collector_does_not_start_with_limit_below_withdrawals(make_place, make_report, keys, relayed, over):
    place = make_place()
    assert place.publish(relayed).status_code == 201
    report = make_report(study=relayed)
    assert Gateway(place, keys).put(report).status == 201
    if over == "closed":
        assert place.close("relayed").status_code == 200
    else:
        document = {**relayed.document, "version": 2, "channel": None}
        del document["channel"]
        assert place.publish(type(relayed)(document)).status_code == 201
    with raises(InputError, "settings.body_limit_too_small", "relayed"):
        make_place(body_limit=SMALL)
    assert Gateway(place, keys).delete(report).status == 200
    assert make_place(body_limit=SMALL).collector.settings.body_limit == SMALL


def test_unopened_requests_are_counted(make_gateway):
    gateway = make_gateway(body_limit=SMALL)
    assert gateway.post(bytes(SMALL + 1)).status_code == 413
    other = GatewayKeys.generate().keys[0]
    public = other.private.public_key().public_bytes_raw()
    strange = encapsulate((gateway.keys.keys[0].number + 7) % 256, public, b"")
    assert KEY_PROBLEM in gateway.post(strange.message).data
    assert gateway.harness.collector.metrics.totals().rejected == {"body-too-large": 1, "ohttp-key": 1}


def test_reported_limit_is_enough_for_all_studies(make_place, keys):
    """The message used to name the limit of one study after another."""
    place = make_place()
    many = [{**studies.YES_NO, "id": f"question{number}"} for number in range(30)]
    found = [relayed_study(RELAY, keys, id="few"), relayed_study(RELAY, keys, *many, id="many")]
    for study in found:
        assert place.publish(study).status_code == 201
    sizes = [Rules.of(study).body_size for study in found]
    assert SMALL < sizes[0] < sizes[1]
    with raises(InputError, "settings.body_limit_too_small", f"{sizes[1]}"):
        make_place(body_limit=SMALL)
    assert make_place(body_limit=sizes[1]).collector.settings.body_limit == sizes[1]


def test_unreadable_document_without_reports_does_not_block_start(make_place, make_report, keys, relayed):
    """Each start used to read every version that had ever stated a relay."""
    place = make_place()
    assert place.publish(relayed).status_code == 201
    assert place.publish(other := relayed_study(RELAY, keys, id="other")).status_code == 201
    assert Gateway(place, keys).put(make_report(study=other)).status == 201
    for name in ("relayed", "other"):
        assert place.close(name).status_code == 200
    with place.collector.database.write() as session:
        strange = DocumentRow.canonical == relayed.canonical()
        session.execute(update(DocumentRow).where(strange).values(canonical=b'{"oblivious": "unknown"}'))
    assert make_place().collector.gateway_keys.keys
    with raises(InputError, "settings.body_limit_too_small", "version 1 of study other"):
        make_place(body_limit=SMALL)
