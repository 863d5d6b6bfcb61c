"""Answer in the place of a collector without its identity: only the study's own collector settles a report.

Defence: The device: it waits for the answer of the study's own collector.
"""

import pytest

from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting


@pytest.mark.parametrize("said", ["", "nonsense", "f" * 32])
def test_receipt_without_collector_identity_settles_nothing(tmp_path, said):
    """The collector stated its identity before; a captive portal may only echo the request."""
    study = Study(studies.document(studies.YES_NO))
    with Server(study.canonical()) as server:
        device = consenting(tmp_path, "2", server.url)
        device.answer(device.fetch("survey"), {"ever": True})
        known, server.identity = server.identity, said
        flushed = device.flush(attempts=1)
        assert (flushed.sent, flushed.waiting) == (0, 1)
        device.withdraw("survey")
        flushed = device.flush(attempts=1)
        assert (flushed.deleted, flushed.undeleted) == (0, 1)
        server.identity = known
        assert device.flush(attempts=1).deleted == 1
