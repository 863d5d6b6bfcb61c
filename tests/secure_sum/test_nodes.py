"""One node: requests that it accepts, and requests that it rejects.

Defence: The node: does not start with a wrong key before the study is summed or deleted.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from collector import create_app
from collector.problems import ProblemError
from collector.reports.running_summary import summary_text
from collector.secure_sum.statements import Statement, set_digest
from collector.secure_sum.summing import Opener
from collector.storage.keys import Role, add_key
from collector.storage.node_keys import NodeKeys
from collector.views.health import NODE_OPERATIONS
from ldp_client.documents.errors import InputError, StatementError
from schemas import Study
from tests.collector.commands import operate
from tests.collector.conftest import build_study as ordinary_study
from tests.collector.conftest import ensure_database
from tests.kit.errors import raises
from tests.kit.programs import need
from tests.secure_sum.conftest import TOKEN, build_study, close_study

NO_DRAWING: dict[str, object] = {}
CASES_EACH = 10


def kind(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def closed(network, devices=15):
    """Return ascending ids and the drawing of a study with at most as many devices as it takes."""
    network.publish("ever")
    network.answer(devices)
    drawing = network.draw()
    return list(drawing.held), drawing


def confirm(node, drawing):
    return node.post("/set", json=drawing.to_document())


def test_a_share_is_stored_once(network):
    network.publish("ever")
    node, message = network.nodes[0], network.messages()[0]
    assert [node.put(message).status_code for _ in range(3)] == [201, 200, 200]


def test_another_share_under_the_same_id_is_refused(network):
    """A report id identifies one message forever, even for a sender who can seal."""
    network.publish("ever")
    first, second = network.messages(), network.messages()
    node = network.nodes[0]
    assert node.put(first[0]).status_code == 201
    assert kind(node.put(second[0], first[0].path)) == (422, "report-invalid")


def test_refused_shares_are_counted_by_reason(network):
    network.publish("ever")
    node, message = network.nodes[0], network.messages()[1]
    node.put(message)
    node.post("/set", json={})
    assert node.app.extensions["ldpkit"].metrics.totals().rejected == {"report-invalid": 1}


def test_a_share_for_another_node_is_refused(network):
    network.publish("ever")
    messages = network.messages()
    assert kind(network.nodes[2].put(messages[1])) == (422, "report-invalid")
    assert kind(network.nodes[0].put(messages[1])) == (422, "report-invalid")


def test_node_has_no_other_upload_or_export_routes(network):
    network.publish("ever")
    client = network.nodes[0].app.test_client()
    operator = network.nodes[0].operator
    assert client.get("/v1/studies/summed/export", headers=operator).status_code == 404
    assert client.post("/v1/studies/summed/reports", json={"reports": []}).status_code in (404, 405)
    assert client.get("/v1/studies/summed/shares").status_code == 401


def test_a_study_of_other_nodes_is_refused(network):
    assert kind(network.nodes[0].publish(build_study("ever"))) == (422, "study-invalid")


def test_a_second_version_is_refused(network):
    study = network.publish("ever")
    assert network.nodes[0].publish(study).status_code == 200
    raised = Study({**study.document, "version": 2})
    assert kind(network.nodes[0].publish(raised)) == (409, "study-conflict")


def test_node_named_twice_in_a_study_rejects_it(network):
    """The node would accept only one place's shares, and devices would drop the rejected ones."""
    node = network.nodes[0]
    host, _, keys = node.address.partition("#")
    study = build_study("ever", nodes=[node.address, f"{host}/again#{keys}"])
    assert kind(node.publish(study)) == (422, "study-invalid")


def test_study_with_too_large_a_set_is_rejected_at_publication(network):
    """Otherwise the set could not be sent once all shares have arrived."""
    node = network.nodes[0]
    study = build_study("ever", nodes=[each.address for each in network.nodes], devices=1 << 22)
    response = node.publish(study)
    assert kind(response) == (422, "study-invalid")
    assert "raise this node's body_limit" in response.get_json()["detail"]


