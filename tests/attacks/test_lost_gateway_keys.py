"""A collector starts without the key that an open study states: devices pay, and their reports wait for ever.

Defence: The collector: serves such a study as closed, and names study and key in the log and in `ldpkit
status`; a new first key has a random number, so that a device is told that its key is gone. Known limit:
reports that were under way stay on their devices.
"""

from __future__ import annotations

import logging

import pytest

from collector.oblivious.keys import GatewayKeys
from collector.problems import OHTTP_KEY
from ldp_client.oblivious.encapsulation import REQUEST_TYPE, encapsulate
from tests.oblivious.conftest import relayed_study

RELAY = "https://relay.example/ldpkit"


def started(make_harness, tmp_path, keys):
    """A collector on the one database, with these keys or none."""
    if keys is None:
        return make_harness()
    path = tmp_path / f"{len(list(tmp_path.glob('*.keys')))}.keys"
    keys.save(path)
    return make_harness(ohttp_keys=str(path))


def said_open(harness, study_id):
    return harness.client.get(f"/v1/studies/{study_id}").headers["LDPKit-Study"]


def attention(harness, study_id):
    return harness.client.get(f"/v1/studies/{study_id}/status", headers=harness.operator).json["attention"]


@pytest.fixture
def keys():
    return GatewayKeys.generate()


@pytest.fixture(params=["another file", "no setting"])
def without_key(request, make_harness, tmp_path, keys, study):
    """The collector, restarted after it lost its key; two studies are open, and one states the key."""
    before = started(make_harness, tmp_path, keys)
    for one in (study, relayed_study(RELAY, keys, id="relayed")):
        assert before.publish(one).status_code == 201
    assert said_open(before, "relayed") == "open"
    assert not any("gateway" in line for line in attention(before, "relayed"))
    others = keys.rotated().without(keys.keys[0].number) if request.param == "another file" else None
    return started(make_harness, tmp_path, others)


def test_missing_key_is_reported_at_start_and_in_status(without_key, caplog):
    records = caplog.get_records("setup")
    lines = [record.message for record in records if record.levelno == logging.ERROR]
    assert len(lines) == 1
    assert "study relayed states key" in lines[0]
    assert lines[0] in attention(without_key, "relayed")
    assert lines[0] not in attention(without_key, "habits")


def test_study_without_its_key_is_closed_and_others_stay_open(without_key):
    assert [said_open(without_key, one) for one in ("relayed", "habits")] == ["closed", "open"]


def test_version_with_the_new_key_reopens_the_study(make_harness, tmp_path, keys):
    before = started(make_harness, tmp_path, keys)
    assert before.publish(relayed_study(RELAY, keys, id="relayed")).status_code == 201
    after = started(make_harness, tmp_path, new := GatewayKeys.generate())
    assert after.publish(relayed_study(RELAY, new, id="relayed", version=2)).status_code == 201
    assert said_open(after, "relayed") == "open"
    assert not any("gateway" in line for line in attention(after, "relayed"))


def test_closed_study_without_its_key_is_not_reported(without_key):
    assert without_key.close("relayed").status_code == 200
    assert not any("gateway" in line for line in attention(without_key, "relayed"))


def test_new_first_key_has_a_random_number(make_harness, tmp_path, keys):
    """So a device with the lost key is told that the key is gone, not that its request was changed."""
    drawn = {GatewayKeys.generate().keys[0].number for _ in range(20)}
    assert len(drawn) > 1
    other = next(one for one in iter(GatewayKeys.generate, None) if one.keys[0].number != keys.keys[0].number)
    harness = started(make_harness, tmp_path, other)
    public = keys.keys[0].private.public_key().public_bytes_raw()
    message = encapsulate(keys.keys[0].number, public, b"x").message
    answer = harness.client.post("/ohttp", data=message, content_type=REQUEST_TYPE)
    assert (answer.status_code, answer.json["type"]) == (400, OHTTP_KEY.uri)
