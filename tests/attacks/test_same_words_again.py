"""Have one device answer the same words twice, which reveals more than it spent.

Defence: The device: a permanent answer to other words does not count for these words.
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


def test_device_without_collector_does_not_answer_same_words_twice(tmp_path):
    """A permanent answer to another publisher's other words does not count for these words."""
    answer(tmp_path, asked(3, "A", MEMOIZED), "https://b.example")
    answer(tmp_path, asked(5, "B", PLAIN), "https://a.example")
    with pytest.raises(AlreadyAnsweredError):
        answer(tmp_path, asked(6, "B", MEMOIZED))


def test_rounds_with_alternating_words_are_answered(tmp_path):
    for version, text in ((1, "A"), (2, "B"), (3, "A"), (4, "B")):
        answer(tmp_path, asked(version, text, MEMOIZED), "https://a.example")
