"""The issuer: one token per code, repeated for the same request; nothing links it to a report."""

import csv
import hashlib
import io
import json
import logging
import os
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers
from sqlalchemy import delete

from collector import create_app
from collector.issuer import app as issuer_app
from collector.issuer import issue, signing
from collector.models import TicketKeyRow
from ldp_client.core.tokens import short_id_of
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import InputError
from ldpkit import cli
from schemas import Study
from tests import studies
from tests.kit.answers import problem
from tests.kit.collectors import build_study, ensure_database
from tests.kit.errors import raises
from tests.kit.issuing import BY, SOUTH, Office, issuer_at
from tests.kit.operators import answering

URL = "http://127.0.0.1:1"


@pytest.fixture
def office(database_url):
    made = Office(database_url)
    yield made
    made.close()


@pytest.fixture
def small(tmp_path):
    made = Office(f"sqlite:///{tmp_path / 'issuer.sqlite3'}")
    yield made
    made.close()


def test_code_gets_one_token_and_the_same_token_again(office):
    asking = office.asking()
    answers = [office.ask(asking.body, office.codes[0]) for _ in range(3)]
    assert {(one.status_code, one.content_type) for one in answers} == {
        (200, "application/private-token-response")
    }
    assert len({one.data for one in answers}) == 1
    assert asking.token(answers[0].data, os.urandom)
    assert problem(office.ask(office.asking().body, office.codes[0])) == (409, "ticket-spent")
    with office.writing() as session:
        assert [(one.tickets, one.tokens) for one in issue.counts(session, "habits")] == [(1, 1), (1, 0)]
        assert issue.names_of(session, "habits") == [("Ada", True)]


def test_wrong_stratum_key_is_corrected_and_spends_nothing(office):
    response = office.ask(office.asking(1).body, office.codes[0])
    assert problem(response) == (409, "token-key-other")
    assert response.get_json(force=True)["key"] == 0
    assert response.get_json(force=True)["key_id"] == short_id_of(office.keys[0].spki)
    response = office.ask(office.asking(0).body, office.codes[1])
    assert response.get_json(force=True)["key"] == 1
    asking = office.asking(1)
    assert asking.token(office.ask(asking.body, office.codes[1]).data, os.urandom)


@pytest.mark.attack(12)
def test_servers_that_run_already_never_share_a_database(database_url, make_harness):
    """Collector and issuer were started on one empty database."""
    harness = make_harness(database=ensure_database(database_url))
    with harness.collector.database.write() as session:
        issue.add_key(session, "sleep", {}, BY)
    refused = harness.publish(build_study())
    assert (refused.status_code, "an issuer" in refused.get_json(force=True)["detail"]) == (409, True)
    with harness.collector.database.write() as session:
        session.execute(delete(TicketKeyRow))
    assert harness.publish(build_study()).status_code == 201
    with raises(InputError, "issuer.collectors_database"), harness.collector.database.write() as session:
        issue.add_key(session, "sleep", {}, BY)


def test_devices_need_no_key_and_operators_do(small):
    document = small.app.test_client().get("/openapi.json").get_json()
    routes = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert routes == {(operation.method, operation.path) for operation in issuer_app.OPERATIONS}
    for operation in issuer_app.OPERATIONS:
        path = operation.path.format(study_id="habits", name="ann")
        response = small.app.test_client().open(path, method=operation.method.upper())
        assert (response.status_code == 401) == operation.needs_key, operation.name
    open_to_all = {operation.name for operation in issuer_app.OPERATIONS if not operation.needs_key}
    assert open_to_all == {"giveToken", "listPublicKeys", "isAlive", "isReady", "readApi"}
    assert small.app.test_client().options("/v1/tokens").headers["Access-Control-Allow-Origin"] == "*"
    assert (
        "Access-Control-Allow-Origin" not in small.app.test_client().get("/v1/studies/habits/tickets").headers
    )


@pytest.mark.attack(15)
def test_malformed_token_requests_are_refused_and_spend_nothing(small):
    """Someone has the issuer sign what is no number below the modulus."""
    asking, modulus = small.asking(), small.keys[0].modulus
    body = asking.body
    for wrong in (b"", body[:-1], b"\0\1" + body[2:], body[:3] + bytes(256), body[:3] + modulus):
        assert problem(small.ask(wrong, small.codes[0])) == (422, "token-request-invalid")
    assert small.ask(b"x" * 100_000, small.codes[0]).status_code == 413
    assert problem(small.ask(body, small.codes[0], **{"Content-Type": "text/plain"}))[0] == 415
    assert small.ask(body, small.codes[0]).status_code == 200


