"""When reports leave, how many, and where to."""

import ssl
import statistics
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ldp_client import Direct
from ldp_client.device import outbox, sending
from ldp_client.device.outbox import due_within
from ldp_client.device.requests import put_report
from ldp_client.device.sending import MOST_REQUESTS, PERIOD_SECONDS, allows
from ldp_client.documents.errors import LedgerError, RefusedError, TransferError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting, fetch_study
from tests.statistics import seed_the_system

STUDY = Study(studies.document(studies.YES_NO))
YES = {"ever": True}


@pytest.fixture
def server():
    with Server(STUDY.canonical()) as server:
        yield server


def study_number(number):
    return Study(studies.document(studies.with_epsilon(studies.YES_NO, "0.001"), id=f"s{number}"))


class Clock:
    def __init__(self, monkeypatch):
        self.now = 1_000_000_000.0
        monkeypatch.setattr(time, "time", lambda: self.now)


def test_a_report_waits_for_its_drawn_time_across_restarts(tmp_path, server, monkeypatch):
    clock = Clock(monkeypatch)
    device = consenting(tmp_path, "4", server.url, send_window=3600)
    device.answer(STUDY, YES)
    due = device.ledger.queued()[0].due
    assert clock.now <= due <= clock.now + 3600
    clock.now = due - 1
    for window in (3600, 0):
        flushed = consenting(tmp_path, "4", server.url, send_window=window).flush()
        assert (flushed.sent, flushed.scheduled, flushed.waiting, server.requests) == (0, 1, 0, [])
    clock.now = due
    assert consenting(tmp_path, "4", server.url, send_window=3600).flush().sent == 1


def test_printed_queue_shows_no_secret(tmp_path):
    device = consenting(tmp_path, "4", "https://collector.example")
    device.answer(STUDY, YES, "CODE")
    (queued,) = device.ledger.queued()
    secrets = (queued.body, queued.secret, queued.report_id, queued.invitation)
    assert all(secrets)
    assert not [secret for secret in secrets if secret in repr([queued])]


def test_report_is_sent_at_once_with_now_or_after_a_clock_reset(tmp_path, server, monkeypatch):
    clock = Clock(monkeypatch)
    for number, move in enumerate([0, -8 * 86_400]):
        device = consenting(tmp_path / str(number), "4", server.url, send_window=3600)
        device.answer(STUDY, YES)
        clock.now += move
        assert device.flush(now=not move).sent == 1


def test_the_time_is_drawn_evenly_from_the_window(monkeypatch):
    """Mean and spread of 4000 draws, five standard errors each; half a window would fail both."""
    clock = Clock(monkeypatch)
    seed_the_system(monkeypatch, "waits")
    waits = [due_within(1e6) - clock.now for _ in range(4000)]
    assert 0 <= min(waits) < 1e4
    assert 0.99e6 < max(waits) <= 1e6
    assert abs(statistics.fmean(waits) - 5e5) < 5 * 1e6 / 12**0.5 / 4000**0.5
    assert due_within(0) == 0


def test_the_time_does_not_depend_on_the_answer(tmp_path, monkeypatch):
    """Two devices that differ in nothing but the answer ask for the same draw, once, at the same point."""
    windows = []
    monkeypatch.setattr("ldp_client.device.outbox.due_within", lambda window: windows.append(window) or 7)
    for answer in (True, False):
        device = consenting(tmp_path / str(answer), "4", send_window=60)
        device.answer(STUDY, {"ever": answer})
        assert device.ledger.queued()[0].due == 7
    assert windows == [60, 60]


def test_full_outbox_rejects_further_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(outbox, "MOST_PENDING", 3)
    device = consenting(tmp_path, "4")
    for number in range(3):
        device.answer(study_number(number), YES)
    spent = device.epsilon_left
    with raises(RefusedError, "device.outbox_full", "3"):
        device.answer(study_number(3), YES)
    assert device.epsilon_left == spent
    device.withdraw("s0")
    device.answer(study_number(3), YES)


def test_a_report_that_is_too_large_is_refused_and_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(Direct, "most_report_bytes", 100)
    device = consenting(tmp_path, "4")
    with raises(RefusedError, "device.report_large", "100"):
        device.answer(STUDY, YES)
    assert device.epsilon_left == 4


def test_outbox_limits_equal_gleans():
    assert (outbox.MOST_PENDING, outbox.MOST_BYTES, MOST_REQUESTS, PERIOD_SECONDS) == (500, 1 << 20, 15, 60)


