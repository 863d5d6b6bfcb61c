"""Bounds that overflow 32-bit floats on a board cause an error for some answers, which reveals the answer."""

import struct

import pytest

from ldp_client.core.quantise import grid_index
from ldp_client.documents.errors import StudyError
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.kit.errors import raises


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


BOUNDS = [
    ["-1e60", "0"],
    ["0", "1e39"],
    ["-3e38", "3e38"],
    ["16777216", "16777216.5"],
    ["1e-50", "2e-50"],
    ["-1e60", "1e60"],
]
QUESTIONS = [
    lambda bounds: {**studies.NUMBER, "bounds": bounds},
    lambda bounds: {**studies.LINEAR, "features": [{"id": "age", "bounds": bounds}]},
    lambda bounds: {**studies.LINEAR, "response": {"id": "rate", "bounds": bounds}},
]


@pytest.fixture
def small_board(monkeypatch):
    """float() gives a plain float in CPython, so what the bounds are read as is replaced."""
    exact = Rational.__float__
    monkeypatch.setattr(Rational, "__float__", lambda self: single(exact(self)))
    monkeypatch.setattr("ldp_client.documents.fields.float", Single, raising=False)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_bounds_beyond_32_bit_floats_are_rejected_on_a_board(small_board, bounds, question):
    del small_board
    with raises(StudyError, "study.invalid", "bounds:"):
        Study(studies.document(question(bounds)))


@pytest.mark.parametrize("bounds", [["-1e60", "0"], ["0", "1e39"], ["16777216", "16777216.5"]], ids=str)
def test_bounds_beyond_32_bit_floats_work_on_other_devices(bounds):
    asked = Study(studies.document({**studies.NUMBER, "bounds": bounds})).questions[0]
    for answer in (-1e300, -1.0, 0.0, 5, 1e300, 10**400):
        assert len(mechanism_for(asked).perturb(answer)) == 4


@pytest.mark.parametrize("low", [float("-inf"), float("nan"), -1e308])
@pytest.mark.parametrize(
    "answer", [-(10**400), -5.0, 0.0, 1e308, 10**400], ids=["-huge", "-5", "0", "1e308", "huge"]
)
def test_grid_index_stays_on_the_grid_for_extreme_bounds(low, answer):
    assert 0 <= grid_index(answer, (low, 1e308), 1000, "hours") <= 1000
