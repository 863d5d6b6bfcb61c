"""The tokens of reports: requested once from the issuer in one window, sent with the report in another."""

import sqlite3
from pathlib import Path

import pytest

from ldp_client.core.tokens import short_id_of, token_in
from ldp_client.device import outbox
from ldp_client.device.disclosures import disclosures_of
from ldp_client.device.outbox import withdrawn
from ldp_client.documents.errors import LedgerError
from ldpkit.cli import main
from schemas import Study
from tests.ldp_client import issuers
from tests.ldp_client.devices import YES, consenting, problem
from tests.ldp_client.issuers import keys

DAY = 24 * issuers.HOUR
# Noon of some day.
NOON = 20_000 * DAY + 12 * issuers.HOUR


@pytest.fixture(autouse=True)
def at(monkeypatch):
    def moment(seconds):
        monkeypatch.setattr(outbox, "now", lambda: float(seconds))

    moment(NOON)
    monkeypatch.setattr("ldp_client.device.sending.sleep", lambda _seconds: None)
    return moment


@pytest.fixture
def answered(tmp_path, server, issuer):
    """Return a function that has a device answer, also a study with a key for each of two regions."""

    def answer(ticket="CODE", with_regions=False):
        device, study = consenting(tmp_path, "8", server.url), issuers.study_of(issuer.url)
        if with_regions:
            channel = issuers.channel_of(issuer.url, {"region": "north"}, {"region": "south"})
            study = Study({**study.document, "channel": channel, "public": [issuers.REGION]})
        device.answer(study, YES, ticket)
        return device

    return answer


def row(device, table):
    with sqlite3.connect(device.ledger.path) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def deletion(device):
    """When the one deletion that waits is asked for."""
    with device.ledger.reading() as connection:
        (report,) = withdrawn(connection)
    return report.due


def due(device):
    (queued,) = device.ledger.queued()
    return queued.due


def test_a_report_gets_its_token_in_one_window_and_leaves_in_the_next(answered, at, server, issuer):
    device = answered()
    flushed = device.flush()
    assert (flushed.sent, flushed.scheduled, flushed.waiting) == (0, 1, 0)
    assert "together with others" in repr(flushed)
    ((path, body, headers),) = issuer.requests
    assert (path, len(body), body[:2]) == ("/v1/tokens", 259, b"\x00\x02")
    assert headers["ldpkit-ticket"] == "CODE"
    assert headers["content-type"] == "application/private-token-request"
    assert not server.requests
    assert NOON + DAY / 2 <= due(device) < NOON + 3 * DAY / 2
    at(due(device) - 1)
    assert device.flush().scheduled == 1
    at(due(device))
    assert device.flush().sent == 1
    ((method, path, _, headers),) = server.requests
    assert (method, len(issuer.requests)) == ("PUT", 1)
    assert "Ldpkit-ticket" not in headers
    token = token_in(headers["Authorization"])
    assert token[:2] == b"\x00\x02"
    assert len(token) == 354


@pytest.mark.attack(12)
def test_issuer_collector_and_ledger_share_no_data(answered, at, server, issuer):
    """Issuer and collector compare all that they see, and someone reads the ledger, to join two moments."""
    device = answered()
    device.flush()
    ((_, key, turned, nonce, salt, factor, token),) = row(device, "tokens")
    assert (key, turned, nonce, salt, factor, len(token)) == (0, 0, "", "", "", 708)
    (queued,) = device.ledger.queued()
    assert queued.ticket == ""
    assert b"CODE" not in Path(device.ledger.path).read_bytes()
    at(due(device))
    device.flush()
    assert row(device, "tokens") == []
    _, asked, asking = issuer.requests[0]
    _, path, body, sent = server.requests[0]
    token = token_in(sent["Authorization"])
    assert b"CODE" not in body
    assert "CODE" not in repr(sent)
    report = path.rsplit("/", 1)[1]
    assert report not in repr(asking)
    pieces = {token[start : start + 8] for start in range(2, len(token) - 8)}
    assert not [piece for piece in pieces if piece in asked]


def test_lost_issuer_answer_is_requested_again_with_the_same_bytes(answered, tmp_path, at, issuer):
    device = answered()
    issuer.answers = [issuers.lost, issuers.lost]
    assert device.flush(attempts=1).waiting == 1
    again = consenting(tmp_path, "8", device.collector)
    at(NOON + 3 * DAY)
    assert again.flush(attempts=2).scheduled == 1
    bodies = [body for _, body, _ in issuer.requests]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


