"""Reading a table: the same integers by every way, and one clear line for what is wrong with it."""

import sys

import numpy as np
import pandas as pd
import pytest

from ldp_client.documents.errors import AnswerError, MissingExtraError
from ldp_client.mechanisms.tables import rows
from ldp_client.words.text import say
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.mechanisms.tables.asking import mechanism, random_places, table

COLUMNS = table(random_places(1000))


class InParts:
    def __init__(self, columns, size):
        self.columns, self.size = columns, size

    def chunks(self):
        for start in range(0, 1000, self.size):
            yield {name: column[start : start + self.size] for name, column in self.columns.items()}


@pytest.mark.parametrize("average", [1, 7, 300, 1000])
def test_lists_arrays_and_parts_give_the_same_sums(average):
    m = mechanism(**({} if average == 1 else {"average": average}))
    lists = {name: column.tolist() for name, column in COLUMNS.items()}
    wanted = m.quantise(COLUMNS)
    ways = [lists, InParts(lists, 100), InParts(COLUMNS, 301), {name: tuple(c) for name, c in lists.items()}]
    # A column of mixed kinds goes row by row.
    ways += [{**lists, "t": [np.float64(value) for value in lists["t"]]}]
    for way in ways:
        found = m.quantise(way)
        assert (found.count, found.sums) == (wanted.count, wanted.sums)
    assert wanted.count == 1000 // average * average


def test_large_groups_are_summed_exactly_and_smaller_tables_refused():
    """Group sums beyond one limb: 20,000 rows a group, all at their upper bounds."""
    m = mechanism(average=20_000, intercept=False, norm="2")
    high = {"t": np.full(40_000, 40.0), "v": np.full(40_000, 80.0), "pe": np.full(40_000, 500.0)}
    assert m.quantise(high).sums == [2 * (20_000 << 20) ** 2] * 6
    with raises(AnswerError, "core.table_groups", "20000"):
        m.quantise(studies.ROWS)


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({**studies.ROWS, "t": [1, "77.5", 3]}, "power.t", "row 2: must be a number"),
        ({**studies.ROWS, "t": [1, True, 3]}, "power.t", "row 2: must be a number"),
        ({**studies.ROWS, "t": "123"}, "power.t", "must be a column of numbers"),
        ({**studies.ROWS, "t": {1.0: 1, 2.0: 2, 3.0: 3}}, "power.t", "must be a column of numbers"),
        ({**studies.ROWS, "v": [1.0]}, "power.v", "must have as many rows as the other columns"),
        ({"t": [1.0], "pe": [450.0]}, "power.v", "the table has no such column"),
        ({**studies.ROWS, "weight": [1, 2, 3]}, "power", "the study does not ask for the column 'weight'"),
        ({"t": [], "v": [], "pe": []}, "power", "the table has no rows"),
        ([1, 2, 3], "power", "must be a table: {field: column of numbers, …}"),
    ],
)
def test_table_error_names_the_problem_without_values(given, field, problem):
    with pytest.raises(AnswerError) as caught:
        mechanism().quantise(given)
    assert (caught.value.field, caught.value.problem) == (field, problem)


def test_a_table_in_memory_is_read_in_parts(monkeypatch):
    m = mechanism(average=7)
    wanted = m.quantise(COLUMNS)
    monkeypatch.setattr(rows, "PART", 300)
    lists = {name: column.tolist() for name, column in COLUMNS.items()}
    for way in (COLUMNS, lists):
        assert m.quantise(way).sums == wanted.sums
    nan, infinite = float("nan"), float("-inf")
    for bad, problem in ((None, "core.missing"), (nan, "core.missing"), (infinite, "core.infinite")):
        lists["v"][617] = lists["v"][901] = bad
        column = np.asarray(lists["v"], float)
        for way in (lists, {**COLUMNS, "v": column}, InParts({**COLUMNS, "v": column}, 300)):
            with raises(AnswerError, "core.row", "618", say(problem), field="power.v"):
                m.quantise(way)


@pytest.mark.parametrize("kind", ["mask", "Int64", "Float64"])
@pytest.mark.parametrize("size", [10, 1000])
def test_a_masked_value_or_blank_is_missing(kind, size):
    """Whatever lies under it, in small tables and in large ones."""
    part = {name: column[:size] for name, column in COLUMNS.items()}
    if kind == "mask":
        whole, blank = (np.ma.masked_array(part["v"], np.arange(size) == place) for place in (size, 6))
    else:
        whole = pd.Series(np.rint(part["v"]), dtype=kind)
        blank = whole.mask(whole.index == 6)
    with raises(AnswerError, "core.row", f"7: {say('core.missing')}", field="power.v"):
        mechanism().quantise({**part, "v": blank})
    same = mechanism().quantise({**part, "v": np.asarray(whole, float)})
    assert mechanism().quantise({**part, "v": whole}).sums == same.sums


def test_a_table_without_numpy_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with raises(MissingExtraError, "extra.missing", "'ldpkit[tables]'"):
        mechanism().quantise(studies.ROWS)
