"""The aggregator closes a study at its nodes, whatever fails between it and them."""

import io
import json
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import partial
from threading import current_thread

import numpy as np
import pytest
from werkzeug.wrappers import Response

from collector.nodes import node as nodes
from collector.nodes.drawing import Drawing, Statement
from collector.nodes.transcript import Transcript
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError, LdpkitError, StatementError, TransferError
from ldpkit.cli import main
from schemas import Study
from summaries import Summary
from tests.kit.answers import problem
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, FEWEST, MOST, TOKEN, close_study, delete_at

pytestmark = pytest.mark.usefixtures("never_pause")


def close(network):
    return close_study(network.study)


def devices_in(closed):
    return closed.total.questions["ever"].n


@pytest.fixture
def answered(network):
    """Nodes that have the shares of as many devices as a sum needs."""
    network.publish("ever")
    network.answer(FEWEST)
    return network


def test_total_is_the_sum_plus_noise(network):
    network.publish()
    network.answer(MOST)
    total = close(network).total
    for name, mechanism in network.mechanisms.items():
        vector = mechanism.noisy_vector(mechanism.quantise(ANSWERS[name]), NotForRealAnswers(bytes))
        exact = np.frombuffer(vector, dtype="<i8").astype(float) * MOST
        part = total.questions[name]
        # A share's noise has sd 2**20, and it is rounded by at most half a unit.
        assert part.n == MOST
        assert (abs(part.values - exact) < 6 * 2**20 * np.sqrt(MOST)).all()
    assert Summary.from_json(total.to_json(), network.study).to_json() == total.to_json()


def test_too_few_devices_at_a_node_prevent_closing(network):
    """Closing is permanent: devices that answer later would lose their answers.

    Devices that reached only some nodes are left out.
    """
    network.publish("ever")
    network.answer(FEWEST - 1)
    network.answer(2, reach=2)
    with raises(InputError, "node.too_few_shares", network.nodes[2].url, str(FEWEST - 1)):
        close(network)
    network.answer(1)
    assert devices_in(close(network)) == FEWEST


def test_wrong_key_or_document_leaves_the_study_open(answered):
    with raises(TransferError, "server.refused", answered.nodes[2].url, "401"):
        close_study(answered.study, [TOKEN, TOKEN, "of-somebody-else"])
    with raises(InputError, "node.other_document", "summed"):
        close_study(Study({**answered.study.document, "title": "Another"}))
    answered.answer(1)
    assert devices_in(close(answered)) == FEWEST + 1


def test_an_aggregator_that_stops_anywhere_can_run_again(answered):
    """Each run comes one request further, the nodes start again, and the last runs give the same total."""
    node, stopped = answered.nodes[2], 0
    for requests in range(9):
        left = iter([None] * requests)
        node.trouble = lambda _environment, left=left: next(left, Response(status=403))
        try:
            close(answered)
        except TransferError:
            stopped += 1
        node.restart()
    assert stopped >= 4
    node.trouble = None
    first = close(answered)
    assert devices_in(first) == FEWEST
    for each in answered.nodes:
        assert delete_at(each) == FEWEST
        each.restart()
    again = close(answered)
    assert again.total.to_json() == first.total.to_json()
    assert again.transcript.to_json() == first.transcript.to_json()


def meddling(node, end, change):
    """A node that acts, but whose answer to one route is changed on its way."""

    def trouble(environment):
        if environment["REQUEST_METHOD"] != "POST" or not environment["PATH_INFO"].endswith(end):
            return None
        return change(Response.from_app(node.app, environment))

    return trouble


def edited(edit):
    """A change of an answer's document."""

    def change(answer):
        content = json.dumps(edit(json.loads(answer.get_data())))
        return Response(content, answer.status_code, content_type=answer.content_type)

    return change


def test_changed_answers_are_detected(network):
    def without_first_id(document):
        return {**document, "ids": b64encode(b64decode(document["ids"])[16:]).decode()}

    def with_statement(**fields):
        return lambda document: {**document, "statement": {**document.get("statement", {}), **fields}}

    network.publish("ever")
    network.answer(FEWEST + 1)
    node = network.nodes[1]
    for path, edit in (
        ("/commitment", without_first_id),
        ("/commitment", with_statement(set="0" * 64)),
        ("/nonce", lambda document: {**document, "nonce": "0" * 64}),
        ("/sum", with_statement(signature="")),
        ("/sum", lambda document: {**document, "total": "AAAAAAAAAAA="}),
        ("/sum", lambda document: {**document, "total": 7}),
    ):
        node.trouble = meddling(node, path, edited(edit))
        with pytest.raises((StatementError, TransferError)):
            close(network)
    node.trouble = None
    assert devices_in(close(network)) == FEWEST + 1


