"""Publish a study of ten thousand labels in fifty languages: devices are busy, and their ledgers locked.

Defence: The Python device: what each language asks is digested once, in seconds, and before the ledger is
locked.
"""

import json
from contextlib import contextmanager

import pytest

from ldp_client import Device
from schemas import Study
from tests import studies
from tests.kit.work import counted

TAGS = [first + second for first in "abcde" for second in "abcdefghij"]
# Three times the calls that it takes, and ten times those of the ledger's transaction.
MOST_CALLS, MOST_CALLS_LOCKED = 18_000_000, 20_000
MEMOIZED = {**studies.MEMOIZED, "ask": "choice", "model": {"name": "multinomial"}}


def study_of(count, words, mechanism):
    """Under 1 MiB: the labels are the same in all languages, and the words are not where `words` says so."""
    labels = [f"{place:04}-{'x' * 80}" for place in range(9500 // count)]
    asked = [
        {**mechanism, "id": f"q{place}", "choices": labels, "text": dict.fromkeys(TAGS, "?")}
        for place in range(count)
    ]
    for question in asked if words else ():
        question["text"] = {tag: f"{question['id']} in {tag}" for tag in TAGS}
    return json.dumps(studies.document(*asked, languages=TAGS))


@pytest.mark.parametrize(
    ("mechanism", "count", "words"), [(studies.ONE_OF, 10, False), (MEMOIZED, 1, False), (MEMOIZED, 1, True)]
)
def test_many_languages_do_not_slow_device_or_hold_ledger(tmp_path, mechanism, count, words):
    locked = []

    @contextmanager
    def counting():
        before = calls.made
        with writing() as connection:
            yield connection
        locked.append(calls.made - before)

    with counted() as calls:
        study = Study.from_json(study_of(count, words, mechanism))
        device = Device(tmp_path, max_epsilon="100")
        device.accept(study)
        device.consent(study)
        writing, device.ledger.writing = device.ledger.writing, counting
        device.answer(study, {question.id: question.choices[3] for question in study.questions})
    # It took a minute and a half, and all of that in the ledger's transaction.
    assert calls.made < MOST_CALLS
    assert len(locked) == 1
    assert locked[0] < MOST_CALLS_LOCKED