def test_the_openapi_document_of_a_node_is_its_own(network):
    network.publish("ever")
    network.answer(15)
    node = network.nodes[0]
    routes = set()
    for rule in node.app.url_map.iter_rules():
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        routes |= {(method.lower(), path) for method in rule.methods - {"HEAD", "OPTIONS", "GET"} or {"GET"}}
    assert routes == {(operation.method, operation.path) for operation in NODE_OPERATIONS}
    document = node.app.test_client().get("/openapi.json").get_json()
    assert "/v1/studies/{study_id}/sum" in document["paths"]
    for operation in NODE_OPERATIONS:
        path = operation.path.format(study_id="summed", report_id="0" * 32, name="ann")
        status = node.app.test_client().open(path, method=operation.method.upper()).status_code
        assert (status == 401) == operation.needs_key, operation.name
        assert str(status) in document["paths"][operation.path][operation.method]["responses"]


def test_node_keys_have_no_invite_or_delete_rights(network):
    """With a key of every node, an aggregator could choose devices until one answer is isolated."""
    network.publish("ever")
    node = network.nodes[0]
    with node.app.extensions["ldpkit"].database.write() as session:
        keys = [add_key(session, role.value, role, ["summed"]) for role in Role]
        keys.append(add_key(session, "all", Role.OPERATE))
    changes = {
        ("POST", "/invitations/list"): {"list": "of nobody"},
        ("POST", "/invitations/revoke"): {},
        ("POST", "/expire"): {"before": "2026-01-01"},
        ("DELETE", ""): None,
    }
    for (method, path), body in changes.items():
        for key in keys:
            headers = {"Authorization": f"Bearer {key}"}
            client = node.app.test_client()
            answer = client.open(f"/v1/studies/summed{path}", method=method, json=body, headers=headers)
            assert answer.status_code == 403, (method, path)
    assert node.app.test_client().get("/v1/studies/summed").status_code == 200


@pytest.mark.slow
def test_generated_requests_to_a_node_get_documented_answers(network):
    need("schemathesis")
    from tests.collector.contract import run_cases

    network.publish("ever")
    node, sent = network.nodes[0], network.answer(15)
    known = [SimpleNamespace(study="summed", id=messages[0].path[-32:]) for messages in sent]
    stored = SimpleNamespace(status_code=201)
    harness = SimpleNamespace(app=node.app, operator=node.operator, put=lambda _report: stored)
    assert run_cases(harness, known, CASES_EACH).total() >= 5 * CASES_EACH


def test_server_does_not_start_with_a_wrong_node_key(network, tmp_path):
    """With other keys or none, devices would drop the shares of open studies."""
    network.publish("ever")
    node = network.nodes[0]
    node.stop()
    other = tmp_path / "other.key"
    NodeKeys.generate().save(other)
    settings = {"database": f"sqlite:///{node.database}", "token": "token-for-the-tests"}
    with raises(InputError, "settings.wrong_node_key", "summed"):
        create_app(settings, node_key=str(other))
    with raises(InputError, "settings.node_key_missing", "summed", "start a node"):
        create_app(settings)
    node.start()
    node.post("/close")
    node.stop()
    # Closed and not summed yet: it still needs a node, with the keys that the shares were sealed to.
    with raises(InputError, "settings.wrong_node_key"):
        create_app(settings, node_key=str(other))
    with raises(InputError, "settings.node_key_missing", "summed", "start a node"):
        create_app(settings)
    operate(create_app(settings, node_key=str(node.key_file)), "delete", "summed", "--yes")
    for node_key in (None, str(other)):
        create_app(settings, node_key=node_key).extensions["ldpkit"].close()


def test_server_without_node_key_starts_after_the_sum(network):
    study = network.publish("ever")
    network.answer(20)
    close_study(study, [TOKEN])
    node = network.nodes[0]
    node.stop()
    settings = {"database": f"sqlite:///{node.database}", "token": "token-for-the-tests"}
    create_app(settings).extensions["ldpkit"].close()


