"""A collector accepts exactly one report for each token."""

import os

import pytest

from collector.studies import close
from ldp_client.core.tokens import header_of, to_base64url
from ldp_client.documents.errors import InputError
from schemas import Study
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study, conflicting, device_report
from tests.kit.errors import raises
from tests.ldp_client.issuers import REGION, Key, channel_of, keys, token_of

ISSUER = "https://issuer.example"
TOKENED = build_study(channel=channel_of(ISSUER))


@pytest.fixture
def harness(empty):
    """A collector with a study whose reports need tokens."""
    assert empty.publish(TOKENED).status_code == 201
    return empty


def put(harness, report, token=None, header=None):
    headers = {"Authorization": header or header_of(token)} if header or token else {}
    path = f"/v1/studies/{report.study}/reports/{report.id}"
    return harness.app.test_client().put(path, json=report.to_document(), headers=headers)


def spent(harness):
    """How many tokens were spent, and how many reports are stored."""
    return len(harness.sql("SELECT * FROM spent")), len(harness.exported())


@pytest.mark.attack(4)
def test_spent_token_is_rejected_for_another_report(harness):
    """Someone sends two reports with one token, or with two signatures of one nonce."""
    report, token = build_report(TOKENED), token_of(TOKENED)
    # The same nonce, signed again: another signature, the same token.
    again = token_of(TOKENED, nonce=token[2:34])
    assert again != token
    assert [put(harness, report, token).status_code for _ in range(2)] == [201, 200]
    for other in (token, again):
        assert problem(put(harness, build_report(TOKENED), other)) == (409, "ticket-spent")
    assert spent(harness) == (1, 1)
    assert harness.withdraw(report.id, secret=report.secret).status_code == 200
    assert spent(harness) == (1, 0)
    assert problem(put(harness, build_report(TOKENED), token)) == (409, "ticket-spent")
    assert problem(put(harness, report, token)) == (410, "report-withdrawn")


def test_a_refused_report_spends_nothing(harness):
    report, second = build_report(TOKENED), token_of(TOKENED)
    put(harness, report, token_of(TOKENED))
    assert problem(put(harness, conflicting(report), second)) == (409, "report-conflict")
    harness.close()
    assert problem(put(harness, build_report(TOKENED), second)) == (410, "study-closed")
    assert spent(harness) == (1, 1)
    harness.reopen()
    assert put(harness, build_report(TOKENED), second).status_code == 201


def test_report_without_a_token_gets_a_challenge(harness):
    response = put(harness, build_report(TOKENED))
    assert problem(response) == (401, "ticket-needed")
    challenge, key = response.headers["WWW-Authenticate"].split(", ")
    assert challenge.startswith('PrivateToken challenge="')
    assert key == f'token-key="{to_base64url(keys()[0].spki)}"'
    assert response.get_json(force=True)["digest"] == TOKENED.digest
    # A batch is refused whole, also one that is not in canonical form.
    for space in ("", " "):
        body = f'{{{space}"reports":[{",".join(build_report(TOKENED).to_json() for _ in range(3))}]}}'
        path = "/v1/studies/habits/reports"
        response = harness.client.post(path, data=body, content_type="application/json")
        assert problem(response) == (401, "ticket-needed")
    assert spent(harness) == (0, 0)