def test_node_that_signs_a_false_statement_is_detected(answered):
    """A node signs another set, another study or another node's place."""
    node = answered.nodes[1]

    def lied(lie, document):
        statement = replace(Statement.from_document(document["statement"]), signature=b"", **lie)
        return {**document, "statement": statement.signed(node.keys.signing).to_document()}

    for lie in ({"set": "1" * 64}, {"digest": "2" * 64}, {"node": 0}):
        node.trouble = meddling(node, "/sum", edited(partial(lied, lie)))
        with raises(StatementError, "statement.other_set", field="node 1"):
            close(answered)


@pytest.mark.parametrize(("end", "gone"), [("/nonce", True), ("/sum", False)])
def test_shares_deleted_before_their_sum_prevent_it(answered, end, gone):
    """Once a node has made its sum, it keeps the sum."""
    first, last = answered.nodes[0], answered.nodes[2]
    last.trouble = meddling(last, end, lambda _answer: Response(status=403))
    with pytest.raises(TransferError):
        close(answered)
    last.trouble = None
    delete_at(first)
    if gone:
        with raises(InputError, "node.too_few_shares", first.url):
            close(answered)
        assert problem(first.post("/commitment")) == (410, "shares-gone")
    else:
        assert devices_in(close(answered)) == FEWEST


def test_every_changed_character_of_a_transcript_is_detected(answered):
    closed = close(answered)
    text = closed.transcript.to_json()
    assert Transcript.from_json(text).total(answered.study).to_json() == closed.total.to_json()
    for place in range(0, len(text), 53):
        other = "1" if text[place] != "1" else "2"
        with pytest.raises(LdpkitError):
            Transcript.from_json(text[:place] + other + text[place + 1 :]).total(answered.study)


@pytest.fixture
def command(network, tmp_path, monkeypatch):
    """Runs `ldpkit node close` of the network's study; the exit code."""
    monkeypatch.setenv("LDPKIT_TOKEN", " ".join([TOKEN] * 3))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)

    def run(*, out="total.json", yes=("--yes",)):
        (tmp_path / "study.json").write_text(network.study.to_json())
        return main(["node", "close", "study.json", "--out", out, *yes])

    return run


def test_the_command_line_closes_and_verifies(answered, tmp_path, capsys, monkeypatch, command):
    assert command(yes=()) == 2
    said = capsys.readouterr().err
    assert "leave up to 48 hours after they were made" in said
    assert "needs --yes" in said
    command()
    total = Summary.from_json((tmp_path / "total.json").read_text(), answered.study)
    assert total.questions["ever"].n == FEWEST
    assert main(["node", "verify", "study.json", "total.transcript.json"]) == 0
    said = capsys.readouterr().out
    assert f"3 nodes signed the same set of {FEWEST} devices" in said
    assert f"held the shares of {FEWEST}, {FEWEST}, {FEWEST} devices" in said
    for tokens, code in ((f"{TOKEN} {TOKEN}", 2), (TOKEN, 2), ("", 2), (f"{TOKEN} {TOKEN} {TOKEN}", 0)):
        monkeypatch.setenv("LDPKIT_TOKEN", tokens)
        assert main(["node", "close", "study.json", "--out", "again.json", "--yes"]) == code


@pytest.mark.attack(19)
def test_node_that_omits_a_report_from_its_sum_is_detected(network, tmp_path, capsys, monkeypatch, command):
    """A node leaves one share out of its sum and signs it: the transcript records who signed what."""
    network.publish("fruit")
    network.answer(FEWEST)
    liar = network.nodes[1].app.extensions["ldpkit-node"]
    honest = type(liar)._shares

    def shares(node, *arguments):
        found = list(honest(node, *arguments))
        return iter(found[1:] if node is liar else found)

    monkeypatch.setattr(type(liar), "_shares", shares)
    assert command() == 3
    said = capsys.readouterr().err
    assert "questions.fruit" in said
    assert "total.transcript.json" in said
    assert not (tmp_path / "total.json").exists()
    kept = Transcript.from_json((tmp_path / "total.transcript.json").read_text())
    for index, node in enumerate(network.study.protocol.nodes):
        kept.sums[index].statement.check(node.signing_key)


def test_nodes_stay_open_if_total_cannot_be_written(answered, tmp_path, capsys, command):
    """Closing is permanent: a total that cannot be written would be lost."""
    (tmp_path / "folder.transcript.json").mkdir()
    assert command(out="folder") == 3
    assert "cannot write" in capsys.readouterr().err
    assert {node.post("/commitment").status_code for node in answered.nodes} == {409}


@pytest.mark.attack(15)
def test_long_checks_do_not_run_in_the_writer_thread(answered, monkeypatch):
    """Nodes commit to sets so large that a check would block the single writer for minutes."""
    seen = []

    def note(owner, name):
        do = getattr(owner, name)

        def noted(*arguments):
            seen.append((name, current_thread().name))
            return do(*arguments)

        monkeypatch.setattr(owner, name, noted)

    note(Drawing, "chosen")
    note(Drawing, "to_json")
    note(nodes, "share_ids")
    note(nodes, "set_digest")
    close(answered)
    assert {name for name, _ in seen} == {"chosen", "to_json", "share_ids", "set_digest"}
    assert "writer" not in {thread for _, thread in seen}