def test_requests_are_paced(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    for number in range(MOST_REQUESTS + 2):
        device.answer(study_number(number), YES)
    flushed = device.flush()
    assert (flushed.sent, flushed.waiting) == (MOST_REQUESTS, 2)
    assert "attempts a minute" in flushed.reason
    assert len(server.requests) == MOST_REQUESTS


def test_the_pace_allows_a_full_number_in_every_period(tmp_path):
    def allowed(now):
        with consenting(tmp_path, "4").ledger.writing() as connection:
            return [allows(connection, now) for _ in range(MOST_REQUESTS + 1)]

    full = [True] * MOST_REQUESTS + [False]
    none = [False] * (MOST_REQUESTS + 1)
    start = 1_000_000_000.0
    moments = (0, PERIOD_SECONDS - 0.1, PERIOD_SECONDS, PERIOD_SECONDS - 30, -86_400, -86_400 + 1)
    expected = [full, none, full, none, full, none]
    # A clock that is moved far back forgets the moments that lie ahead of it then.
    assert [allowed(start + moment) for moment in moments] == expected


def test_pace_is_kept_across_processes(tmp_path, server):
    for number in range(MOST_REQUESTS + 2):
        device = consenting(tmp_path, "4", server.url)
        device.answer(study_number(number), YES)
        device.flush()
    assert len(server.requests) == MOST_REQUESTS
    assert len(device.ledger.queued()) == 2


@pytest.mark.slow
def test_failed_attempts_count_towards_the_pace(tmp_path, server, monkeypatch):
    monkeypatch.setattr(sending, "sleep", lambda _seconds: None)
    device = consenting(tmp_path, "4", server.url)
    for number in range(6):
        device.answer(study_number(number), YES)
    server.statuses = [503] * 100
    assert device.flush(attempts=4).waiting == 6
    assert len(server.requests) == MOST_REQUESTS


def test_report_held_back_by_the_pace_is_withdrawn_locally(tmp_path, server):
    """Its withdrawal therefore sends no request to the collector."""
    device = consenting(tmp_path, "4", server.url)
    for number in range(MOST_REQUESTS):
        device.answer(study_number(number), YES)
    device.flush()
    device.answer(study_number(99), YES)
    assert device.flush().waiting == 1
    assert device.withdraw("s99") == 0
    assert device.ledger.queued() == []


def test_reports_are_sent_in_random_order(tmp_path, server):
    """Among 12! orders, neither the order of answering nor that by id would occur by chance."""
    device = consenting(tmp_path, "4", server.url)
    ids = [device.answer(study_number(number), YES) for number in range(12)]
    device.flush()
    left = [path.rsplit("/", 1)[1] for path in server.asked("PUT")]
    assert sorted(left) == sorted(ids)
    assert left not in (ids, sorted(ids))


def test_a_damaged_body_is_not_sent(tmp_path, server):
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    body = device.ledger.queued()[0].body.encode()
    file = tmp_path / "ledger.sqlite3"
    content = file.read_bytes()
    assert content.count(body) == 1
    file.write_bytes(content.replace(body, body.replace(b'"version":1', b'"version":2')))
    with raises(LedgerError, "device.report_changed"):
        device.flush()
    assert server.requests == []


@pytest.mark.parametrize(
    ("code", "follows"), [(307, True), (308, True), (301, False), (302, False), (303, False)]
)
def test_report_follows_only_redirects_that_preserve_the_request(server, code, follows):
    server.statuses, server.headers = [code], {"Location": f"{server.url}/moved/x"}
    assert put_report(Direct(), f"{server.url}/x", "{}").state == ("sent" if follows else "kept")
    moved = [(verb, body) for verb, path, body, _ in server.requests if path == "/moved/x"]
    assert moved == ([("PUT", b"{}")] if follows else [])


def test_body_of_a_redirect_is_not_read(server):
    """The body may be endless."""
    server.statuses = [307]
    server.headers = {"Location": f"{server.url}/moved/x", "Content-Length": str(10**12)}
    put_report(Direct(), f"{server.url}/x", "{}")
    assert server.asked("PUT") == ["/x", "/moved/x"]


def test_no_redirect_leads_to_another_host_or_port(server):
    """A device may be allowed to talk to one port of a host only."""
    with Server(STUDY.canonical()) as other:
        elsewhere = server.url.replace("127.0.0.1", "localhost")
        no_port = f"http://127.0.0.1:{10**30}"
        for target in (elsewhere, other.url, no_port, "file:///etc/hosts", "ftp://127.0.0.1/x"):
            server.statuses, server.headers = [307, 307], {"Location": f"{target}/v1/studies/survey"}
            assert put_report(Direct(), f"{server.url}/x", "{}").state == "kept"
            with raises(TransferError, "device.http_status", "307"):
                fetch_study(f"{server.url}/v1/studies/survey")
        assert other.requests == []
    server.statuses, server.headers = [302], {"Location": f"{server.url}/v1/studies/survey"}
    assert fetch_study(f"{server.url}/old/v1/studies/survey")[0] == STUDY


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "collector")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + built.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Server(STUDY.canonical(), context) as server:
        yield server


def test_collector_with_an_untrusted_certificate_gets_nothing(tmp_path, secure):
    device = consenting(tmp_path, "4", secure.url)
    device.answer(STUDY, YES)
    flushed = device.flush(attempts=1)
    assert flushed.waiting == 1
    assert "certificate verify failed" in flushed.reason
    with raises(TransferError, "device.unreachable", "certificate"):
        device.fetch("survey")
    assert secure.requests == []


def test_patched_default_context_does_not_turn_verification_off(tmp_path, secure, monkeypatch):
    """An app that turned verification off for its own requests; another planted context would do as well."""
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    device = consenting(tmp_path, "4", secure.url)
    device.answer(STUDY, YES)
    assert "certificate verify failed" in device.flush(attempts=1).reason
    assert secure.requests == []


def test_redirect_from_https_to_http_is_not_followed(tmp_path, secure, server, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    device = consenting(tmp_path, "4", secure.url)
    device.answer(device.fetch("survey"), YES)
    secure.statuses, secure.headers = [307], {"Location": f"{server.url}/x"}
    assert device.flush(attempts=1).waiting == 1
    assert server.requests == []
    assert device.flush(attempts=1).sent == 1
