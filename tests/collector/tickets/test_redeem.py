"""A collector accepts exactly one report for each token."""

import os
import sqlite3
from contextlib import closing

import pytest

from collector.reports import intake
from collector.reports.writer import Upload
from collector.studies import close
from collector.tickets.codes import SPENT
from ldp_client.core.tokens import header_of, to_base64url
from ldp_client.documents.errors import InputError
from schemas import Study
from tests.kit.answers import problem
from tests.kit.errors import raises
from tests.ldp_client.issuers import REGION, Key, channel_of, keys, token_of

ISSUER = "https://issuer.example"


@pytest.fixture
def tokened(make_study):
    return make_study(channel=channel_of(ISSUER))


@pytest.fixture
def open_one(empty, tokened):
    assert empty.publish(tokened).status_code == 201
    return empty


def put(harness, report, token=None, header=None, fast=False, **headers):
    """fast: in the canonical form, which the shortcut takes once it knows the study."""
    path = f"/v1/studies/{report.study}/reports/{report.id}"
    header = header_of(token) if token else header
    along = {**({"Authorization": header} if header else {}), **headers}
    body = report.to_json() if fast else report.to_json().replace('"digest"', ' "digest"')
    return harness.app.test_client().put(path, data=body, content_type="application/json", headers=along)


def spent(harness):
    with closing(sqlite3.connect(harness.path)) as connection:
        tokens = connection.execute("SELECT count(*) FROM spent").fetchone()[0]
        stored = connection.execute("SELECT count(*) FROM reports WHERE payloads <> x''").fetchone()[0]
    return tokens, stored


@pytest.fixture(params=[False, True], ids=["plain", "fast"])
def way(request, open_one, tokened, make_report):
    """Whether requests take the shortcut; then the process knows the study."""
    if request.param:
        put(open_one, make_report(tokened))
        assert open_one.collector.rules.find_in_use("habits", tokened.digest.encode())
    return request.param


def test_a_token_lets_its_report_in_and_the_same_again(open_one, tokened, make_report, way):
    report, token = make_report(tokened), token_of(tokened)
    assert put(open_one, report, token, fast=way).status_code == 201
    again = put(open_one, report, token, fast=way)
    assert (again.status_code, again.get_json()["result"]) == (200, "duplicate")
    assert spent(open_one) == (1, 1)


def test_report_without_a_token_gets_a_challenge(open_one, tokened, make_report):
    response = put(open_one, make_report(tokened))
    assert problem(response) == (401, "ticket-needed")
    challenge, key = response.headers["WWW-Authenticate"].split(", ")
    assert challenge.startswith('PrivateToken challenge="')
    assert key == f'token-key="{to_base64url(keys()[0].spki)}"'
    assert response.get_json(force=True)["digest"] == tokened.digest
    assert spent(open_one) == (0, 0)


@pytest.mark.attack(4)
def test_spent_token_is_rejected_for_another_report(open_one, tokened, make_report, way):
    """Someone sends two reports with one token, or with two signatures of one nonce."""
    token = token_of(tokened)
    put(open_one, make_report(tokened), token, fast=way)
    assert problem(put(open_one, make_report(tokened), token, fast=way)) == (409, "ticket-spent")
    # The same nonce, signed again: another signature, the same token.
    other = token_of(tokened, nonce=token[2:34])
    assert other != token
    assert problem(put(open_one, make_report(tokened), other, fast=way)) == (409, "ticket-spent")
    assert spent(open_one) == (1, 1)


def test_a_refused_report_spends_nothing(open_one, tokened, make_report, way):
    report, second = make_report(tokened), token_of(tokened)
    put(open_one, report, token_of(tokened), fast=way)
    payloads = {**report.payloads, "ever": bytes([1 - report.payloads["ever"][0]])}
    changed = make_report(tokened, id=report.id, secret=report.secret, payloads=payloads)
    assert problem(put(open_one, changed, second, fast=way)) == (409, "report-conflict")
    broken = make_report(tokened, payloads={**report.payloads, "ever": b"\x07"})
    assert problem(put(open_one, broken, second, fast=way)) == (422, "report-invalid")
    open_one.close()
    assert problem(put(open_one, make_report(tokened), second, fast=way)) == (410, "study-closed")
    assert spent(open_one) == (1, 1)
    open_one.client.post("/v1/studies/habits/open", headers=open_one.operator)
    assert put(open_one, make_report(tokened), second, fast=way).status_code == 201


