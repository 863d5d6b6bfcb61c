"""The issuer: one token per code, repeated for the same request; nothing links it to a report."""

import csv
import hashlib
import json
import logging
import os
from contextlib import closing
from itertools import chain
from pathlib import Path
from unittest.mock import Mock

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers

from collector import create_app
from collector.issuer import app as issuer_app
from collector.issuer import issue, signing
from ldp_client.core.tokens import short_id_of
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.answers import problem
from tests.kit.collectors import build_study
from tests.kit.errors import raises
from tests.kit.issuing import BY, SOUTH, Office, issuer_at
from tests.kit.operators import URL, exit_code, lines


@pytest.fixture
def office(tmp_path):
    """An issuer with two strata and one person in each."""
    with closing(Office(f"sqlite:///{tmp_path / 'issuer.sqlite3'}")) as made:
        yield made


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


def test_any_page_may_ask_for_tokens_and_none_for_tickets(office):
    client, allowed = office.app.test_client(), "Access-Control-Allow-Origin"
    assert client.options("/v1/tokens").headers[allowed] == "*"
    assert allowed not in client.get("/v1/studies/habits/tickets").headers


@pytest.mark.attack(15)
def test_malformed_token_requests_are_refused_and_spend_nothing(office):
    """Someone has the issuer sign what is no number below the modulus."""
    asking, modulus = office.asking(), office.keys[0].modulus
    body = asking.body
    for wrong in (b"", body[:-1], b"\0\1" + body[2:], body[:3] + bytes(256), body[:3] + modulus):
        assert problem(office.ask(wrong, office.codes[0])) == (422, "token-request-invalid")
    assert office.ask(b"x" * 100_000, office.codes[0]).status_code == 413
    assert problem(office.ask(body, office.codes[0], **{"Content-Type": "text/plain"}))[0] == 415
    # Guesses keep no right code out.
    assert {problem(office.ask(body, f"wrong-{number}")) for number in range(80)} == {(401, "ticket-invalid")}
    assert problem(office.ask(body)) == (401, "ticket-needed")
    assert office.ask(body, office.codes[0]).status_code == 200


@pytest.mark.attack(15)
def test_repeated_request_costs_one_signature(office, monkeypatch):
    """Someone with one code repeats its request, so that the issuer has no time for others."""
    made, plain = [], signing.private_power
    monkeypatch.setattr(signing, "private_power", lambda *of_key: made.append(1) or plain(*of_key))
    body = office.asking().body
    assert len({office.ask(body, office.codes[0]).data for _ in range(20)}) == 1
    assert len(made) == 1


@pytest.mark.attack(12)
def test_log_and_database_contain_no_code_or_token_part(office, caplog):
    """Join what the issuer stores with what the collector sees of a token."""
    caplog.set_level(logging.DEBUG)
    asking = office.asking()
    answer = office.ask(asking.body, office.codes[0])
    office.ask(asking.body, "no-such-code")
    said = "".join(record.getMessage() for record in caplog.records if record.name != "sqlalchemy")
    assert "did not make" in said
    for secret in ("Ada", office.codes[0], "no-such-code", asking.body.hex()):
        assert secret not in said
    token = asking.token(answer.data, os.urandom)
    path = office.url.removeprefix("sqlite:///")
    content = b"".join(Path(f"{path}{end}").read_bytes() for end in ("", "-wal"))
    assert hashlib.sha256(asking.body).digest() in content
    for part in (token[2:34], token[98:], office.codes[0].encode(), answer.data):
        assert part not in content


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

    def test_signing_fault_is_500_and_the_request_can_be_retried(self, office, monkeypatch):
        asking = office.asking()
        with monkeypatch.context() as context:
            context.setattr(issuer_app, "sign", Mock(side_effect=signing.FaultError))
            assert office.ask(asking.body, office.codes[0]).status_code == 500
        assert asking.token(office.ask(asking.body, office.codes[0]).data, os.urandom)


