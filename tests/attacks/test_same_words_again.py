"""Have the same words answered twice by one device, which tells more than was paid for.

Defence: The device: a permanent answer to other words stands for none to these.
"""

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AlreadyAnsweredError
from schemas import Study
from tests import studies

PLAIN = {"name": "randomized_response", "epsilon": "1"}
MEMOIZED = {
    "name": "memoized",
    "of": "randomized_response",
    "epsilon": "1",
    "instantaneous_epsilon": "0.25",
}


def asked(version, text, mechanism):
    return Study(studies.document({**studies.YES_NO, "text": text, "mechanism": mechanism}, version=version))


def answer(folder, study, *collector):
    Device(folder, "8", *collector, require_consent=False).answer(study, {"ever": True})


def test_by_a_device_that_knows_no_collector(tmp_path):
    """A permanent answer to other words, which another publisher asked, stands for none to these."""
    answer(tmp_path, asked(3, "A", MEMOIZED), "https://b.example")
    answer(tmp_path, asked(5, "B", PLAIN), "https://a.example")
    with pytest.raises(AlreadyAnsweredError):
        answer(tmp_path, asked(6, "B", MEMOIZED))


def test_rounds_of_other_words_are_still_answered(tmp_path):
    for version, text in ((1, "A"), (2, "B"), (3, "A"), (4, "B")):
        answer(tmp_path, asked(version, text, MEMOIZED), "https://a.example")