@pytest.mark.attack(4)
def test_changed_tokens_and_tokens_of_others_are_refused(harness):
    """Someone uses a token of another study, version or issuer, or one that another key signed."""
    wrong = [
        token_of(build_study(id="other", channel=channel_of(ISSUER))),
        token_of(build_study(2, channel=channel_of(ISSUER))),
        token_of(build_study(channel=channel_of("https://other.example"))),
        token_of(build_study(channel=channel_of(ISSUER, hours=1))),
    ]
    report, good = build_report(TOKENED), token_of(TOKENED)
    wrong += [good[:98] + Key().sign(good[98:]), good[:66] + os.urandom(32) + good[98:]]
    wrong += [
        good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        for at in [0, 1, 2, 33, 34, 65, 66, 97, 98, 200, 353]
    ]
    n = keys()[0].n
    for number in (0, 1, n - 1, n, n + int.from_bytes(good[98:], "big")):
        wrong.append(good[:98] + (number % (1 << 2048)).to_bytes(256, "big"))
    junk = ["PrivateToken", 'PrivateToken token="AAAA"', "Bearer token-of-the-operator", "\x80\xff"]
    for header in [*map(header_of, wrong), *junk, f'PrivateToken token="{"A" * 100_000}"']:
        assert problem(put(harness, report, header=header)) == (401, "ticket-invalid")
    assert spent(harness) == (0, 0)
    assert put(harness, report, good).status_code == 201


def test_stratum_follows_from_the_tokens_key(empty):
    strata = build_study(channel=channel_of(ISSUER, *STRATA), public=[REGION])
    assert empty.publish(strata).status_code == 201
    reports = [build_report(strata) for _ in range(3)]
    for report, place in zip(reports, (0, 1, 1)):
        for result in (201, 200):
            assert put(empty, report, token_of(strata, place)).status_code == result
    exported = {one.id: one.public["region"] for one in empty.exported()}
    assert exported == dict(zip([one.id for one in reports], ["north", "south", "south"]))
    other = put(empty, device_report(strata, region="north"), token_of(strata, 1))
    assert (problem(other), other.get_json()["field"]) == ((401, "ticket-invalid"), "public.region")
    assert other.headers["WWW-Authenticate"].startswith("PrivateToken challenge=")


def test_study_cannot_use_tokens_and_tickets(harness):
    """Revoking direct tickets would forget the spent tokens, which would then let second reports in."""
    with raises(InputError, "ticket.issuer_gives_them"):
        harness.tickets(3)
    harness.publish(build_study(id="invited"))
    harness.tickets(3, "invited")
    for study in (build_study(2, id="invited", channel=channel_of(ISSUER)), build_study(2)):
        assert problem(harness.publish(study)) == (409, "study-conflict")


def test_token_keys_of_another_study_are_refused(harness):
    """Its tokens would be spent already, and no report would leave; also once the first study is closed."""

    def publish(study_id, **changes):
        """What an author makes who copies the first study's document."""
        answer = harness.publish(Study({**TOKENED.document, "id": study_id, **changes}))
        return answer.status_code, answer.get_json(force=True).get("field")

    def other_key():
        tokens = {"issuer": ISSUER, "keys": [{"key": Key().text}]}
        return {"batches": {"hours": 24}, "tickets": tokens}

    refused = (422, "channel.tickets.keys")
    assert publish("wave-2") == refused
    assert publish("wave-3", channel=other_key())[0] == 201
    # The first version's key stays taken.
    assert publish("habits", version=2, channel=other_key())[0] == 201
    assert publish("wave-2") == refused
    harness.write(close, "habits", True)
    assert publish("wave-2") == refused


STRATA = [{"region": region} for region in REGION["choices"]]


@pytest.mark.attack(12)
@pytest.mark.parametrize(
    ("channel", "field"),
    [
        (channel_of("https://localhost/tickets", *STRATA), "channel.tickets.issuer"),
        (channel_of("https://localhost:443", *STRATA), "channel.tickets.issuer"),
        # People of the other stratum would pay, and no report of theirs could leave.
        (channel_of(ISSUER, STRATA[0]), "channel.tickets.keys"),
    ],
)
def test_collector_is_no_issuer_of_its_own_study(empty, channel, field):
    """The operator of both could join the person who got a token and the report that came with it."""
    for path in ("/v1/check", "/v1/studies"):
        response = empty.publish(build_study(channel=channel, public=[REGION]), path)
        assert (problem(response), response.get_json()["field"]) == ((422, "study-invalid"), field)
