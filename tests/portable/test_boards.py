"""examples/esp32 on MicroPython: faults of the network, a power cut at every write, and small floats."""

from __future__ import annotations

import json
import shutil
import struct

import pytest

from ldp_client.documents.errors import StudyError
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.portable.platforms import REPOSITORY, run_micropython

STUDY = Study(studies.document(studies.YES_NO, closes="2026-06-20"))
# Of the ledger: what opens a file, what writes it, and the time before and after its replacement.
STEPS_OF_A_WRITE = 4


@pytest.fixture
def trials(tmp_path):
    """A function that gives the outcome of each of these trials of a board."""

    def trials(*asked):
        folder = tmp_path / "data"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / "examples" / "esp32", folder, ignore=ignored)
        config = {"wifi": ["name", "password"], "host": "collect.example.org", "port": 443}
        (folder / "config.json").write_text(json.dumps({**config, "study": STUDY.id, "digest": STUDY.digest}))
        (folder / "roots.der").write_bytes(b"roots")
        (folder / "study.json").write_bytes(STUDY.canonical())
        (folder / "trials.json").write_text(json.dumps(asked))
        return json.loads(run_micropython(folder, (REPOSITORY / "tests/portable/board.py").read_text()))

    return trials


FAULTS = ["timeout", "reset", "server error", "portal", "proxy", "echo", "lost", "half"]


@pytest.mark.slow
def test_board_answers_once_and_retries_the_same_report(trials):
    """The fault occurs at the study fetch, or twice at the upload."""
    scripts = [[], *([fault] for fault in FAULTS), *(["well", fault, fault] for fault in FAULTS)]
    refused = {"script": ["well", "problem report-invalid"]}
    *each, rejected, withdrawn = trials(
        *[{"script": script} for script in scripts], refused, {"withdraws": True}
    )
    for found in each:
        assert (found["stored"], found["bodies"], found["left"]["outbox"]) == (1, 1, [])
        assert found["left"]["spent"] == ["survey/ever"]
    assert (rejected["stored"], rejected["puts"], rejected["left"]["outbox"]) == (0, 1, [])
    assert (withdrawn["stored"], withdrawn["deletions"], withdrawn["left"]["deletions"]) == (0, 1, [])


@pytest.mark.slow
@pytest.mark.attack(5)
def test_power_cut_at_any_write_keeps_one_report(trials):
    """A board loses its power at a write of its ledger, also after the collector's answer is lost."""
    writes = list(range(1, 3 * STEPS_OF_A_WRITE + 1))
    each = trials({"cut_at": writes, "script": ["well", "lost"]}, {"cut_at": [len(writes) + 1]})
    assert [found["cuts"] for found in each] == [1] * len(writes) + [0]
    assert {(found["stored"], found["bodies"]) for found in each} == {(1, 1)}


@pytest.mark.slow
def test_waiting_report_or_deletion_goes_to_no_other_collector(trials):
    """The board is given another host, whose collector has the same study."""
    moved = {"cut_at": [2 * STEPS_OF_A_WRITE], "then": "other.example.org"}
    (found,) = trials({**moved, "withdraws": True})
    assert (found["puts"], found["deletions"], found["cuts"]) == (0, 0, 4)
    assert len(found["left"]["deletions"]) == 1


def single(value):
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


class Single(float):
    """A float of 32 bits, as far as bounds and positions calculate with them."""

    def __new__(cls, value):
        return super().__new__(cls, single(value))

    def __sub__(self, other):
        return Single(float(self) - float(other))

    def __rsub__(self, other):
        return Single(float(other) - float(self))


@pytest.mark.attack(2)
@pytest.mark.parametrize(
    "bounds", [["-1e60", "0"], ["-3e38", "3e38"], ["16777216", "16777216.5"], ["1e-50", "2e-50"]], ids=str
)
def test_bounds_beyond_32_bit_floats_are_rejected_on_a_board(monkeypatch, bounds):
    """Bounds overflow floats of 32 bits, so that some answers end in an error, which reveals them."""
    asked = [
        {**studies.NUMBER, "bounds": bounds},
        {**studies.LINEAR, "response": {"id": "rate", "bounds": bounds}},
    ]
    for answer in (-1e300, 5, 1e300, 10**400):
        assert len(mechanism_for(Study(studies.document(asked[0])).questions[0]).perturb(answer)) == 4
    exact = Rational.__float__
    monkeypatch.setattr(Rational, "__float__", lambda self: single(exact(self)))
    monkeypatch.setattr("ldp_client.documents.fields.float", Single, raising=False)
    for question in asked:
        with raises(StudyError, "study.invalid", "bounds:"):
            Study(studies.document(question))
