"""The aggregator, and everything that can go wrong between it and the nodes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from werkzeug.wrappers import Response

from collector.secure_sum.statements import set_digest
from collector.secure_sum.transcript import Transcript
from collector.storage.keys import Role, add_key
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.device import http
from ldp_client.documents.errors import InputError, LdpkitError, StatementError, SummaryError, TransferError
from schemas import Study
from summaries import Summary
from tests.kit.errors import raises
from tests.secure_sum.conftest import ANSWERS, TOKEN, close_study
from tests.statistics import seed_the_system

TOKENS = [TOKEN]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(http, "FIRST_DELAY_SECONDS", 0.01)


def close(network):
    return close_study(network.study, TOKENS)


def exact_sums(network, devices):
    """Return the sum of statistics of so many equal devices, without any noise."""
    sums = {}
    for name, mechanism in network.mechanisms.items():
        vector = mechanism.noisy_vector(mechanism.quantise(ANSWERS[name]), NotForRealAnswers(bytes))
        words = np.frombuffer(vector, dtype="<i8")
        sums[name] = words.astype(float) * devices
    return sums


def test_total_is_the_sum_plus_noise(network, monkeypatch):
    seed_the_system(monkeypatch, "noise")
    network.publish()
    network.answer(18)
    total = close(network).total
    for name, expected in exact_sums(network, 18).items():
        part = total.questions[name]
        # 18 shares of sd 2**20, and at most half a unit of rounding each.
        assert part.n == 18
        assert (abs(part.values - expected) < 6 * 2**20 * np.sqrt(18)).all()


def test_the_total_reads_back_as_a_summary(network):
    network.publish()
    network.answer(15)
    total = close(network).total
    assert Summary.from_json(total.to_json(), network.study).to_json() == total.to_json()


def test_devices_that_reached_only_some_nodes_are_left_out(network):
    network.publish("ever")
    network.answer(16)
    network.answer(2, reach=1)
    network.answer(1, reach=2)
    closed = close(network)
    assert closed.total.questions["ever"].n == 16


def test_too_few_devices_at_a_node_prevent_closing(network):
    """Closing is permanent: devices that answer later would lose their answers."""
    network.publish("ever")
    network.answer(14)
    network.answer(3, reach=2)
    with raises(InputError, "node.too_few_shares", network.nodes[2].url, "14"):
        close(network)
    network.answer(1)
    assert close(network).total.questions["ever"].n == 15


def test_too_few_devices_at_every_node_make_no_sum_and_bind_no_node(network):
    """Each node has enough shares, but one share is from a device that reached no other node."""
    network.publish("ever")
    network.answer(14)
    for index, node in enumerate(network.nodes):
        assert node.put(network.messages()[index]).status_code == 201
    with raises(InputError, "node.too_few_devices", "14", "15"):
        close(network)
    for node in network.nodes:
        assert (
            node.post("/sum", json={"set": "0" * 64}).get_json()["detail"].endswith("not confirmed this set")
        )


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_wrong_key_for_any_node_prevents_closing(network, wrong):
    network.publish("ever")
    network.answer(15)
    tokens = [TOKEN] * 3
    tokens[wrong] = "of-somebody-else"
    with raises(TransferError, "server.refused", network.nodes[wrong].url, "401"):
        close_study(network.study, tokens)
    network.answer(1)
    assert close(network).total.questions["ever"].n == 16


def test_key_without_sum_rights_prevents_closing(network):
    network.publish("ever")
    network.answer(15)
    with network.nodes[2].app.extensions["ldpkit"].database.write() as session:
        key = add_key(session, "author", Role.PUBLISH)
    with raises(TransferError, "server.refused", "403", "publish", "operate"):
        close_study(network.study, [TOKEN, TOKEN, key])
    network.answer(1)
    assert close(network).total.questions["ever"].n == 16


def test_invalid_count_prevents_closing(network):
    network.publish("ever")
    network.answer(15)
    network.nodes[1].trouble = altered(network.nodes[1], "/count", set_field("shares", value="15"))
    with raises(TransferError, "node.wrong_statement"):
        close(network)
    network.answer(1)
    network.nodes[1].trouble = None
    assert close(network).total.questions["ever"].n == 16


def test_another_document_prevents_closing(network):
    """Closing is permanent: it must not happen by mistake."""
    network.publish("ever")
    network.answer(15)
    with raises(InputError, "node.other_document", "summed"):
        close_study(Study({**network.study.document, "title": "Another"}), TOKENS)
    network.answer(1)
    assert close(network).total.questions["ever"].n == 16


def test_more_devices_than_clients_are_cut_to_them(network):
    network.publish("ever", devices=16, max_faulty=2)
    network.answer(18)
    assert close(network).total.questions["ever"].n == 16


def test_closing_again_gives_the_same_total(network):
    network.publish("ever")
    network.answer(15)
    first = close(network)
    for node in network.nodes:
        node.stop()
        node.start()
    again = close(network)
    assert again.total.to_json() == first.total.to_json()
    assert again.transcript.to_json() == first.transcript.to_json()


def failing_after(requests, status):
    """A node that answers so many requests of the aggregator, and then this status alone."""
    answered = count()

    def trouble(_environment):
        return None if next(answered) < requests else Response(status=status)

    return trouble


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 2])
@pytest.mark.parametrize("requests", range(9))
def test_an_aggregator_that_stops_anywhere_can_run_again(network, node, requests):
    """Whatever was closed, confirmed or summed before the crash, the rerun gives one same total."""
    network.publish("ever")
    network.answer(15)
    network.nodes[node].trouble = failing_after(requests, 403)
    with raises(TransferError, "server.refused", "403"):
        close(network)
    network.nodes[node].trouble = None
    first, second = close(network), close(network)
    assert first.total.to_json() == second.total.to_json()


def test_proxy_body_limit_is_named_in_the_error(network):
    network.publish("ever")
    network.answer(15)
    node = network.nodes[1]
    page = "<html><head><title>413 Request Entity Too Large</title></head></html>"
    node.trouble = lambda environment: (
        Response(page, 413) if environment["PATH_INFO"].endswith("/set") else None
    )
    with raises(TransferError, "server.refused", "413", "client_max_body_size"):
        close(network)
    node.trouble = None
    assert close(network).total.questions["ever"].n == 15


def test_close_retries_after_temporary_errors(network):
    network.publish("ever")
    network.answer(15)
    calls = count()
    network.nodes[1].trouble = lambda _environment: Response(status=503) if next(calls) % 2 else None
    assert close(network).total.questions["ever"].n == 15


def test_a_lost_answer_changes_nothing(network):
    """The node acts, its answer is lost, the aggregator asks again."""
    network.publish("ever")
    network.answer(15)
    node = network.nodes[1]
    lost = set()

    def trouble(environment):
        path = environment["PATH_INFO"]
        if environment["REQUEST_METHOD"] == "POST" and path not in lost:
            lost.add(path)
            Response.from_app(node.app, environment).get_data()
            return Response(status=502)
        return None

    node.trouble = trouble
    assert close(network).total.questions["ever"].n == 15
    assert len(lost) == 5


def altered(node, path_end, change):
    """A node whose JSON answer to one route is changed on its way."""

    def trouble(environment):
        if not environment["PATH_INFO"].endswith(path_end):
            return None
        document = Response.from_app(node.app, environment).get_json(force=True)
        change(document)
        return Response(json.dumps(document), content_type="application/json")

    return trouble


def set_field(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/set", set_field("set", value="0" * 64)),
        ("/set", set_field("devices", value=19)),
        ("/set", set_field("signature", value="")),
        ("/set", set_field("node", value=0)),
        ("/sum", set_field("statement", "kind", value="set")),
        ("/sum", set_field("statement", "total", value="0" * 64)),
        ("/sum", set_field("total", value="AAAAAAAAAAA=")),
        ("/sum", set_field("total", value="AAAA")),
        ("/sum", set_field("total", value=7)),
        ("/sum", set_field("total", value="é")),
    ],
)
def test_changed_answer_is_detected(network, path, change):
    network.publish("ever")
    network.answer(15)
    node = network.nodes[1]
    node.trouble = altered(node, path, change)
    with pytest.raises((StatementError, TransferError)):
        close(network)
    node.trouble = None
    assert close(network).total.questions["ever"].n == 15


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff", b'{"a":1,"a":2}'])
def test_malformed_answer_is_detected(network, body):
    network.publish("ever")
    network.answer(15)
    answer = Response(body, content_type="application/json")
    network.nodes[1].trouble = lambda environment: (
        answer if environment["PATH_INFO"].endswith("/set") else None
    )
    with raises(TransferError, "node.wrong_answer"):
        close(network)


def test_signed_random_sum_is_detected_by_its_range(network, monkeypatch):
    """A wrong sum that the node itself signs: words at random are no possible total."""
    network.publish("fruit")
    network.answer(15)
    liar = network.nodes[1].app.extensions["ldpkit"].node
    monkeypatch.setattr(type(liar), "_shares", lambda *_: iter(()))
    monkeypatch.setattr(
        "collector.secure_sum.node.add_shares", lambda opener, _shares: os.urandom(opener.size)
    )
    with raises(SummaryError, "summary.sum_impossible", field="questions.fruit"):
        close(network)


def test_list_that_differs_from_its_commitment_is_detected(network):
    network.publish("fruit")
    network.answer(15)
    network.answer(1, reach=2)
    full = b""
    node = network.nodes[2]

    def trouble(environment):
        nonlocal full
        if environment["PATH_INFO"].endswith("/shares"):
            full = network.nodes[0].get("/shares").data
            return Response(full, content_type="application/octet-stream")
        return None

    node.trouble = trouble
    with raises(StatementError, "statement.ids_differ", "2"):
        close(network)
    node.trouble = None
    assert close(network).total.questions["fruit"].n == 15


def test_invalid_share_makes_an_impossible_sum(network):
    """One seed does not match the masked words: no one can tell which device sent it."""
    network.publish("fruit")
    network.answer(15)
    one, other = network.messages(), network.messages()
    mixed = network.nodes[0].put(one[0]), network.nodes[1].put(one[1])
    assert [answer.status_code for answer in mixed] == [201, 201]
    sealed = resealed(network, other[2], one[2])
    assert network.nodes[2].put(sealed).status_code == 201
    with raises(SummaryError, "summary.sum_impossible", field="questions.fruit"):
        close(network)


def resealed(network, source, target):
    """Seal the share of one report again for another."""
    from collector.secure_sum.summing import Opener
    from ldp_client.secure_sum.messages import Message, context, seal

    node = network.nodes[2]
    share = Opener.of(network.study, 2, node.keys.sealing).open(source.path[-32:], source.body)
    info = context(network.study.digest, target.path[-32:], 2)
    key = network.study.protocol.nodes[2].sealing_key
    return Message(target.node, target.path, seal(key, info, share), target.invitation)


def test_node_sums_only_the_set_it_drew(network):
    """An aggregator that leaves out a device, for one node or for all, gets no sum."""
    network.publish("fruit")
    network.answer(17)
    drawing = network.draw()
    less = replace(drawing, held=dict(list(drawing.held.items())[1:]))
    for node in network.nodes:
        assert node.post("/set", json=less.to_document()).status_code == 422
        assert node.post("/sum", json={"set": set_digest(list(less.held))}).status_code == 409
        assert node.post("/set", json=drawing.to_document()).status_code == 200


class TestTranscript:
    @pytest.fixture
    def closed(self, network):
        network.publish("ever")
        network.answer(15)
        return close(network)

    def test_transcript_reads_back_and_gives_the_same_total(self, network, closed):
        again = Transcript.from_json(closed.transcript.to_json())
        assert again.total(network.study).to_json() == closed.total.to_json()

    @pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 53])
    def test_every_changed_character_is_detected(self, network, closed, step):
        text = closed.transcript.to_json()
        for place in range(0, len(text), step):
            other = "1" if text[place] != "1" else "2"
            with pytest.raises(LdpkitError):
                Transcript.from_json(text[:place] + other + text[place + 1 :]).total(network.study)


def test_the_command_line_closes_and_verifies(network, tmp_path, capsys, monkeypatch):
    from ldpkit.cli import main

    network.publish("ever")
    network.answer(15)
    study, total = tmp_path / "study.json", tmp_path / "total.json"
    study.write_text(network.study.to_json())
    monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
    assert main(["node", "close", str(study), "--out", str(total)]) == 3
    assert "each would see it" in capsys.readouterr().err
    assert main(["node", "close", str(study), "--same-token", "--out", str(total)]) == 0
    assert Summary.from_json(total.read_text(), network.study).questions["ever"].n == 15
    assert main(["node", "verify", str(study), str(tmp_path / "total.transcript.json")]) == 0
    assert "3 nodes signed the same set of 15 devices" in capsys.readouterr().out
    monkeypatch.setenv("LDPKIT_TOKEN", "")
    assert main(["node", "close", str(study), "--out", str(total)]) == 2
    assert "LDPKIT_TOKEN" in capsys.readouterr().err


def close_by_command(network, tmp_path):
    from ldpkit.cli import main

    study, total = tmp_path / "study.json", tmp_path / "total.json"
    study.write_text(network.study.to_json())
    return main(["node", "close", str(study), "--same-token", "--out", str(total)])


def test_transcript_is_written_if_the_total_is_impossible(network, tmp_path, capsys, monkeypatch):
    """It records who signed what: the only evidence if a node was wrong."""
    network.publish("fruit")
    network.answer(15)
    monkeypatch.setattr(
        "collector.secure_sum.node.add_shares", lambda opener, _shares: os.urandom(opener.size)
    )
    monkeypatch.setenv("LDPKIT_TOKEN", TOKEN)
    assert close_by_command(network, tmp_path) == 3
    said = capsys.readouterr().err
    assert "is no possible sum" in said
    assert "total.transcript.json" in said
    assert not (tmp_path / "total.json").exists()
    kept = Transcript.from_json((tmp_path / "total.transcript.json").read_text())
    for index, node in enumerate(network.study.protocol.nodes):
        kept.sums[index].statement.check(node.signing_key)


def test_close_reads_each_nodes_token_from_the_environment(network, tmp_path, capsys, monkeypatch):
    """Arguments can be read by every user of the machine."""
    network.publish("ever")
    network.answer(15)
    monkeypatch.setenv("LDPKIT_TOKEN", f"{TOKEN} {TOKEN} {TOKEN}")
    assert close_by_command(network, tmp_path) == 0
    for tokens, code, said in ((f"{TOKEN} {TOKEN}", 3, "give one token"), ("geheimés", 2, "printable ASCII")):
        monkeypatch.setenv("LDPKIT_TOKEN", tokens)
        assert close_by_command(network, tmp_path) == code
        assert said in capsys.readouterr().err
