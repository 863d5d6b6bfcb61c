"""Publish a study whose report is larger than any device sends, so that devices spend epsilon for nothing.

Defence: `ldpkit check`, with an error; the collector refuses to publish it; devices, also
JavaScript's, refuse it before anything is spent.
"""

import json
from dataclasses import replace

import pytest

from ldp_client import Device
from ldp_client.device.outbox import MOST_BYTES
from ldp_client.device.shares import body_size
from ldp_client.documents.errors import RefusedError, StudyError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT
from tests.secure_sum.conftest import ANSWERS, INVITATION, build_study
from tests.secure_sum.test_device import device_of

LARGE = {"ask": "choice", "choices": {"count": 65_536}, "mechanism": {"name": "oue", "epsilon": "0.05"}}


def of_questions(count, **more):
    model = {"name": "multinomial"}
    return Study(
        studies.document(*[{"id": f"q{place}", **LARGE, "model": model} for place in range(count)], **more)
    )


@pytest.mark.slow
def test_study_check_rejects_too_large_report(tmp_path, capsys):
    path = tmp_path / "study.json"
    for count, code in ((95, 0), (96, 3), (97, 3)):
        study = of_questions(count)
        path.write_text(json.dumps(study.document))
        assert main(["check", str(path)]) == code
        said = capsys.readouterr().err
        assert (f"would have {body_size(study)} bytes" in said) is (body_size(study) > MOST_BYTES)
    device = Device(tmp_path / "device", "8", require_consent=False)
    with raises(RefusedError, "device.report_large", f"{body_size(study)} bytes"):
        device.answer(study, {f"q{place}": 1 for place in range(97)})


SCRIPT = """
const from = (name) => import("%s/" + name);
const { openDevice, parseStudy } = await from("index.js");
const ledger = (await from("ledgers/memory.js")).memoryLedger();
const study = await parseStudy(JSON.stringify(%s));
const device = await openDevice({ maxEpsilon: "8", collector: "https://a.example", ledger });
const answers = Object.fromEntries(study.questions.map(({ id }) => [id, 1]));
const said = await device.answer(study, answers).catch(({ code }) => code);
console.log(said, await ledger.read(({ spent, reports }) => spent.length + reports.length));
"""


def test_javascript_spends_nothing_on_too_large_report():
    script = SCRIPT % (JAVASCRIPT, json.dumps(of_questions(97).document))
    assert npm.node("--input-type=module", "-e", script).split() == ["study", "0"]


def test_body_size_matches_report(tmp_path):
    public = [{"id": "region", "choices": ["a", "a longer name"]}]
    for sample_one_question in (False, True):
        study = Study(
            studies.document(
                studies.YES_NO,
                studies.NUMBER,
                studies.CHOICE,
                public=public,
                sample_one_question=sample_one_question,
            )
        )
        device = Device(tmp_path / str(sample_one_question), "99", require_consent=False)
        label = study.question(studies.CHOICE["id"]).choices[0]
        answers = {"ever": True, studies.NUMBER["id"]: 1, studies.CHOICE["id"]: label}
        device.answer(study, answers, public={"region": "a"})
        assert [len(queued.body) for queued in device.ledger.queued()] == [body_size(study)]


def test_collector_does_not_publish_too_large_report(make_harness):
    harness = make_harness(body_limit=8 << 20)
    response = harness.publish(of_questions(97))
    assert response.status_code == 422
    assert "a device sends" in response.get_json()["detail"]


def large_sum(coordinates, nodes):
    """A secure sum of a choice, which has a number for each."""
    study = build_study("fruit", nodes=nodes)
    (question,) = study.document["questions"]
    return Study({**study.document, "questions": [{**question, "choices": {"count": coordinates}}]})


def test_body_size_matches_all_shares(network, tmp_path):
    network.publish()
    device = device_of(network, tmp_path / "device")
    device.answer(network.study, ANSWERS, invitation=INVITATION)
    assert [len(queued.body) for queued in device.ledger.queued()] == [body_size(network.study)]


def test_too_large_secure_sum_is_rejected_and_not_published(network, tmp_path, capsys):
    """Base64 adds a third to 8 bytes a number, so that 98,000 numbers in two questions fill a mebibyte."""
    nodes = [node.address for node in network.nodes]
    whole = large_sum(60_000, nodes).document
    for count, code in ((1, 0), (2, 3)):
        more = [{**whole["questions"][0], "id": f"q{place}"} for place in range(count)]
        study = Study({**whole, "questions": more})
        path = tmp_path / "study.json"
        path.write_text(json.dumps(study.document))
        assert main(["check", str(path)]) == code
        assert (str(body_size(study)) in capsys.readouterr().err) is (code == 3)
    node = network.nodes[0]
    problem = node.publish(study)
    assert problem.status_code == 422
    assert "a device sends" in problem.get_json()["detail"]


def test_node_with_too_large_sum_still_starts(network):
    """A sum published by an earlier release must not keep the node's other sums waiting."""
    nodes = [node.address for node in network.nodes]
    node = network.nodes[0]
    study = large_sum(60_000, nodes).document
    more = [{**study["questions"][0], "id": f"q{place}"} for place in range(2)]
    ready = replace(node.app.extensions["ldpkit"].node, body_limit=2 << 20)
    ready.check_size(Study({**study, "questions": more}))


def test_node_that_rejects_large_shares_names_questions(network):
    nodes = [node.address for node in network.nodes]
    node = network.nodes[0]
    limited = replace(node.app.extensions["ldpkit"].node, body_limit=1000)
    with raises(StudyError, "study.shares_too_large", "8048", "raise", field="questions"):
        limited.check_size(large_sum(1000, nodes))
