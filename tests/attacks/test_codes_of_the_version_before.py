"""(By mistake) the next version is answered with the last version's code: the error blames another device."""

from pathlib import Path

import pytest

from ldp_client.device import outbox
from ldpkit.cli import main
from tests import studies
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, honest, refusing, study_of

NOON = 20_000.5 * 86_400


def once_a_code():
    """An issuer's answer: a code gets one token, however often the same request comes."""
    known = {}

    def answer(body, headers):
        same = known.setdefault(headers["LDPKit-Invitation"], body) == body
        return (honest if same else refusing(409, "token-issued"))(body, headers)

    return answer


@pytest.fixture
def panel(tmp_path, monkeypatch):
    """A device whose report to version 1 was sent, and version 2."""
    with Server() as server, Issuer() as issuer:
        server.serves = True
        issuer.answers = [once_a_code()] * 9
        monkeypatch.setattr(outbox, "now", lambda: NOON)
        first, second = [study_of(issuer.url, studies.MEMOIZED, version=number) for number in (1, 2)]
        server.content = first.canonical()
        device = consenting(tmp_path / "device", "8", server.url)
        device.answer(first, {"habit": True}, "CODE")
        assert device.flush().scheduled == 1
        (report,) = device.ledger.queued()
        monkeypatch.setattr(outbox, "now", lambda: float(report.due))
        assert device.flush().sent == 1
        server.content = second.canonical()
        yield device, second


def test_device_explains_that_code_was_used_for_earlier_version(panel, capsys):
    device, second = panel
    device.answer(second, {"habit": True}, "CODE")
    folder = str(Path(device.ledger.path).parent)
    main(["answer", f"{device.collector}/v1/studies/{second.id}", "--folder", folder])
    said = capsys.readouterr().err
    assert "in an earlier version of the study (each needs a new invitation)" in said
    assert "run again" not in said
    device.invite(second.id, "ANOTHER")
    flushed = device.flush(attempts=1)
    assert (flushed.batched, flushed.waiting) == (1, 0)
