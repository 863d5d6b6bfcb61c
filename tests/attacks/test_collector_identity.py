"""A collector with another database, or another study of the same id, answers in place of the first one."""

from __future__ import annotations

import pytest

from tests.collector.conftest import Harness, build_report, build_study


@pytest.fixture
def collecting(tmp_path):
    harness = Harness(f"sqlite:///{tmp_path / 'first.sqlite3'}")
    harness.publish(build_study())
    yield harness
    harness.collector.close()


def identity(answer):
    (found,) = answer.headers.getlist("LDPKit-Collector")
    assert len(bytes.fromhex(found)) == 16
    return found


def test_every_answer_carries_the_collector_identity(collecting):
    report = build_report(build_study())
    answers = [
        collecting.client.get("/v1/studies/habits"),
        collecting.put(report),
        collecting.client.put(f"/v1/studies/habits/reports/{report.id}", data=b"{"),
        collecting.withdraw(report.id, secret=report.secret),
        collecting.put(report),
        collecting.client.get("/v1/studies/nosuch"),
    ]
    assert len({identity(answer) for answer in answers}) == 1


def test_identity_survives_restart_and_differs_between_databases(collecting, tmp_path):
    first = identity(collecting.client.get("/v1/studies/habits"))
    again = Harness(f"sqlite:///{tmp_path / 'first.sqlite3'}")
    other = Harness(f"sqlite:///{tmp_path / 'other.sqlite3'}")
    assert identity(again.client.get("/v1/studies/habits")) == first
    assert identity(other.client.get("/v1/studies/habits")) != first
    again.collector.close()
    other.collector.close()


@pytest.mark.parametrize("fast", [True, False])
def test_refusal_names_digest_of_the_published_study(collecting, fast):
    def put(report):
        text = report.to_json() + (" " if not fast else "")
        path = f"/v1/studies/habits/reports/{report.id}"
        return collecting.client.put(path, data=text, content_type="application/json").get_json(force=True)

    collecting.put(build_report(build_study()))
    gone = build_report(build_study())
    collecting.withdraw(gone.id, secret=gone.secret)
    assert put(gone)["digest"] == build_study().digest
    collecting.close()
    assert put(build_report(build_study()))["digest"] == build_study().digest
    # Another study of this id: the device that answered that one sees that it is not its own.
    other = build_study(title="Others")
    refused = put(build_report(other))
    assert (refused["type"], refused["digest"]) == ("urn:ldpkit:problem:report-invalid", build_study().digest)
    assert "digest" not in put(build_report(build_study(version=2)))
