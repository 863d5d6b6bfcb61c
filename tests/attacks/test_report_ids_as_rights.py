"""A person with an export, or with a `read` key, tries to delete the reports whose ids it has.

Attack: Delete other people's reports: with the ids of an export, with a `read` key, or with another
report's secret: the collector: an id is a hash of a secret that only its device has, and a deletion shows
that secret or an operator's key; deletions are limited in rate, and counted.

Attack: Delete one device's share of a secure sum at another node (a node, who sees the ids): each node: an
id is a hash there too, and the secret is shown to nodes only when its device withdraws.
"""

from __future__ import annotations

import logging

import pytest

from collector.reports import withdrawing
from collector.reports.limits import TokenBucket
from ldp_client.documents.report import report_id_of
from tests.collector.answered import problem
from tests.collector.conftest import TOKEN, Harness, build_report, build_study
from tests.secure_sum.conftest import shares_of


@pytest.fixture
def collected(tmp_path):
    """A collector with ten reports, whose log is told."""
    harness = Harness(f"sqlite:///{tmp_path / 'collector.sqlite3'}")
    harness.publish(build_study())
    reports = [build_report(build_study()) for _ in range(10)]
    harness.post([report.to_document() for report in reports])
    yield harness, reports
    harness.collector.close()


def delete(harness, report_id, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return harness.client.delete(f"/v1/studies/habits/reports/{report_id}", headers=named)


def new_key(harness, name, role):
    from collector.storage.keys import Role, add_key

    with harness.collector.database.write() as session:
        return add_key(session, name, Role(role))


def test_exported_ids_cannot_delete_reports(collected):
    harness, _ = collected
    ids = [report.id for report in harness.exported()]
    assert len(ids) == 10
    for report_id in ids:
        assert problem(delete(harness, report_id)) == (401, "withdrawal-unproven")
        # An id is not its own secret, nor is another report's id.
        for guess in (report_id, ids[0], report_id.upper(), "", "00" * 16, "\u00e9" * 32):
            assert problem(delete(harness, report_id, LDPKit_Withdrawal=guess)) == (403, "withdrawal-refused")
    assert len(harness.exported()) == 10


def test_only_operator_key_deletes_reports(collected):
    harness, reports = collected
    for role in ("read", "publish"):
        bearer = f"Bearer {new_key(harness, role, role)}"
        assert problem(delete(harness, reports[0].id, Authorization=bearer)) == (403, "forbidden")
    assert problem(delete(harness, reports[0].id, Authorization="Bearer wrong")) == (401, "unauthorized")
    assert len(harness.exported()) == 10
    assert delete(harness, reports[0].id, Authorization=f"Bearer {TOKEN}").status_code < 300
    assert len(harness.exported()) == 9


def test_secret_deletes_only_its_own_report(collected):
    harness, (mine, other, *_) = collected
    assert problem(delete(harness, other.id, LDPKit_Withdrawal=mine.secret.hex()))[0] == 403
    assert delete(harness, mine.id, LDPKit_Withdrawal=mine.secret.hex()).status_code < 300
    assert mine.id not in {report.id for report in harness.exported()}
    assert len(harness.exported()) == 9


def test_secret_is_absent_from_documents_logs_and_addresses(collected, caplog):
    harness, (mine, *_) = collected
    caplog.set_level(logging.DEBUG)
    delete(harness, mine.id, LDPKit_Withdrawal=mine.secret.hex())
    delete(harness, mine.id, LDPKit_Withdrawal="11" * 16)
    harness.collector.close()
    assert mine.secret.hex() not in mine.to_json() + repr(mine)
    assert mine.secret.hex() not in caplog.text
    assert mine.secret not in harness.path.read_bytes()
    assert report_id_of(mine.secret) == mine.id
    assert mine.id not in caplog.text


def test_deletions_are_rate_limited_and_logged_as_counts(tmp_path, caplog, monkeypatch):
    # Nothing is gained back while the requests are made.
    monkeypatch.setattr(withdrawing, "TokenBucket", lambda rate, _clock: TokenBucket(rate, lambda: 0.0))
    harness = Harness(f"sqlite:///{tmp_path / 'limited.sqlite3'}", deletion_rate="0.5")
    harness.publish(build_study())
    reports = [build_report(build_study()) for _ in range(8)]
    harness.post([report.to_document() for report in reports])
    answers = [harness.withdraw(report.id, secret=report.secret) for report in reports]
    assert [answer.status_code < 300 for answer in answers] == [True] * 5 + [False] * 3
    assert problem(answers[-1]) == (429, "too-many-deletions")
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert len(harness.exported()) == 3
    metrics = harness.client.get("/metrics", headers=harness.operator).text
    assert 'ldpkit_reports_deleted_total{by="device"} 5.0' in metrics
    harness.collector.close()
    assert "5 by their devices, 0 with an operator's key" in caplog.text


def test_node_cannot_delete_share_at_other_node(network):
    study = network.publish("ever")
    report, messages = shares_of(study, {"ever": True})
    for node, message in zip(network.nodes, messages):
        assert node.put(message).status_code == 201
    for node, message in zip(network.nodes, messages):
        client = node.app.test_client()
        assert problem(client.delete(message.path)) == (401, "withdrawal-unproven")
        wrong = {"LDPKit-Withdrawal": report.id}
        assert problem(client.delete(message.path, headers=wrong)) == (403, "withdrawal-refused")
        right = {"LDPKit-Withdrawal": report.secret.hex()}
        assert client.delete(message.path, headers=right).status_code < 300


def test_shares_do_not_contain_secret(network):
    study = network.publish("ever")
    report, messages = shares_of(study, {"ever": True})
    for message in messages:
        assert report.secret not in message.body
        assert report.secret.hex() not in message.path