def test_printed_tokens_block_fits_into_a_study(office, capsys):
    for region in ("north", "south"):
        # Again for a stratum that has its key: nothing changes.
        office.run("tickets", "key", "habits", "--public", f"region={region}")
    decode, printed = json.JSONDecoder().raw_decode, capsys.readouterr().out
    north, end = decode(printed)
    south, _ = decode(printed[end:].lstrip())
    assert north == south
    region = {"id": "region", "choices": ["north", "south"], "source": "ticket"}
    stated = {"batches": {"hours": 24}, "tickets": south["tickets"]}
    study = Study(studies.document(studies.YES_NO, public=[region], channel=stated))
    assert study.channel.tickets.issuer == URL
    assert south["tickets"]["keys"][1] == {"key": to_base64(office.keys[1].spki), "public": SOUTH}


def test_invite_writes_codes_by_name_and_stratum(office, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("name,region\nCy,north\n=Bob,south\n")
    assert len(set(office.invite("codes.csv").values())) == 2
    with open("codes.csv", newline="") as file:
        rows = [(row["name"], row["region"]) for row in csv.DictReader(file)]
    assert rows == [("Cy", "north"), ("=Bob", "south")]
    office.invite("more.csv", "--count", "3", "--public", "region=south", names=None)
    capsys.readouterr()
    office.run("tickets", "status", "habits")
    assert lines(capsys) == [
        "region=north: 0 of 2 tickets got a token",
        "region=south: 0 of 5 tickets got a token",
        *(f"  {name}: no token yet" for name in ("=Bob", "Ada", "Cy")),
    ]


PEOPLE = ("invite", "habits", "--out", "c.csv", "--names", "people.csv")


@pytest.mark.parametrize(
    ("words", "people", "says"),
    [
        (("tickets", "key", "habits", "--public", "region"), "", "FIELD=VALUE"),
        (("invite", "habits", "--count", "1", "--out", "c.csv"), "", "no key for everybody"),
        (PEOPLE, "name,region\nCy,north\n,north\n", "line 3"),
        (PEOPLE, "name,region\nJos\u00e9,north\nJose\u0301,north\n", "twice"),
        (PEOPLE, "name,name\nCarl,Dora\n", "must be CSV with a column 'name'"),
        (PEOPLE, "name\n\n", "names nobody"),
        # A spreadsheet adds a blank to a name.
        (PEOPLE, "name,region\nAda\u00a0,north\n", "has a ticket already"),
    ],
)
def test_operator_mistakes_are_rejected_and_change_nothing(
    office, tmp_path, monkeypatch, capsys, words, people, says
):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(people)
    before = office.counts()
    assert exit_code(office.app, *words) != 0
    assert says in capsys.readouterr().err
    assert office.counts() == before
    assert not Path("c.csv").exists()


@pytest.mark.attack(12)
def test_collector_and_issuer_reject_each_others_database(office, make_harness):
    """Start the one on the database of the other, or both on one that is empty."""
    harness = make_harness()
    harness.write(issue.add_key, "sleep", {}, BY)
    refused = harness.publish(build_study())
    assert (refused.status_code, "an issuer" in refused.get_json(force=True)["detail"]) == (409, True)
    harness.sql("DELETE FROM ticket_keys")
    assert harness.publish(build_study()).status_code == 201
    with raises(InputError, "issuer.collectors_database"):
        harness.write(issue.add_key, "sleep", {}, BY)
    with raises(InputError, "issuer.collectors_database"):
        issuer_at(f"sqlite:///{harness.path}")
    with raises(InputError, "database.is_issuers"):
        create_app({"database": office.url})


def test_short_key_ids_of_a_study_are_distinct(office, monkeypatch):
    with office.writing() as session:
        taken = issue.keys_of(session, "habits")[0]
        # Then as many as it takes: each has a taken name itself once in 128 times.
        made = chain([(taken.spki, taken.private)], iter(signing.new_pair, None))
        monkeypatch.setattr(issue, "new_pair", lambda: next(made))
        issue.add_key(session, "habits", {"region": "west"}, BY)
        ids = [short_id_of(row.spki) for row in issue.keys_of(session, "habits")]
    assert len(set(ids)) == 3
