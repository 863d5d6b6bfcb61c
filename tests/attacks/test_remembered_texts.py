"""Fill a collector's memory with texts of public values, which it keeps because the same come again.

Defence: The collector: remembers only what the study lists, 4 MB for a version at most, and reads nothing
longer than the longest values.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from contextlib import contextmanager

import pytest

from collector.reports.canonical_form import MOST_REMEMBERED_BYTES
from collector.reports.rules import Rules
from ldp_client.answering import perturb_answers
from ldp_client.mechanisms import mechanisms_of
from tests.collector.conftest import ANSWERS, build_study

REGION = {"id": "region", "choices": ["north", "south"]}
SENDS = 60
BYTES = 200_000


@contextmanager
def keeping_less_than(most):
    """What is kept once the block is left is less."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < most


@pytest.fixture
def send(empty):
    """Upload a report's canonical text with any text for its public values; the answer's status."""
    study = build_study(public=[REGION])
    empty.publish(study)
    honest = perturb_answers(study, mechanisms_of(study), {**ANSWERS, "region": "north"})
    text = honest.to_json().rstrip()

    def put(public):
        report_id = os.urandom(16).hex()
        body = text.replace(honest.id, report_id).replace('{"region":"north"}', public)
        path = f"/v1/studies/habits/reports/{report_id}"
        return empty.app.test_client().put(path, data=body, content_type="application/json").status_code

    assert put('{"region":"south"}') == 201
    return put


@pytest.mark.slow
@pytest.mark.parametrize("junk", ["z%s", '{"region":"%s"}'])
def test_junk_values_are_rejected_and_not_cached(send, junk):
    with keeping_less_than(BYTES * SENDS / 10):
        for number in range(SENDS):
            assert send(junk % ("x" * BYTES + str(number))) in (400, 422)


@pytest.mark.parametrize("public", ["[" * 100_000, "[" * 15, '{"a":' * 3, '{"region":"\\ud800"}', "1" * 15])
def test_public_part_that_is_not_an_object_is_rejected(send, public):
    assert send(public) in (400, 413, 422)


@pytest.mark.slow
def test_cache_of_listed_values_stays_within_limit():
    """The long labels have more combinations than fit into memory."""
    fields = [{"id": f"f{n}", "choices": ["𝄞" * 199 + end for end in "ab"]} for n in range(16)]
    study = build_study(public=fields)
    rules = Rules.of(study)
    report = perturb_answers(
        study, mechanisms_of(study), {**ANSWERS, **{field["id"]: field["choices"][0] for field in fields}}
    )
    first = report.to_json()
    sends = 2 * MOST_REMEMBERED_BYTES // len(first.encode())
    with keeping_less_than(1.5 * MOST_REMEMBERED_BYTES):
        for number in range(sends):
            other = first
            for bit, field in enumerate(fields):
                head = f'"{field["id"]}":"'
                other = other.replace(head + field["choices"][0], head + field["choices"][number >> bit & 1])
            assert rules.form.read(other.encode()) is not None
