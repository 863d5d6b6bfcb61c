"""A proxy compresses an issuer's or collector's answer, and the device blames the server for it.

Defence: The device: names the Content-Encoding and keeps the report; upper case and parameters in a media
type are ignored, in browsers too.
"""

from __future__ import annotations

import gzip
from email.message import Message

import pytest

from ldp_client import Direct
from ldp_client.device.http import Answer
from schemas import Study
from tests import studies
from tests.attacks.test_strata_without_keys import device, server
from tests.ldp_client.devices import Server, consenting

__all__ = ["device", "server"]
exchange = Direct.exchange


def coding(*codings):
    """A proxy that always compresses, and says so in turn."""
    said = list(codings)

    def passed_on(*arguments):
        answer = exchange(*arguments)
        headers = Message()
        for name, value in answer.headers.items():
            headers[name] = value
        named = said.pop(0) if said else ""
        headers["Content-Encoding"] = named
        packed = named.lower() in ("gzip", "br")
        return Answer(answer.status, headers, gzip.compress(answer.body) if packed else answer.body)

    return passed_on


@pytest.mark.parametrize("named", ["gzip", "GZIP", "br"])
def test_compressed_answer_is_not_blamed_on_the_issuer(device, monkeypatch, named):
    asking, issuer, _ = device
    issuer.answers = []
    monkeypatch.setattr(Direct, "exchange", coding(named))
    flushed = asking.flush(attempts=1)
    assert flushed.waiting == 1
    assert f"with Content-Encoding {named.lower()}: " in flushed.reason
    assert "did not sign" not in flushed.reason
    # Without the proxy it is the very same request, which is answered.
    assert asking.flush(attempts=1).batched == 1


@pytest.mark.parametrize("named", ["identity", "utf-8", ""])
def test_uncompressed_answer_is_read(device, monkeypatch, named):
    asking, issuer, _ = device
    issuer.answers = []
    monkeypatch.setattr(Direct, "exchange", coding(named))
    assert asking.flush(attempts=1).batched == 1


def test_unreadable_receipt_names_its_content_encoding(tmp_path, monkeypatch):
    with Server() as collector:
        plain = consenting(tmp_path, "8", collector.url)
        study = Study(studies.document(studies.YES_NO))
        plain.answer(study, {"ever": True})
        monkeypatch.setattr(Direct, "exchange", coding("gzip"))
        flushed = plain.flush(attempts=1)
        assert flushed.waiting == 1
        assert "with Content-Encoding gzip: " in flushed.reason
