"""Two studies' reports of one person that reach the collector in one breath are known to be one person's."""

from ldp_client.device import outbox
from tests.ldp_client.devices import consenting
from tests.oblivious.conftest import batched_study, keys, through
from tests.oblivious.test_device import Relay

__all__ = ["keys"]


def test_two_reports_are_not_relayed_together(tmp_path, keys, monkeypatch):
    with Relay() as relay:
        transport = through(relay.url, keys)
        device = consenting(tmp_path / "device", "9", "http://127.0.0.1:1", transport=transport)
        for name in ("first", "second"):
            device.answer(batched_study(id=name), {"ever": True})
        for _ in range(10):
            before = len(relay.requests)
            now = max(queued.due for queued in device.ledger.queued())
            monkeypatch.setattr(outbox, "now", lambda now=now: float(now))
            device.flush(1)
            assert len(relay.requests) <= before + 1
        assert len(relay.requests) == 10