@pytest.mark.attack(4)
def test_tokens_of_others_are_refused(open_one, tokened, make_report, make_study, way):
    """Someone uses a token of another study, version or issuer, or one that another key signed."""
    another_study = make_study(id="other", channel=channel_of(ISSUER))
    another_version = make_study(2, channel=channel_of(ISSUER))
    another_issuer = make_study(channel=channel_of("https://other.example"))
    stranger = Key()
    wrong = [
        token_of(another_study),
        token_of(another_version),
        token_of(another_issuer),
        token_of(make_study(channel={**channel_of(ISSUER), "batches": {"hours": 1}})),
    ]
    for token in wrong:
        assert problem(put(open_one, make_report(tokened), token, fast=way)) == (401, "ticket-invalid")
    good = token_of(tokened)
    signed_by_another = good[:98] + stranger.sign(good[98:])
    for token in (signed_by_another, good[:66] + os.urandom(32) + good[98:]):
        assert problem(put(open_one, make_report(tokened), token, fast=way)) == (401, "ticket-invalid")
    assert spent(open_one) == (0, 0)


def test_a_token_with_any_byte_changed_is_refused(open_one, tokened, make_report):
    report, token = make_report(tokened), token_of(tokened)
    for at in [0, 1, 2, 33, 34, 65, 66, 97, 98, 200, 353]:
        changed = token[:at] + bytes([token[at] ^ 1]) + token[at + 1 :]
        assert put(open_one, report, changed, fast=True).status_code == 401
    n = keys()[0].n
    for number in (0, 1, n - 1, n, n + int.from_bytes(token[98:], "big")):
        forged = token[:98] + (number % (1 << 2048)).to_bytes(256, "big")
        assert put(open_one, report, forged, fast=True).status_code == 401
    assert spent(open_one) == (0, 0)
    assert put(open_one, report, token, fast=True).status_code == 201


JUNK = [
    "PrivateToken",
    'PrivateToken token="AAAA"',
    "Bearer token-of-the-operator",
    'PrivateToken token="' + "A" * 100_000 + '"',
    "\x80\xff",
    'PrivateToken token="' + "A" * 472 + '", token="' + "A" * 472 + '"',
]


def test_junk_headers_are_rejected(open_one, tokened, make_report, way):
    for header in JUNK:
        response = put(open_one, make_report(tokened), header=header, fast=way)
        assert problem(response) == (401, "ticket-invalid")
    assert spent(open_one) == (0, 0)


def test_batches_are_refused_whole(open_one, tokened, make_report):
    reports = [make_report(tokened).to_document() for _ in range(3)]
    responses = [open_one.post(reports)]
    body = '{"reports":[' + ",".join(make_report(tokened).to_json() for _ in range(3)) + "]}"
    path = "/v1/studies/habits/reports"
    responses.append(open_one.client.post(path, data=body, content_type="application/json"))
    for response in responses:
        assert problem(response) == (401, "ticket-needed")
        assert "one by one" in response.get_json(force=True)["detail"]
    assert spent(open_one) == (0, 0)


def test_a_withdrawn_report_leaves_its_token_spent(open_one, tokened, make_report, way):
    report, token = make_report(tokened), token_of(tokened)
    put(open_one, report, token, fast=way)
    assert open_one.withdraw(report.id, secret=report.secret).status_code == 200
    assert spent(open_one) == (1, 0)
    assert problem(put(open_one, make_report(tokened), token, fast=way)) == (409, "ticket-spent")
    assert problem(put(open_one, report, token, fast=way)) == (410, "report-withdrawn")


class TestStrata:
    @pytest.fixture
    def strata(self, make_study, empty):
        north, south = {"region": "north"}, {"region": "south"}
        study = make_study(channel=channel_of(ISSUER, north, south), public=[REGION])
        assert empty.publish(study).status_code == 201
        return study

    def test_stratum_follows_from_the_tokens_key(self, empty, strata, make_report):
        reports = [make_report(strata) for _ in range(3)]
        for report, place in zip(reports, (0, 1, 1)):
            for result in (201, 200):
                assert put(empty, report, token_of(strata, place)).status_code == result
        exported = {one.id: one.public["region"] for one in empty.exported()}
        assert exported == dict(zip([one.id for one in reports], ["north", "south", "south"]))


