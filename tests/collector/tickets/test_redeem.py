"""A collector accepts exactly one report for each token."""

import os

import pytest

from collector.studies import close
from ldp_client.core.tokens import header_of, to_base64url
from ldp_client.documents.errors import InputError
from schemas import Study
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study, conflicting
from tests.kit.errors import raises
from tests.ldp_client.issuers import REGION, Key, channel_of, keys, token_of

ISSUER = "https://issuer.example"
TOKENED = build_study(channel=channel_of(ISSUER))


@pytest.fixture
def harness(empty):
    """A collector with a study whose reports need tokens."""
    assert empty.publish(TOKENED).status_code == 201
    return empty


def put(harness, report, token=None, header=None, fast=True):
    """fast: in the canonical form, which the shortcut takes once it knows the study."""
    path = f"/v1/studies/{report.study}/reports/{report.id}"
    header = header_of(token) if token else header
    body = report.to_json() if fast else report.to_json().replace('"digest"', ' "digest"')
    headers = {"Authorization": header} if header else {}
    client = harness.app.test_client()
    return client.put(path, data=body, content_type="application/json", headers=headers)


def spent(harness):
    """How many tokens were spent, and how many reports are stored."""
    return len(harness.sql("SELECT * FROM spent")), len(harness.exported())


@pytest.fixture(params=[False, True], ids=["plain", "fast"])
def fast(request, harness):
    """Whether requests take the shortcut; then the process knows the study."""
    if request.param:
        put(harness, build_report(TOKENED))
        assert harness.collector.rules.find_in_use("habits", TOKENED.digest.encode())
    return request.param


@pytest.mark.attack(4)
def test_spent_token_is_rejected_for_another_report(harness, fast):
    """Someone sends two reports with one token, or with two signatures of one nonce."""
    report, token = build_report(TOKENED), token_of(TOKENED)
    # The same nonce, signed again: another signature, the same token.
    again = token_of(TOKENED, nonce=token[2:34])
    assert again != token
    assert put(harness, report, token, fast=fast).status_code == 201
    same = put(harness, report, token, fast=fast)
    assert (same.status_code, same.get_json()["result"]) == (200, "duplicate")
    for other in (token, again):
        assert problem(put(harness, build_report(TOKENED), other, fast=fast)) == (409, "ticket-spent")
    assert spent(harness) == (1, 1)
    assert harness.withdraw(report.id, secret=report.secret).status_code == 200
    assert spent(harness) == (1, 0)
    assert problem(put(harness, build_report(TOKENED), token, fast=fast)) == (409, "ticket-spent")
    assert problem(put(harness, report, token, fast=fast)) == (410, "report-withdrawn")


def test_a_refused_report_spends_nothing(harness, fast):
    report, second = build_report(TOKENED), token_of(TOKENED)
    put(harness, report, token_of(TOKENED), fast=fast)
    assert problem(put(harness, conflicting(report), second, fast=fast)) == (409, "report-conflict")
    broken = build_report(TOKENED, payloads={**report.payloads, "ever": b"\x07"})
    assert problem(put(harness, broken, second, fast=fast)) == (422, "report-invalid")
    harness.close()
    assert problem(put(harness, build_report(TOKENED), second, fast=fast)) == (410, "study-closed")
    assert spent(harness) == (1, 1)
    harness.reopen()
    assert put(harness, build_report(TOKENED), second, fast=fast).status_code == 201


def test_report_without_a_token_gets_a_challenge(harness):
    response = put(harness, build_report(TOKENED))
    assert problem(response) == (401, "ticket-needed")
    challenge, key = response.headers["WWW-Authenticate"].split(", ")
    assert challenge.startswith('PrivateToken challenge="')
    assert key == f'token-key="{to_base64url(keys()[0].spki)}"'
    assert response.get_json(force=True)["digest"] == TOKENED.digest
    assert spent(harness) == (0, 0)


JUNK = [
    "PrivateToken",
    'PrivateToken token="AAAA"',
    "Bearer token-of-the-operator",
    'PrivateToken token="' + "A" * 100_000 + '"',
    "\x80\xff",
    'PrivateToken token="' + "A" * 472 + '", token="' + "A" * 472 + '"',
]


@pytest.mark.attack(4)
def test_tokens_of_others_are_refused(harness, fast):
    """Someone uses a token of another study, version or issuer, or one that another key signed."""
    wrong = [
        token_of(build_study(id="other", channel=channel_of(ISSUER))),
        token_of(build_study(2, channel=channel_of(ISSUER))),
        token_of(build_study(channel=channel_of("https://other.example"))),
        token_of(build_study(channel=channel_of(ISSUER, hours=1))),
    ]
    good = token_of(TOKENED)
    wrong += [good[:98] + Key().sign(good[98:]), good[:66] + os.urandom(32) + good[98:]]
    for header in [*map(header_of, wrong), *JUNK]:
        response = put(harness, build_report(TOKENED), header=header, fast=fast)
        assert problem(response) == (401, "ticket-invalid")
    assert spent(harness) == (0, 0)