def test_a_collector_of_other_studies_does_not_become_a_node(network, tmp_path):
    settings = {
        "database": ensure_database(f"sqlite:///{tmp_path / 'plain.sqlite3'}"),
        "token": "token-for-the-tests",
    }
    app = create_app(settings)
    app.test_client().post(
        "/v1/studies", json=ordinary_study().document, headers={"Authorization": "Bearer token-for-the-tests"}
    )
    app.extensions["ldpkit"].close()
    with raises(InputError, "settings.wrong_node_key", "habits", "study: protocol: is missing"):
        create_app(settings, node_key=str(network.nodes[0].key_file))


def test_node_has_no_running_summary(network):
    network.publish("ever")
    network.answer(3)
    collector = network.nodes[0].app.extensions["ldpkit"]
    with raises(ProblemError, "summary-impossible", "its total comes from"):
        summary_text(collector, "summed", None, collector.counting)


def test_an_ordinary_collector_refuses_such_a_study(network, tmp_path):
    app = create_app(
        {
            "database": ensure_database(f"sqlite:///{tmp_path / 'plain.sqlite3'}"),
            "token": "token-for-the-tests",
        }
    )
    study = network.publish("ever")
    response = app.test_client().post(
        "/v1/studies", json=study.document, headers={"Authorization": "Bearer token-for-the-tests"}
    )
    assert kind(response) == (422, "study-invalid")
    app.extensions["ldpkit"].close()


def test_ids_sets_and_sums_are_unavailable_before_the_close(network):
    network.publish("ever")
    network.answer(15)
    node = network.nodes[0]
    assert kind(node.get("/shares")) == (409, "study-open")
    for path in ("/commitment", "/nonce", "/set"):
        assert kind(node.post(path, json=NO_DRAWING)) in ((409, "study-open"), (422, "statement-invalid"))
    assert kind(node.get("/drawing")) == (409, "study-open")
    assert kind(node.post("/sum", json={"set": "0" * 64})) == (409, "study-open")


def test_shares_are_counted_before_and_after_the_close(network):
    network.publish("ever")
    sent = network.answer(16)
    node = network.nodes[0]
    assert node.app.test_client().delete(sent[0][0].path, headers=node.operator).status_code == 200
    assert node.get("/shares/count").get_json() == {"shares": 15}
    drawing = network.draw()
    assert node.get("/shares/count").get_json() == {"shares": 15}
    confirm(node, drawing)
    with closing(sqlite3.connect(node.database)) as connection:
        connection.execute("DELETE FROM reports")
        connection.commit()
    assert node.get("/shares/count").get_json() == {"shares": 15}


def test_share_count_needs_an_operators_key(network):
    network.publish("ever")
    client = network.nodes[0].app.test_client()
    assert kind(client.get("/v1/studies/summed/shares/count")) == (401, "unauthorized")
    answer = client.get("/v1/studies/other/shares/count", headers=network.nodes[0].operator)
    assert kind(answer) == (404, "study-unknown")


def test_shares_and_withdrawals_after_the_close_are_rejected(network):
    network.publish("ever")
    sent = network.answer(15)
    late = network.messages()[0]
    node = network.nodes[0]
    node.post("/close")
    assert kind(node.put(late)) == (410, "study-closed")
    assert node.put(sent[0][0]).status_code == 200
    assert kind(node.app.test_client().delete(sent[0][0].path, headers=node.operator)) == (409, "sum-fixed")


def test_withdrawn_share_is_deleted_and_not_accepted_again(network):
    network.publish("ever")
    sent = network.answer(15)[0][0]
    node = network.nodes[0]
    assert node.app.test_client().delete(sent.path, headers=node.operator).status_code == 200
    assert kind(node.put(sent)) == (410, "report-withdrawn")
    node.post("/close")
    assert len(node.get("/shares").data) == 14 * 16


