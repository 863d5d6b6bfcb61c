"""A column or a small board silently changes an answer: truncated labels, times, bytes, sets.

Defence: The device, `perturb_many` and a holder's table: such columns are refused with the row, and
studies with such labels too; a whole number beyond the float range counts as beyond the bounds on every
device.
"""

import json

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core import quantise
from ldp_client.device.device import Device
from ldp_client.documents.errors import AnswerError, StudyError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.mechanisms.tables.asking import mechanism

HOURS = mechanism_for(Study(studies.document(studies.NUMBER)).questions[0])
COLOUR = mechanism_for(Study(studies.document(studies.ONE_OF)).questions[0])
NUMBERED = mechanism_for(Study(studies.document({**studies.ONE_OF, "choices": {"count": 4}})).questions[0])
RATING = mechanism_for(Study(studies.document(studies.LINEAR)).questions[0])
NOISED = mechanism_for(Study(studies.document(studies.RECORD)).questions[0])
TIMES = np.array([8, 9], "timedelta64[h]")


@pytest.mark.parametrize("place", ["question", "public", "title"])
def test_study_text_with_null_character_is_rejected(place):
    """NumPy's labels "a" and "a\\0" are one: the second would be reported as the first."""
    labels = ["a", "a\0", "b"]
    documents = {
        "question": studies.document({**studies.ONE_OF, "choices": labels}),
        "public": studies.document(studies.YES_NO, public=[{"id": "region", "choices": labels}]),
        "title": studies.document(studies.YES_NO, title="a\0b"),
    }
    with raises(StudyError, "study.invalid", "U+0000"):
        Study.from_json(json.dumps(documents[place]))


@pytest.mark.parametrize("unit", ["h", "ns"])
@pytest.mark.parametrize("kind", ["timedelta64", "datetime64"])
def test_column_of_times_is_rejected(kind, unit):
    """Some units come out of an array as whole numbers: eight hours would be 28,800,000,000,000."""
    times = TIMES.astype("timedelta64[ns]").astype(np.int64).astype(f"{kind}[{unit}]")
    for ask in (quantise_many, perturb_many):
        with raises(AnswerError, "core.times", field="hours"):
            ask(HOURS, times)
        with raises(AnswerError, "core.times", field="rating.years"):
            ask(RATING, {"age": np.array([30, 40]), "years": times, "rate": np.array([1, 2])})


# NumPy treats time differences without a unit, or with units that Python lacks, as numbers.
COUNTED = [
    np.timedelta64(4),
    *[np.timedelta64(4, unit) for unit in ("ns", "ps", "h", "M", "Y")],
    *[np.datetime64(4, unit) for unit in ("ns", "ps", "h", "Y")],
    np.timedelta64("NaT", "ns"),
]


@pytest.mark.parametrize("time", COUNTED, ids=lambda time: f"{time.dtype} {time}")
def test_single_time_in_a_list_is_rejected(time, tmp_path):
    """Four hours in nanoseconds would be clipped to the most hours that the study takes."""
    for ask in (quantise_many, perturb_many):
        for answers in ([8, time], np.array([8, time], object)):
            with raises(AnswerError, "core.row", "2: must be numbers, not times", field="hours"):
                ask(HOURS, answers)
        with raises(AnswerError, "core.numbers", field="rating.years"):
            ask(RATING, {"age": [30], "years": [time], "rate": [1]})
        with raises(AnswerError, "core.row", "times", field="wage.years"):
            ask(NOISED, {"age": [30], "years": [time], "rate": [1]})
    device = Device(tmp_path, "8", "https://collector.example", require_consent=False)
    with raises(AnswerError, "core.times", field="hours"):
        device.answer(Study(studies.document(studies.NUMBER)), {"hours": time})
    assert not device.ledger.spent()
    with raises(AnswerError, "core.row", "2", field="power.v"):
        mechanism().quantise({**studies.ROWS, "v": [1.0, time, 3.0]})


@pytest.mark.parametrize(
    "column", [{1.0, 2.0, 3.0}, frozenset((1.0, 2.0, 3.0)), {1.0: 1, 2.0: 2, 3.0: 3}, b"abc"]
)
def test_unordered_column_is_rejected(column):
    """A set's values would be matched with the wrong rows."""
    with raises(AnswerError, "core.table_column", field="power.v"):
        mechanism().quantise({**studies.ROWS, "v": column})


@pytest.mark.parametrize(
    "answers",
    ["89", b"89", bytearray(b"89"), memoryview(b"89"), {8, 9}, 8.0, np.array(8.0), None],
    # Alike in every worker: a view's repr has its address, a set's its order.
    ids=lambda answers: type(answers).__name__,
)
def test_answers_without_rows_are_rejected(answers):
    for ask in (quantise_many, perturb_many):
        with raises(AnswerError, "core.rows", field="hours"):
            ask(HOURS, answers)


def test_clipped_answers_of_a_generator_are_counted(caplog):
    assert len(perturb_many(HOURS, (hours for hours in (1, 99)))) == 2
    assert "hours 1 of 2" in caplog.text


def test_unknown_label_is_reported_with_its_row():
    labels = np.array([*COLOUR.labels, "no such colour", COLOUR.labels[0]])
    with raises(AnswerError, "core.row", "4: must be one of its"):
        perturb_many(COLOUR, labels)
    with raises(AnswerError, "core.row", "2: must be a whole number from 0 to 3"):
        perturb_many(NUMBERED, np.array([3, 4, 0]))


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_number_above_float_range_is_clipped_to_the_bounds(monkeypatch, sign):
    """Some floats overflow to infinity in silence, which was refused: an error that tells of the answer."""
    expected = HOURS.quantise(sign * 10**400)

    class Silent(float):
        def __new__(cls, value):
            try:
                return float(value)
            except OverflowError:
                return float("inf") * sign

    monkeypatch.setattr(quantise, "float", Silent, raising=False)
    assert HOURS.quantise(sign * 10**400) == expected
    with raises(AnswerError, "core.infinite"):
        HOURS.quantise(float("inf"))
