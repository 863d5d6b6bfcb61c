"""Answer for a collector without saying which one: what settles a report has to come from the study's own.

Defence: The device: it waits for the study's own.
"""

import pytest

from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting


@pytest.mark.parametrize("said", ["", "nonsense", "f" * 32])
def test_a_receipt_that_names_no_collector_settles_nothing(tmp_path, said):
    """Where the study's collector said which one it is: a captive portal may send back what it was sent."""
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