@pytest.mark.attack(15)
def test_wrong_codes_keep_no_right_code_out(small):
    """Someone guesses codes, so that people with a code get no token."""
    body = small.asking().body
    kinds = {problem(small.ask(body, f"wrong-{number}")) for number in range(80)}
    assert kinds == {(401, "ticket-invalid")}
    assert small.ask(body, small.codes[0]).status_code == 200
    assert problem(small.ask(body)) == (401, "ticket-needed")


@pytest.mark.attack(15)
def test_repeated_request_costs_one_signature(small, monkeypatch):
    """Someone with one code repeats its request, so that the issuer has no time for others."""
    made, plain = [], signing.private_power
    monkeypatch.setattr(signing, "private_power", lambda *of_key: made.append(1) or plain(*of_key))
    body = small.asking().body
    assert len({small.ask(body, small.codes[0]).data for _ in range(20)}) == 1
    assert len(made) == 1


def test_log_contains_no_name_code_or_request(small, caplog):
    caplog.set_level(logging.DEBUG)
    body = small.asking().body
    small.ask(body, small.codes[0])
    small.ask(body, "no-such-code")
    said = "".join(record.getMessage() for record in caplog.records if record.name != "sqlalchemy")
    assert "did not make" in said
    for secret in ("Ada", small.codes[0], "no-such-code", body.hex()):
        assert secret not in said


def test_database_contains_no_codes_or_token_parts(small):
    asking = small.asking()
    answer = small.ask(asking.body, small.codes[0])
    token = asking.token(answer.data, os.urandom)
    path = small.url.removeprefix("sqlite:///")
    content = b"".join(Path(f"{path}{end}").read_bytes() for end in ("", "-wal"))
    assert hashlib.sha256(asking.body).digest() in content
    for part in (token[2:34], token[98:], small.codes[0].encode(), answer.data):
        assert part not in content
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT rowid FROM tickets")


@pytest.fixture(scope="module")
def key():
    return signing.load_key(signing.new_pair()[1])


