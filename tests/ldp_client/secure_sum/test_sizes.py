"""How large a report is, of a secure sum or any other: what is larger than a device sends is refused."""

from dataclasses import replace
from hashlib import sha256

import pytest

from ldp_client import Device, Direct
from ldp_client.device import shares
from ldp_client.device.outbox import MOST_BYTES
from ldp_client.device.shares import body_size
from ldp_client.documents.errors import RefusedError, StudyError
from schemas import Study
from tests import studies
from tests.kit.commands import check
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, CODE, tokened_study
from tests.ldp_client.devices import consenting


def of_choices(count, questions, nodes):
    """A secure sum of questions, each of which has a number for each of its choices."""
    study = tokened_study("fruit", nodes=[node.address for node in nodes])
    (asked,) = study.document["questions"]
    large = [{**asked, "id": f"q{place}", "choices": {"count": count}} for place in range(questions)]
    return Study({**study.document, "questions": large})


def test_body_size_is_the_size_of_all_shares(network, tmp_path):
    study = network.publish()
    addresses = [node.address for node in network.nodes]
    device = Device(tmp_path, "8", network.nodes[0].url, max_delta="0.001", nodes=addresses)
    device.consent(study)
    device.answer(study, ANSWERS, ticket=CODE)
    assert [len(queued.body) for queued in device.ledger.queued()] == [body_size(study)]


@pytest.mark.attack(7)
def test_too_large_secure_sum_is_rejected_and_not_published(network, tmp_path, capsys):
    """A sum asks for more shares than devices send: base64 adds a third to 8 bytes a number."""
    study = of_choices(60_000, 2, network.nodes)
    assert check(tmp_path, study) == 3
    assert str(body_size(study)) in capsys.readouterr().err
    node = network.nodes[0]
    assert node.publish(study).status_code == 422
    # A sum published by an earlier release must not keep the node's other sums waiting.
    ready = replace(node.app.extensions["ldpkit-node"], body_limit=2 << 20)
    ready.check_size(study)
    with raises(StudyError, "study.shares_too_large", "8048", field="questions"):
        replace(ready, body_limit=1000).check_size(of_choices(1000, 1, network.nodes))


def test_each_node_of_a_secure_sum_gets_the_token(monkeypatch):
    told = []
    monkeypatch.setattr(shares, "put_share", lambda *a: told.append(a) or shares.Outcome("sent"))

    class Of:
        nodes = ("http://127.0.0.1:1", "http://127.0.0.1:2")
        body, ticket, study, report_id = '["AA==","AA=="]', "CODE", "survey", "ab" * 16

    shares.put_shares(Direct(), Of(), b"token")
    assert [a[3] for a in told] == [b"token"] * 2
    assert [a[4] for a in told] == [2 * sha256(b"\0").digest()] * 2


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_body_size_is_known_before_a_report_is_made(tmp_path, sample_one_question):
    public = [{"id": "region", "choices": ["a", "a longer name"]}]
    asked = (studies.YES_NO, studies.NUMBER, studies.CHOICE)
    study = Study(studies.document(*asked, public=public, sample_one_question=sample_one_question))
    device = consenting(tmp_path, "99")
    answers = {question["id"]: studies.ANSWERS[question["id"]] for question in asked}
    device.answer(study, answers, public={"region": "a"})
    assert [len(queued.body) for queued in device.ledger.queued()] == [body_size(study)]


@pytest.mark.slow
@pytest.mark.attack(7)
def test_study_whose_reports_are_too_large_is_refused(tmp_path, capsys):
    """A study's report is larger than any device sends, so that devices spend epsilon for nothing."""
    study = studies.of_large_choices(97)
    assert body_size(study) > MOST_BYTES > body_size(studies.of_large_choices(95))
    assert check(tmp_path, study) == 3
    assert f"would have {body_size(study)} bytes" in capsys.readouterr().err
    device = consenting(tmp_path / "device", "8")
    with raises(RefusedError, "device.report_large"):
        device.answer(study, {f"q{place}": 1 for place in range(97)})
    assert device.epsilon_left == 8
