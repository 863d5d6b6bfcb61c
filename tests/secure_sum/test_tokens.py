"""Nodes of a secure sum take one share for each token, and need no invitation then."""

import pytest

from collector.operator.inviting import write_invitations
from ldp_client.core.tokens import header_of
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from tests.ldp_client.issuers import channel_of, token_of
from tests.secure_sum.conftest import ANSWERS, TOKEN, build_study, close_study, shares_of


@pytest.fixture
def tokened(network):
    """A study that takes tokens, at all nodes."""
    plain = build_study("hours", nodes=[node.address for node in network.nodes], clients=6, tolerate=1)
    study = Study({**plain.document, "channel": channel_of("https://issuer.example")})
    network.study, network.mechanisms = study, mechanisms_of(study)
    for node in network.nodes:
        assert node.publish(study).status_code == 201
    return study


def put(node, message, token=None):
    headers = {"Authorization": header_of(token)} if token else {"LDPKit-Invitation": message.invitation}
    binary = "application/octet-stream"
    return node.app.test_client().put(message.path, data=message.body, content_type=binary, headers=headers)


def messages_of(study):
    return shares_of(study, {"hours": ANSWERS["hours"]}, "CODE")[1]


def kind_of(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def test_each_node_spends_the_token_in_its_own_database(network, tokened):
    messages, token = messages_of(tokened), token_of(tokened)
    for status in (201, 200):
        assert [put(node, one, token).status_code for node, one in zip(network.nodes, messages)] == [
            status
        ] * len(messages)
    others = messages_of(tokened)
    for node, message in zip(network.nodes, others):
        assert kind_of(put(node, message, token)) == (409, "token-spent")
        assert kind_of(put(node, message)) == (401, "token-needed")


def test_it_is_closed_and_summed_as_any(network, tokened):
    for _ in range(6):
        token = token_of(tokened)
        for node, message in zip(network.nodes, messages_of(tokened)):
            assert put(node, message, token).status_code == 201
    total = close_study(tokened, [TOKEN] * len(network.nodes)).total
    assert next(iter(total.questions.values())).n == 6


def test_nobody_is_invited_to_it(tokened, tmp_path):
    with pytest.raises(InputError, match="takes tokens"):
        write_invitations(tokened, 6, str(tmp_path / "invited"))
    assert not (tmp_path / "invited").exists()