class TestSigning:
    def test_signature_raised_to_public_exponent_is_the_request(self, key):
        n = key.public_numbers.n
        for asked in (1, 2, n - 1, key.p, 3 * key.q):
            signature = signing.sign(key, asked.to_bytes(256, "big"))
            assert pow(int.from_bytes(signature, "big"), 65537, n) == asked

    @pytest.mark.attack(3)
    def test_fault_in_a_key_part_raises_fault_error(self, key):
        """A flipped bit in one half of the operation reveals the factors of the modulus."""
        parts = ("p", "q", "d", "dmp1", "dmq1", "iqmp", "public_numbers")
        for part in ("dmp1", "dmq1", "iqmp", "p", "q"):
            numbers = {name: getattr(key, name) for name in parts}
            faulty = RSAPrivateNumbers(**{**numbers, part: numbers[part] ^ 4})
            with pytest.raises(signing.FaultError):
                signing.sign(faulty, (12345).to_bytes(256, "big"))

    def test_sign_blinds_the_request_before_exponentiation(self, key, monkeypatch):
        bases, plain = [], signing.private_power
        monkeypatch.setattr(
            signing, "private_power", lambda key, base: bases.append(base) or plain(key, base)
        )
        asked = (12345).to_bytes(256, "big")
        assert signing.sign(key, asked) == signing.sign(key, asked)
        assert len({12345, *bases}) == 3

    def test_signing_fault_is_500_and_the_request_can_be_retried(self, small, monkeypatch):
        asking = small.asking()

        def faulty(*_):
            raise signing.FaultError

        with monkeypatch.context() as context:
            context.setattr(issuer_app, "sign", faulty)
            assert small.ask(asking.body, small.codes[0]).status_code == 500
        assert asking.token(small.ask(asking.body, small.codes[0]).data, os.urandom)


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)

        def run(*words):
            with answering(app):
                code = cli.main([*words, "--collector", URL])
            return code, capsys.readouterr()

        assert cli.main(["init", "--as", "issuer"]) == 0
        app = issuer_at("sqlite:///ldpkit.sqlite3")
        run.client = app.test_client()
        yield run
        app.extensions["ldpkit"].close()

    def test_printed_tokens_block_fits_into_a_study(self, run):
        assert run("tickets", "key", "habits", "--public", "region=north")[0] == 0
        code, said = run("tickets", "key", "habits", "--public", "region=south")
        tokens = json.loads(said.out)["tickets"]
        region = {"id": "region", "choices": ["north", "south"], "source": "ticket"}
        stated = {"batches": {"hours": 24}, "tickets": tokens}
        study = Study(studies.document(studies.YES_NO, public=[region], channel=stated))
        assert (code, study.channel.tickets.issuer) == (0, URL)
        assert (
            json.loads(run("tickets", "key", "habits", "--public", "region=north")[1].out)["tickets"]
            == tokens
        )
        with closing(sqlite3.connect("ldpkit.sqlite3")) as connection:
            (spki,) = connection.execute("SELECT spki FROM ticket_keys WHERE place = 1").fetchone()
        assert tokens["keys"][1] == {"key": to_base64(spki), "public": SOUTH}
        assert oct(os.stat("ldpkit.sqlite3").st_mode)[-3:] == "600"

    def test_invite_writes_codes_by_name_and_stratum(self, run, tmp_path):
        run("tickets", "key", "habits", "--public", "region=north")
        run("tickets", "key", "habits", "--public", "region=south")
        people = tmp_path / "people.csv"
        people.write_text("name,region\nAda,north\n=Bob,south\n")
        assert run("invite", "habits", "--names", "people.csv", "--out", "codes.csv")[0] == 0
        rows = list(csv.DictReader(io.StringIO((tmp_path / "codes.csv").read_text())))
        assert [(row["name"], row["region"]) for row in rows] == [("Ada", "north"), ("=Bob", "south")]
        assert len({row["ticket"] for row in rows}) == 2
        assert (
            run("invite", "habits", "--count", "3", "--public", "region=south", "--out", "more.csv")[0] == 0
        )
        assert run("tickets", "status", "habits")[1].out.splitlines() == [
            "region=north: 0 of 1 ticket got a token",
            "region=south: 0 of 4 tickets got a token",
            "  =Bob: no token yet",
            "  Ada: no token yet",
        ]

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("tickets", "key", "habits", "--public", "region"), "FIELD=VALUE"),
            (("invite", "habits", "--count", "1", "--out", "c.csv"), "no key for everybody"),
            (("invite", "habits", "--names", "people.csv", "--out", "c.csv"), "line 3"),
            (("invite", "habits", "--names", "twice.csv", "--out", "c.csv"), "twice"),
            (("invite", "habits", "--names", "accent.csv", "--out", "c.csv"), "twice"),
        ],
    )
    def test_operator_mistakes_are_rejected_and_change_nothing(self, run, tmp_path, words, says):
        run("tickets", "key", "habits", "--public", "region=north")
        (tmp_path / "people.csv").write_text("name,region\nAda,north\n,north\n")
        (tmp_path / "twice.csv").write_text("name,region\nAda,north\nAda,north\n")
        (tmp_path / "accent.csv").write_text("name,region\nJos\u00e9,north\nJose\u0301,north\n")
        before = run("tickets", "status", "habits")[1].out
        code, said = run(*words)
        assert code != 0
        assert says in said.err
        assert run("tickets", "status", "habits")[1].out == before
        assert not (tmp_path / "c.csv").exists()

    @pytest.mark.attack(12)
    def test_collector_and_issuer_reject_each_others_database(self, run, tmp_path, make_harness):
        run("tickets", "key", "habits")
        make_harness("collector.sqlite3").publish(build_study())
        with raises(InputError, "issuer.collectors_database"):
            issuer_at(f"sqlite:///{tmp_path / 'collector.sqlite3'}")
        with raises(InputError, "database.is_issuers"):
            create_app({"database": f"sqlite:///{tmp_path / 'ldpkit.sqlite3'}"})


def test_short_key_ids_of_a_study_are_distinct(small, monkeypatch):
    with small.writing() as session:
        taken = issue.keys_of(session, "habits")[0]
        # Then as many as it takes: each has a taken name itself once in 128 times.
        made = chain([(taken.spki, taken.private)], iter(signing.new_pair, None))
        monkeypatch.setattr(issue, "new_pair", lambda: next(made))
        issue.add_key(session, "habits", {"region": "west"}, BY)
        ids = [short_id_of(row.spki) for row in issue.keys_of(session, "habits")]
    assert len(set(ids)) == 3