def upload(study, report, token):
    rules = intake.Rules.of(study)
    packed, nonce = intake.checked(rules, rules.pack(report), None, header_of(token), None)
    return Upload("habits", [packed], nonce)


def test_one_commit_spends_each_token_once(make_harness, database_url, tokened, make_report):
    harness = make_harness(database=database_url)
    harness.publish(tokened)
    one, other, third = (make_report(tokened) for _ in range(3))
    token, second = token_of(tokened), token_of(tokened)
    works = [
        upload(tokened, one, token),
        upload(tokened, other, token),
        upload(tokened, one, token),
        upload(tokened, third, second),
    ]
    outcomes = [outcome for (outcome,) in harness.collector.writer._store(works)]
    assert outcomes[0] is intake.Receipt.STORED
    assert outcomes[1].kind.name == "ticket-spent"
    assert outcomes[2] is intake.Receipt.DUPLICATE
    assert outcomes[3] is intake.Receipt.STORED
    with harness.collector.database.read() as session:
        assert len(session.execute(SPENT.select()).all()) == 2
    assert put(harness, other, token_of(tokened)).status_code == 201


@pytest.mark.usefixtures("open_one")
def test_study_cannot_use_tokens_and_tickets(empty, make_study):
    from collector.tickets.codes import make_tickets

    with empty.collector.database.write() as session, raises(InputError, "ticket.issuer_gives_them"):
        make_tickets(session, "habits", 3, b"secret")
    plain = make_study(id="invited")
    empty.publish(plain)
    with empty.collector.database.write() as session:
        make_tickets(session, "invited", 3, b"secret")
    response = empty.publish(make_study(2, id="invited", channel=channel_of(ISSUER)))
    assert problem(response) == (409, "study-conflict")
    assert "cannot name an issuer" in response.get_json(force=True)["detail"]


@pytest.mark.usefixtures("open_one")
def test_study_with_tokens_cannot_change_to_direct_tickets(empty, make_study):
    """Revoking direct tickets would forget the spent tokens, which would then let second reports in."""
    response = empty.publish(make_study(2))
    assert problem(response) == (409, "study-conflict")
    assert "blind tickets" in response.get_json(force=True)["detail"]


def copied(first, new_id="wave-2", **changes):
    """What an author makes who copies the first study's document."""
    return Study({**first.document, "id": new_id, **changes})


def refused(response):
    assert problem(response) == (422, "study-invalid")
    said = response.get_json()
    return said["field"] == "channel.tickets.keys" and "have a token key of study habits" in said["detail"]


def test_token_keys_of_another_study_are_refused(open_one, tokened):
    """Its tokens would be spent already, and no report would leave; also once the first study is closed."""
    tokens = {"issuer": ISSUER, "keys": [{"key": Key().text}]}
    own = {"batches": {"hours": 24}, "tickets": tokens}
    assert refused(open_one.publish(copied(tokened)))
    assert open_one.publish(copied(tokened, "wave-3", channel=own)).status_code == 201
    assert open_one.publish(copied(tokened, "habits", version=2)).status_code == 201
    # The first version's key stays taken.
    other = {**own, "tickets": {"issuer": ISSUER, "keys": [{"key": Key().text}]}}
    assert open_one.publish(copied(tokened, "habits", version=3, channel=other)).status_code == 201
    assert refused(open_one.publish(copied(tokened)))
    with open_one.collector.database.write() as session:
        close(session, "habits", deleted=True)
    assert refused(open_one.publish(copied(tokened)))


def test_study_with_stratum_without_key_is_not_published(empty, make_study):
    """Its people would pay, and no report of theirs could leave."""
    keys = channel_of(ISSUER, {"region": "north"})
    response = empty.publish(make_study(channel=keys, public=[REGION]))
    assert problem(response) == (422, "study-invalid")
    assert "region=south (1 of 2 values" in response.get_json()["detail"]


@pytest.mark.attack(12)
def test_collector_is_no_issuer_of_its_own_study(empty, make_study):
    """The operator of both could join the person who got a token and the report that came with it."""
    for issuer, status in (("https://localhost/tickets", 422), ("https://localhost:443", 422), (ISSUER, 201)):
        response = empty.publish(make_study(channel=channel_of(issuer)))
        assert response.status_code == status
        if status == 422:
            assert response.get_json(force=True)["field"] == "channel.tickets.issuer"
