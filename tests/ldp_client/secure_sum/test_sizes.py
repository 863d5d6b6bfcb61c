"""A secure sum whose shares are larger than a device sends is refused where it is checked and published."""

from dataclasses import replace

import pytest

from ldp_client import Device
from ldp_client.device.shares import body_size
from ldp_client.documents.errors import StudyError
from ldpkit.cli import main
from schemas import Study
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, CODE, tokened_study


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
    path = tmp_path / "study.json"
    path.write_text(study.to_json())
    assert main(["check", str(path)]) == 3
    assert str(body_size(study)) in capsys.readouterr().err
    node = network.nodes[0]
    assert node.publish(study).status_code == 422
    # A sum published by an earlier release must not keep the node's other sums waiting.
    ready = replace(node.app.extensions["ldpkit-node"], body_limit=2 << 20)
    ready.check_size(study)
    with raises(StudyError, "study.shares_too_large", "8048", field="questions"):
        replace(ready, body_limit=1000).check_size(of_choices(1000, 1, network.nodes))
