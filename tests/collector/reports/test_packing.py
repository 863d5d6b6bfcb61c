"""Payloads and public values are packed by their places."""

from __future__ import annotations

import struct

from collector.reports.packing import OneQuestionLayout, PublicPlaces
from collector.reports.rules import Rules
from tests.kit.collectors import build_study, device_report

PUBLIC = [
    {"id": "region", "choices": ["north", 'the "south", {"digest":"', "west"]},
    {"id": "age", "bounds": ["18", "99"], "step": "0.5"},
    {"id": "stratum", "choices": ["town", "country"], "source": "ticket"},
]


def numbers(*places):
    return struct.pack(">3I", *places)


def test_public_values_are_packed_by_place():
    places = PublicPlaces(build_study(public=PUBLIC).public)
    packed = places.pack({"region": "west", "age": "99"})
    assert (packed, places.size) == (numbers(3, 163, 0), 12)
    assert places.unpack(packed) == {"region": "west", "age": "99"}
    assert places.filled(packed + b"xy", {"stratum": "country", "other": "x"}) == numbers(3, 163, 2) + b"xy"
    assert places.agrees(packed + b"x", numbers(3, 163, 2) + b"x")
    assert not places.agrees(packed + b"x", numbers(3, 162, 2) + b"x")
    assert not places.agrees(packed + b"x", numbers(3, 163, 2) + b"y")
    assert list(places.cells([numbers(1, 1, 1), numbers(1, 1, 2), numbers(3, 163, 2)])) == [0, 1, 977]


def test_questions_of_equal_size_are_not_confused():
    layout = OneQuestionLayout([("a", 2), ("b", 2), ("c", 1)])
    packed = [layout.pack(one) for one in ({"b": b"xy"}, {"c": b"z"}, {"a": b"\0\0"})]
    assert packed == [b"\x01xy", b"\x02z\x00", b"\x00\x00\x00"]
    assert [layout.asked(one) for one in packed] == ["b", "c", "a"]


def test_packed_reports_of_one_question_have_one_size():
    study = build_study(sample_one_question=True)
    rules = Rules.of(study)
    reports = [device_report(study) for _ in range(60)]
    packed = [rules.pack(report).payloads for report in reports]
    assert {len(one) for one in packed} == {rules.layout.size} == {1 + 4}
    for name, part in rules.layout.split(packed).items():
        expected = [report.payloads[name] for report in reports if name in report.payloads]
        assert [bytes(row) for row in part] == expected
