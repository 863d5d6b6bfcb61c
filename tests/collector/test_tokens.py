"""A collector accepts exactly one report for each token.

Attack: Use a token twice, for another study, version or stratum, or without a report; replay another's, or
a junk header: the collector: one signature, one challenge made of the study's digest, one nonce, spent in
the transaction that stores the report.

Attack: (by mistake) open a study with tokens to invitations, so that a list joins people and reports again:
the collector: makes none for it, and publishes no study with tokens and invitations.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from collector.reports import intake
from collector.reports.writer import Upload
from collector.storage.database import Database
from collector.storage.spent_tokens import SPENT_TOKENS
from ldp_client.core.tokens import header_of, to_base64url, token_in
from ldp_client.documents.errors import InputError
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
    """fast: in the canonical form, which the short cut takes once it knows the study."""
    path = f"/v1/studies/{report.study}/reports/{report.id}"
    header = header_of(token) if token else header
    along = {**({"Authorization": header} if header else {}), **headers}
    body = report.to_json() if fast else report.to_json().replace('"digest"', ' "digest"')
    return harness.app.test_client().put(path, data=body, content_type="application/json", headers=along)


def kind_of(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def spent(harness):
    with closing(sqlite3.connect(harness.path)) as connection:
        tokens = connection.execute("SELECT count(*) FROM spent_tokens").fetchone()[0]
        stored = connection.execute("SELECT count(*) FROM reports WHERE payloads <> x''").fetchone()[0]
    return tokens, stored


@pytest.fixture(params=[False, True], ids=["plain", "fast"])
def way(request, open_one, tokened, make_report):
    """Whether requests take the short cut; then the process knows the study."""
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


def test_report_without_a_token_gets_a_challenge(open_one, tokened, make_report, way):
    response = put(open_one, make_report(tokened), fast=way)
    assert kind_of(response) == (401, "token-needed")
    challenge, key = response.headers["WWW-Authenticate"].split(", ")
    assert challenge.startswith('PrivateToken challenge="')
    assert key == f'token-key="{to_base64url(keys()[0].spki)}"'
    assert response.get_json(force=True)["digest"] == tokened.digest
    assert spent(open_one) == (0, 0)


def test_spent_token_is_rejected_for_another_report(open_one, tokened, make_report, way):
    token = token_of(tokened)
    put(open_one, make_report(tokened), token, fast=way)
    assert kind_of(put(open_one, make_report(tokened), token, fast=way)) == (409, "token-spent")
    # The same nonce, signed again: another signature, the same token.
    other = token_of(tokened, nonce=token[2:34])
    assert other != token
    assert kind_of(put(open_one, make_report(tokened), other, fast=way)) == (409, "token-spent")
    assert spent(open_one) == (1, 1)


def test_a_refused_report_spends_nothing(open_one, tokened, make_report, way):
    report, second = make_report(tokened), token_of(tokened)
    put(open_one, report, token_of(tokened), fast=way)
    payloads = {**report.payloads, "ever": bytes([1 - report.payloads["ever"][0]])}
    changed = make_report(tokened, id=report.id, secret=report.secret, payloads=payloads)
    assert kind_of(put(open_one, changed, second, fast=way)) == (409, "report-conflict")
    broken = make_report(tokened, payloads={**report.payloads, "ever": b"\x07"})
    assert kind_of(put(open_one, broken, second, fast=way)) == (422, "report-invalid")
    open_one.close()
    assert kind_of(put(open_one, make_report(tokened), second, fast=way)) == (410, "study-closed")
    assert spent(open_one) == (1, 1)
    open_one.client.post("/v1/studies/habits/open", headers=open_one.operator)
    assert put(open_one, make_report(tokened), second, fast=way).status_code == 201


def test_tokens_of_others_are_refused(open_one, tokened, make_report, make_study, way):
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
        assert kind_of(put(open_one, make_report(tokened), token, fast=way)) == (401, "token-invalid")
    good = token_of(tokened)
    signed_by_another = good[:98] + stranger.sign(good[98:])
    for token in (signed_by_another, good[:66] + os.urandom(32) + good[98:]):
        assert kind_of(put(open_one, make_report(tokened), token, fast=way)) == (401, "token-invalid")
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
    "PrivateToken token=",
    'PrivateToken token="AAAA"',
    "Bearer token-of-the-operator",
    "Basic dXNlcjpwYXNz",
    'PrivateToken token="' + "A" * 100_000 + '"',
    'PrivateToken challenge="AAAA", token-key="AAAA"',
    "\x80\xff",
    'PrivateToken token="' + "A" * 472 + '", token="' + "A" * 472 + '"',
]


@pytest.mark.parametrize("header", JUNK, ids=range(len(JUNK)))
def test_junk_headers_are_rejected(open_one, tokened, make_report, way, header):
    response = put(open_one, make_report(tokened), header=header, fast=way)
    assert kind_of(response) == (401, "token-invalid")
    assert spent(open_one) == (0, 0)


def test_invitations_tokens_and_keys_are_not_interchangeable(open_one, tokened, make_report, way):
    response = put(open_one, make_report(tokened), fast=way, **{"LDPKit-Invitation": "CODE"})
    assert kind_of(response) == (401, "token-needed")
    header = header_of(token_of(tokened))
    exported = open_one.client.get("/v1/studies/habits/export", headers={"Authorization": header})
    assert exported.status_code == 401


@pytest.mark.usefixtures("way")
def test_batches_are_refused_whole(open_one, tokened, make_report):
    reports = [make_report(tokened).to_document() for _ in range(3)]
    responses = [open_one.post(reports)]
    body = '{"reports":[' + ",".join(make_report(tokened).to_json() for _ in range(3)) + "]}"
    path = "/v1/studies/habits/reports"
    responses.append(open_one.client.post(path, data=body, content_type="application/json"))
    for response in responses:
        assert kind_of(response) == (401, "token-needed")
        assert "one by one" in response.get_json(force=True)["detail"]
    assert spent(open_one) == (0, 0)


def test_a_withdrawn_report_leaves_its_token_spent(open_one, tokened, make_report, way):
    report, token = make_report(tokened), token_of(tokened)
    put(open_one, report, token, fast=way)
    assert open_one.withdraw(report.id, secret=report.secret).status_code == 200
    assert spent(open_one) == (1, 0)
    assert kind_of(put(open_one, make_report(tokened), token, fast=way)) == (409, "token-spent")
    assert kind_of(put(open_one, report, token, fast=way)) == (410, "report-withdrawn")


def test_a_study_that_is_deleted_forgets_its_tokens(open_one, tokened, make_report):
    from tests.kit.deleting import delete_reports, delete_study

    put(open_one, make_report(tokened), token_of(tokened))
    database = Database(str(open_one.collector.database.url), 1)
    delete_reports(database, "habits")
    assert spent(open_one) == (1, 0)
    delete_study(database, "habits")
    assert spent(open_one) == (0, 0)
    database.engine.dispose()


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

    def test_report_with_another_stratum_is_rejected_and_spends_no_token(self, empty, strata, make_report):
        report, token = make_report(strata, public={"region": "north"}), token_of(strata, 1)
        assert kind_of(put(empty, report, token)) == (401, "token-invalid")
        assert put(empty, make_report(strata), token).status_code == 201

    def test_key_of_one_stratum_signs_for_no_other(self, empty, strata, make_report):
        token = token_of(strata, 0)
        other = token_of(strata, 1)
        mixed = token[:66] + other[66:98] + token[98:]
        assert kind_of(put(empty, make_report(strata), mixed)) == (401, "token-invalid")


def upload(study, report, token):
    rules = intake.Rules.of(study)
    packed, nonce = intake.with_token(rules, rules.pack(report), header_of(token))
    return Upload("habits", [packed], None, nonce)


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
    assert outcomes[1].kind.name == "token-spent"
    assert outcomes[2] is intake.Receipt.DUPLICATE
    assert outcomes[3] is intake.Receipt.STORED
    with harness.collector.database.read() as session:
        assert len(session.execute(SPENT_TOKENS.select()).all()) == 2
    assert put(harness, other, token_of(tokened)).status_code == 201


@pytest.mark.usefixtures("open_one")
def test_study_cannot_use_tokens_and_invitations(empty, make_study):
    from collector.operator.inviting import invite

    with empty.collector.database.write() as session, raises(InputError, "ticket.issuer_gives_them"):
        invite(session, "habits", 3, b"secret")
    plain = make_study(id="invited")
    empty.publish(plain)
    with empty.collector.database.write() as session:
        invite(session, "invited", 3, b"secret")
    response = empty.publish(make_study(2, id="invited", channel=channel_of(ISSUER)))
    assert kind_of(response) == (409, "study-conflict")
    assert "cannot use tokens too" in response.get_json(force=True)["detail"]


def test_earlier_versions_keep_their_own_tokens(open_one, tokened, make_study, make_report):
    later = make_study(2, channel=channel_of(ISSUER))
    assert open_one.publish(later).status_code == 201
    assert put(open_one, make_report(tokened), token_of(tokened)).status_code == 201
    assert put(open_one, make_report(later), token_of(later)).status_code == 201
    assert put(open_one, make_report(later), token_of(tokened)).status_code == 401
    assert put(open_one, make_report(tokened), token_of(later)).status_code == 401


def test_spent_tokens_table_has_no_rowid(open_one):
    with closing(sqlite3.connect(open_one.path)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT rowid FROM spent_tokens")


def test_nonce_is_not_stored(open_one, tokened, make_report):
    token = token_of(tokened)
    put(open_one, make_report(tokened), token)
    files = [open_one.path, open_one.path.with_name(open_one.path.name + "-wal")]
    content = b"".join(file.read_bytes() for file in files if file.exists())
    assert token[2:34] not in content
    assert token_in(header_of(token)) == token


def test_foreign_pages_may_send_a_token(make_harness, tokened):
    harness = make_harness("pages.sqlite3", cors_origins=("https://survey.example",))
    harness.publish(tokened)
    asked = harness.client.options(
        "/v1/studies/habits/reports/" + "0" * 32,
        headers={"Origin": "https://survey.example", "Access-Control-Request-Method": "PUT"},
    )
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