LIES = {
    "another key signed": (issuers.other_key, "did not sign"),
    "too long": (lambda body, _: (200, issuers.RESPONSE, keys()[0].sign(body[3:]) * 2), "did not sign"),
    "HTML": (lambda body, _: (200, "text/html", keys()[0].sign(body[3:])), "not a collector's answer"),
    "another ticket's": (issuers.refusing(409, "ticket-spent"), "for a new ticket, or withdraw"),
    "omitted stratum": (
        issuers.refusing(409, "token-key-other", key_id=-1),
        "no report of that group can ever leave",
    ),
    "unknown key": (issuers.refusing(422, "token-key-unknown"), "ask the study's contact"),
    "unknown ticket": (issuers.refusing(401, "ticket-needed"), "does not know this ticket"),
    "elsewhere": (lambda *_: (307, "text/html", b"http://127.0.0.1:9/v1/tokens"), "307"),
    "broken": (lambda *_: (500, "text/html", b""), "500"),
}


@pytest.mark.attack(10)
@pytest.mark.parametrize(("lie", "says"), LIES.values(), ids=LIES)
def test_wrong_issuer_answer_sends_no_report_and_is_retried(answered, lie, says, server, issuer):
    """An issuer answers with a wrong signature, another key's, a redirect or a refusal. None is final."""
    device = answered()
    issuer.answers = [lie]
    flushed = device.flush(attempts=1)
    assert (flushed.waiting, flushed.sent, flushed.scheduled) == (1, 0, 0)
    assert says in flushed.reason
    assert not server.requests
    assert device.ledger.queued()[0].body
    assert device.flush().scheduled == 1
    assert len({body for _, body, _ in issuer.requests}) == 1


@pytest.mark.attack(12)
def test_device_follows_an_issuer_to_another_key_only_once(answered, issuer):
    """An issuer names one key after the other, to tell people apart."""
    device = answered(with_regions=True)
    first, second = (short_id_of(key.spki) for key in keys())
    issuer.answers = [issuers.refusing(409, "token-key-other", key_id=second), issuers.refusing(503, "busy")]
    assert device.flush(attempts=1).waiting == 1
    issuer.answers = [issuers.refusing(409, "token-key-other", key_id=first)]
    assert device.flush(attempts=1).waiting == 1
    issuer.answers = [issuers.other_key]
    assert device.flush(attempts=1).scheduled == 1
    assert [body[2] for _, body, _ in issuer.requests] == [first, second, second, second]


def test_another_ticket_may_be_given_before_the_token_only(answered, issuer):
    device = answered()
    issuer.answers = [issuers.refusing(401, "ticket-needed")]
    device.flush()
    device.give_ticket("survey", "OTHER")
    device.flush()
    assert [headers["ldpkit-ticket"] for _, _, headers in issuer.requests] == ["CODE", "OTHER"]
    device.give_ticket("survey", "THIRD")
    assert device.ledger.queued()[0].ticket == ""


def test_report_without_a_ticket_waits_and_states_why(answered, issuer):
    device = answered(ticket="")
    assert "give the ticket" in device.flush().reason
    assert not issuer.requests


@pytest.mark.parametrize("status", [401, 503])
def test_rejected_report_waits_for_the_next_window(answered, at, status, server):
    device = answered()
    device.flush()
    first = due(device)
    at(first)
    server.statuses, server.refusals = [status], {401: problem("ticket-invalid")}
    flushed = device.flush(attempts=1)
    assert (flushed.waiting, flushed.sent, server.statuses) == (1, 0, [])
    assert due(device) // DAY == first // DAY + 1
    at(due(device))
    assert device.flush().sent == 1
    assert len({headers["Authorization"] for _, _, _, headers in server.requests}) == 1


def test_corrected_clock_reschedules_the_report(answered, at):
    device = answered()
    at(NOON + 400 * DAY)
    device.flush()
    at(NOON)
    # At once it would be right behind its token.
    assert device.flush().sent == 0
    drawn = due(device)
    assert drawn // DAY == NOON // DAY + 1
    at(drawn)
    assert device.flush().sent == 1


@pytest.fixture
def sent(answered, at):
    device = answered()
    device.flush()
    at(due(device))
    device.flush()
    return device


