"""Have devices answer through a relay what `body_limit` refuses: no request of theirs is ever opened."""

from __future__ import annotations

import pytest

from collector.oblivious.keys import GatewayKeys
from collector.reports.rules import Rules
from ldp_client.device.relayed import KEY_PROBLEM
from ldp_client.documents.errors import InputError
from ldp_client.oblivious.encapsulation import encapsulate
from ldp_client.oblivious.sizes import body_bytes, request_bytes
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


def test_a_study_whose_requests_are_too_long_is_not_published(make_place, relayed):
    """Its reports alone would fit."""
    rules = Rules.of(relayed)
    size = rules.body_size
    assert size > SMALL > rules.form.size
    response = make_place(body_limit=size - 1).publish(relayed)
    assert response.status_code == 422
    detail = response.get_json()["detail"]
    assert f"requests of {size} bytes through its relay" in detail
    assert "raise body_limit" in detail


def test_one_that_just_fits_is_published_and_its_requests_are_opened(make_place, make_report, keys, relayed):
    report = make_report(study=relayed)
    place = make_place(body_limit=body_bytes(len(report.to_json())))
    assert place.publish(relayed).status_code == 201
    asked = Gateway(place, keys).encapsulated(bytes(request_bytes(len(report.to_json()))))
    assert len(asked.message) == Rules.of(relayed).body_size
    assert Gateway(place, keys).post(asked.message).status_code == 200


def test_nor_does_a_collector_start_with_a_lower_limit_than_an_open_study_needs(make_place, relayed):
    assert make_place().publish(relayed).status_code == 201
    with pytest.raises(InputError, match=r"body_limit: study relayed .* through its relay: raise it above"):
        make_place(body_limit=SMALL)


@pytest.mark.parametrize("over", ["closed", "another version"])
def test_nor_with_one_that_lets_nobody_withdraw(make_place, make_report, keys, relayed, over):
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
    with pytest.raises(InputError, match=r"body_limit: version 1 of study relayed .*\(1 report\)"):
        make_place(body_limit=SMALL)
    assert Gateway(place, keys).delete(report).status == 200
    assert make_place(body_limit=SMALL).collector.settings.body_limit == SMALL


def test_what_is_not_opened_is_counted(make_gateway):
    gateway = make_gateway(body_limit=SMALL)
    assert gateway.post(bytes(SMALL + 1)).status_code == 413
    other = GatewayKeys.generate().keys[0]
    public = other.private.public_key().public_bytes_raw()
    strange = encapsulate((gateway.keys.keys[0].number + 7) % 256, public, b"")
    assert KEY_PROBLEM in gateway.post(strange.message).data
    assert gateway.harness.collector.metrics.totals().rejected == {"body-too-large": 1, "ohttp-key": 1}