def test_set_of_too_few_devices_is_rejected(network):
    network.publish("ever")
    network.answer(14)
    for place, node in enumerate(network.nodes):
        assert node.put(network.messages()[place]).status_code == 201
    drawing = network.draw()
    assert kind(confirm(network.nodes[0], drawing)) == (422, "statement-invalid")


def test_exactly_n_of_more_devices_are_drawn(network):
    study = network.publish("ever", devices=16, max_faulty=1)
    network.answer(18)
    drawing = network.draw()
    chosen = drawing.chosen(study)
    assert len(chosen) == 16
    said = Statement.from_document(confirm(network.nodes[0], drawing).get_json())
    assert (said.devices, said.set) == (16, set_digest(chosen))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"nonces": ["00" * 32] * 3},
        {"ids": "AAAA"},
        {"ids": "not base64"},
        {"holders": ""},
        {"commitments": []},
        {"format": "ldpkit.drawing/2"},
    ],
)
def test_malformed_drawing_is_rejected(network, change):
    _, drawing = closed(network)
    document = {**drawing.to_document(), **change}
    assert kind(network.nodes[0].post("/set", json=document)) == (422, "statement-invalid")


def test_second_set_is_rejected_even_after_a_restart(network):
    """The differencing attack: two sets that differ by one device."""
    ids, drawing = closed(network, devices=16)
    less = replace(drawing, held=dict(list(drawing.held.items())[1:]))
    node = network.nodes[0]
    assert confirm(node, drawing).status_code == 200
    assert kind(confirm(node, less)) == (422, "statement-invalid")
    node.stop()
    node.start()
    assert kind(confirm(node, less)) == (422, "statement-invalid")
    assert confirm(node, drawing).status_code == 200
    assert kind(node.post("/sum", json={"set": set_digest(ids[1:])})) == (409, "set-conflict")
    assert node.post("/sum", json={"set": set_digest(ids)}).status_code == 200


def test_a_sum_needs_its_confirmed_set(network):
    ids, _ = closed(network)
    assert kind(network.nodes[0].post("/sum", json={"set": set_digest(ids)})) == (409, "set-conflict")


def test_sum_stays_the_same_after_deletion_and_restart(network):
    ids, drawing = closed(network)
    node = network.nodes[0]
    confirm(node, drawing)
    first = node.post("/sum", json={"set": set_digest(ids)}).get_json()
    with closing(sqlite3.connect(node.database)) as connection:
        connection.execute("DELETE FROM reports")
        connection.commit()
    node.stop()
    node.start()
    assert node.post("/sum", json={"set": set_digest(ids)}).get_json() == first


def test_statements_are_signed_and_every_field_counts(network):
    _, drawing = closed(network)
    node = network.nodes[1]
    said = Statement.from_document(confirm(node, drawing).get_json())
    key = network.study.protocol.nodes[1].signing_key
    said.check(key)
    document = said.to_document()
    changed = {"kind": "sum", "study": "other", "node": 0, "devices": 14, "set": "1" * 64, "total": "1" * 64}
    for field, value in changed.items():
        with raises(StatementError, "statement.wrong_signature"):
            Statement.from_document({**document, field: value}).check(key)


def test_database_log_and_answers_contain_no_share_in_clear(network, caplog):
    network.publish("ever")
    sent = network.answer(15)
    drawing = network.draw()
    ids = drawing.chosen(network.study)
    answers = b""
    for node in network.nodes:
        answers += confirm(node, drawing).data + node.post("/sum", json={"set": set_digest(ids)}).data
        node.stop()
    stored = b"".join(node.database.read_bytes() for node in network.nodes) + answers + caplog.text.encode()
    for index, node in enumerate(network.nodes):
        opener = Opener.of(network.study, index, node.keys.sealing)
        for messages in sent:
            share = opener.open(messages[index].path[-32:], messages[index].body)
            assert messages[index].body in stored
            assert share not in stored
            assert share.hex().encode() not in stored
    for node in network.nodes:
        assert json.loads(node.key_file.read_text())["x25519"].encode() not in stored