def test_withdrawal_after_the_token_sends_no_request(answered, at, server):
    device = answered()
    device.flush()
    assert device.withdraw("survey") == 0
    assert row(device, "tokens") == row(device, "reports") == []
    at(NOON + 3 * DAY)
    device.flush()
    assert server.requests == []


@pytest.mark.attack(12)
def test_withdrawal_after_sending_requests_deletion_in_a_window(sent, at, server):
    """A collector tells whose report it was by its deletion, right after the person did something."""
    assert sent.withdraw("survey") == 1
    flushed = sent.flush()
    assert (flushed.deleted, flushed.scheduled, server.asked("DELETE")) == (0, 1, [])
    moment = deletion(sent)
    assert moment // DAY == NOON // DAY + 2
    # Again, and nothing is put off once more.
    at(moment - 60)
    assert sent.withdraw("survey") == 1
    assert deletion(sent) == moment
    at(moment)
    assert sent.flush().deleted == 1
    (headers,) = [headers for method, _, _, headers in server.requests if method == "DELETE"]
    assert "Authorization" not in headers


@pytest.mark.attack(12)
def test_deletion_is_not_sent_together_with_a_token_request(sent, at, server, issuer):
    """Issuer and collector join a person and a report by two requests of one moment."""
    sent.withdraw("survey")
    moment = deletion(sent)
    at(moment)
    sent.answer(issuers.study_of(issuer.url, id="other"), YES, "CODE")
    flushed = sent.flush()
    assert (len(issuer.requests), flushed.deleted, server.asked("DELETE")) == (2, 0, [])
    assert deletion(sent) // DAY == moment // DAY + 1


def test_withdrawal_during_the_issuers_answer_leaves_no_rows(answered, tmp_path, issuer):
    device = answered()

    def withdrawing(body, headers):
        consenting(tmp_path, "8", device.collector).withdraw("survey")
        return issuers.honest(body, headers)

    issuer.answers = [withdrawing]
    device.flush()
    assert row(device, "tokens") == row(device, "reports") == []


@pytest.mark.attack(12)
def test_budget_command_prints_the_stratum_from_the_issuer(answered, tmp_path, at, capsys, issuer):
    """An issuer puts one person alone into a stratum."""
    device = answered(with_regions=True)
    assert not disclosures_of(device.ledger)[0].strata
    issuer.answers = [
        issuers.refusing(409, "token-key-other", key_id=short_id_of(keys()[1].spki)),
        issuers.other_key,
    ]
    assert device.flush(attempts=1).scheduled == 1
    assert disclosures_of(device.ledger)[0].strata == [{"region": "south"}]
    assert main(["budget", "--folder", str(tmp_path)]) == 0
    assert "you belong to region=south" in capsys.readouterr().out
    at(due(device))
    assert device.flush().sent == 1
    assert not disclosures_of(device.ledger)[0].strata


@pytest.mark.slow
def test_interrupted_flush_resumes_at_any_statement(tmp_path, server, issuer, at, monkeypatch):
    """If the ledger fails at its 1st, 24th, … statement, one request, one token and one report result."""
    connect, seen, breaking_at = sqlite3.connect, [0], [1]

    class Breaking(sqlite3.Connection):
        def execute(self, statement, *values):
            seen[0] += 1
            if seen[0] == breaking_at[0]:
                raise sqlite3.OperationalError("broken off")
            return super().execute(statement, *values)

    def flushed(device):
        seen[0] = 0
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, **o, factory=Breaking))
        try:
            device.flush(attempts=1)
        except LedgerError:
            return False
        finally:
            monkeypatch.setattr(sqlite3, "connect", connect)
        return seen[0] < breaking_at[0]

    rounds = 0
    while rounds < 60:
        at(NOON)
        rounds += 1
        issuer.requests.clear()
        server.requests.clear()
        device = consenting(tmp_path / str(rounds), "8", server.url)
        device.answer(issuers.study_of(issuer.url), YES, "CODE")
        whole = flushed(device)
        device.flush(attempts=1)
        assert len({body for _, body, _ in issuer.requests}) == 1
        at(due(device))
        whole &= flushed(device)
        # Where it is overdue then, it waits once more.
        for days in (5, 7):
            at(NOON + days * DAY)
            device.flush(attempts=1)
        assert device.ledger.queued() == []
        assert len({(path, headers["Authorization"]) for _, path, _, headers in server.requests}) == 1
        assert row(device, "tokens") == []
        if whole:
            break
        breaking_at[0] += 23
    assert rounds > 3