def test_a_token_with_any_byte_changed_is_refused(harness):
    report, token = build_report(TOKENED), token_of(TOKENED)
    for at in [0, 1, 2, 33, 34, 65, 66, 97, 98, 200, 353]:
        changed = token[:at] + bytes([token[at] ^ 1]) + token[at + 1 :]
        assert put(harness, report, changed).status_code == 401
    n = keys()[0].n
    for number in (0, 1, n - 1, n, n + int.from_bytes(token[98:], "big")):
        forged = token[:98] + (number % (1 << 2048)).to_bytes(256, "big")
        assert put(harness, report, forged).status_code == 401
    assert spent(harness) == (0, 0)
    assert put(harness, report, token).status_code == 201


def test_batches_are_refused_whole(harness):
    reports = [build_report(TOKENED) for _ in range(3)]
    body = '{"reports":[' + ",".join(report.to_json() for report in reports) + "]}"
    path = "/v1/studies/habits/reports"
    canonical = harness.client.post(path, data=body, content_type="application/json")
    for response in (harness.post([report.to_document() for report in reports]), canonical):
        assert problem(response) == (401, "ticket-needed")
        assert "one by one" in response.get_json(force=True)["detail"]
    assert spent(harness) == (0, 0)


def test_stratum_follows_from_the_tokens_key(empty):
    strata = build_study(
        channel=channel_of(ISSUER, {"region": "north"}, {"region": "south"}), public=[REGION]
    )
    assert empty.publish(strata).status_code == 201
    reports = [build_report(strata) for _ in range(3)]
    for report, place in zip(reports, (0, 1, 1)):
        for result in (201, 200):
            assert put(empty, report, token_of(strata, place)).status_code == result
    exported = {one.id: one.public["region"] for one in empty.exported()}
    assert exported == dict(zip([one.id for one in reports], ["north", "south", "south"]))


def test_study_cannot_use_tokens_and_tickets(harness):
    """Revoking direct tickets would forget the spent tokens, which would then let second reports in."""
    with raises(InputError, "ticket.issuer_gives_them"):
        harness.tickets(3)
    harness.publish(build_study(id="invited"))
    harness.tickets(3, "invited")
    for study, said in (
        (build_study(2, id="invited", channel=channel_of(ISSUER)), "cannot name an issuer"),
        (build_study(2), "blind tickets"),
    ):
        response = harness.publish(study)
        assert problem(response) == (409, "study-conflict")
        assert said in response.get_json(force=True)["detail"]


def test_token_keys_of_another_study_are_refused(harness):
    """Its tokens would be spent already, and no report would leave; also once the first study is closed."""

    def publish(study_id, **changes):
        """What an author makes who copies the first study's document."""
        return harness.publish(Study({**TOKENED.document, "id": study_id, **changes}))

    def other_key():
        tokens = {"issuer": ISSUER, "keys": [{"key": Key().text}]}
        return {"batches": {"hours": 24}, "tickets": tokens}

    def require_refused():
        response = publish("wave-2")
        assert problem(response) == (422, "study-invalid")
        said = response.get_json()
        assert said["field"] == "channel.tickets.keys"
        assert "have a token key of study habits" in said["detail"]

    require_refused()
    assert publish("wave-3", channel=other_key()).status_code == 201
    assert publish("habits", version=2).status_code == 201
    # The first version's key stays taken.
    assert publish("habits", version=3, channel=other_key()).status_code == 201
    require_refused()
    harness.write(close, "habits", True)
    require_refused()


def test_study_with_stratum_without_key_is_not_published(empty):
    """Its people would pay, and no report of theirs could leave."""
    response = empty.publish(build_study(channel=channel_of(ISSUER, {"region": "north"}), public=[REGION]))
    assert problem(response) == (422, "study-invalid")
    assert "region=south (1 of 2 values" in response.get_json()["detail"]


@pytest.mark.attack(12)
def test_collector_is_no_issuer_of_its_own_study(empty):
    """The operator of both could join the person who got a token and the report that came with it."""
    for issuer, status in (("https://localhost/tickets", 422), ("https://localhost:443", 422), (ISSUER, 201)):
        response = empty.publish(build_study(channel=channel_of(issuer)))
        assert response.status_code == status
        if status == 422:
            assert response.get_json(force=True)["field"] == "channel.tickets.issuer"
