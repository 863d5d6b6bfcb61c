"""Has people send for ever what no node and no gateway will take, and hides behind it what only waits."""

import json
from pathlib import Path

import pytest
from werkzeug.wrappers import Response

from collector.studies import publishing
from ldp_client.device import outbox
from ldp_client.device.outbox import Queued
from ldp_client.device.requests import Outcome
from ldp_client.device.verdicts import judged
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.attacks.test_strata_without_keys import device as stratum
from tests.attacks.test_strata_without_keys import server
from tests.ldp_client.devices import consenting, problem
from tests.ldp_client.issuers import refusing
from tests.oblivious.conftest import batched_study, keys, through
from tests.oblivious.test_device import Relay
from tests.secure_sum.conftest import INVITATION
from tests.secure_sum.test_device import device_of, trusted

__all__ = ["keys", "server", "stratum"]
PLAIN = Study({**studies.document(studies.YES_NO), "id": "plain"})
KEY_GONE = b'{"type": "https://iana.org/assignments/http-problem-types#ohttp-key"}'


def judged_closed(closes):
    report = Queued("00", "https://a.example https://b.example", "summed", "[]", document="d", closes=closes)
    refused = Outcome("refused", "closed", "study-closed", document="d", identity="k")
    return judged(report, refused, "k")


@pytest.mark.parametrize(
    ("closes", "state"), [("2000-01-01", "refused"), ("2999-01-01", "stuck"), ("", "stuck")]
)
def test_share_of_closed_sum_is_dropped_30_days_after_last_day(closes, state):
    assert judged_closed(closes).state == state


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_sum_is_not_advised_to_run_again(network, tmp_path, capsys, closed):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    network.nodes[closed].post("/close")
    # What another answers makes the sum no more open.
    network.nodes[(closed + 1) % 3].trouble = away
    url = f"{device.collector}/v1/studies/{study.id}"
    main(["answer", url, "--folder", str(tmp_path / "device"), *pinned(network)])
    said = capsys.readouterr().err
    assert "the report can be withdrawn" in said
    assert "run again" not in said


def away(environment):
    return Response(status=503) if environment["REQUEST_METHOD"] == "PUT" else None


def pinned(network):
    return [part for node in trusted(network) for part in ("--node", node)]


def test_deletion_without_key_counts_as_stuck(tmp_path, server, keys, monkeypatch):
    with Relay() as relay:
        device = consenting(tmp_path / "device", "9", server.url, transport=through(relay.url, keys))
        study = batched_study()
        device.answer(study, {"ever": True})
        due = float(device.ledger.queued()[0].due)
        monkeypatch.setattr(outbox, "now", lambda: due)
        device.flush(attempts=1)
        relay.answer = (400, {"Content-Type": "application/problem+json"}, KEY_GONE)
        device.withdraw(study.id)
        flushed = device.flush(attempts=1, now=True)
    assert "to delete report" in flushed.stuck_reason
    assert (flushed.stuck, flushed.likely) == (1, 0)


def test_code_used_elsewhere_prints_remedy(stratum, capsys):
    device, issuer, _ = stratum
    issuer.answers = [refusing(409, "token-issued")]
    folder = str(Path(device.ledger.path).parent)
    main(["answer", f"{device.collector}/v1/studies/{studies.document()['id']}", "--folder", folder])
    said = capsys.readouterr().err
    assert "gives no second token" in said
    assert "for a new invitation, or withdraw" in said
    assert "run again" not in said
    device.invite(studies.document()["id"], "ANOTHER")
    flushed = device.flush(attempts=1)
    assert (flushed.batched, flushed.waiting) == (1, 0)


def test_key_unknown_to_issuer_prints_contact_advice(stratum, capsys):
    device, issuer, _ = stratum
    issuer.answers = [refusing(422, "token-key-unknown")]
    folder = str(Path(device.ledger.path).parent)
    main(["answer", f"{device.collector}/v1/studies/{studies.document()['id']}", "--folder", folder])
    said = capsys.readouterr().err
    assert "a key that its issuer does not have for this invitation: ask the study's contact" in said
    assert "run again" not in said
    assert device.flush(attempts=1).batched == 1


@pytest.mark.parametrize("closes", ["", "2999-01-01"])
def test_deleted_study_prints_advice_to_withdraw(tmp_path, server, capsys, closes):
    study = Study({**PLAIN.document, **({"closes": closes} if closes else {})})
    device = consenting(tmp_path / "device", "8", server.url)
    device.answer(study, {"ever": True})
    body = json.loads(problem("study-closed", study.digest)[1])
    body = {**body, "detail": "the study was deleted by its operator", "final": True}
    server.statuses, server.refusals = [200, 410], {410: ("application/problem+json", json.dumps(body))}
    server.content = study.canonical()
    main(["answer", f"{server.url}/v1/studies/plain", "--folder", str(tmp_path / "device")])
    said = capsys.readouterr().err
    assert "was deleted by its operator; the report can never be accepted there" in said
    assert "can be withdrawn" in said
    assert "run again" not in said


@pytest.mark.parametrize(
    ("closes", "final", "state"),
    [
        ("2000-01-01", True, "refused"),
        ("2999-01-01", True, "stuck"),
        ("", True, "stuck"),
        ("", False, "kept"),
    ],
)
def test_report_to_finally_closed_study_is_stuck(closes, final, state):
    report = Queued("00", "https://a.example", "plain", "{}", document="d", closes=closes)
    refused = Outcome("refused", "closed", "study-closed", document="d", identity="k", ended=final)
    assert judged(report, refused, "k").state == state


@pytest.mark.parametrize("ended", [{"deleted": True}, {"final": True}, {}])
def test_collector_marks_finally_closed_study(habits, study, make_report, ended):
    with habits.collector.database.write() as session:
        publishing.close(session, study.id, **ended)
    refusal = habits.put(make_report(study)).get_json()
    assert refusal["type"].endswith("study-closed")
    assert refusal["digest"] == study.digest
    assert refusal.get("final") == (True if ended else None)
    assert ("deleted by its operator" in refusal["detail"]) is ("deleted" in ended)


@pytest.mark.slow
def test_waiting_reports_are_listed_separately_from_stuck_ones(stratum, server, capsys):
    """The order in which the two are sent is random."""
    device, issuer, names_another = stratum
    issuer.answers = [names_another] * 20
    server.stuck = "PUT"
    device.answer(PLAIN, {"ever": True})
    folder = str(Path(device.ledger.path).parent)
    for _ in range(3):
        flushed = device.flush(attempts=1)
        assert (flushed.waiting, flushed.stuck, flushed.likely) == (2, 1, 1)
        assert "no report of that group" in flushed.stuck_reason
        assert "HTTP status 503" in flushed.reason
        assert repr(flushed).count("1 waiting: ") == 2
    main(["answer", f"{device.collector}/v1/studies/plain", "--folder", folder])
    stuck, waiting = [line for line in capsys.readouterr().err.splitlines() if "1 report waiting" in line]
    assert "no report of that group" in stuck
    assert "run again" not in stuck
    assert "HTTP status 503" in waiting
    assert waiting.endswith("run again to send")
