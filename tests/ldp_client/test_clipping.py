"""Whoever holds the answers is told how many were clipped; a report is the same either way."""

import json

import numpy as np
import pyarrow
import pytest

from ldp_client import mechanism_for
from ldp_client.cli import main
from ldp_client.columns.clipping import is_clipped
from schemas import Study
from tests import studies

RECORDS = {"age": [17.5, 42, 50, 29.75], "years": [0, 23, 3, 30], "rate": [1, 5, 3, 3]}
WIDE = {"norm": "1.4142135624"}


def question(asked, **changes):
    return Study(studies.document({**asked, **changes})).questions[0]


@pytest.mark.parametrize("asked", [studies.LINEAR, studies.RECORD], ids=["sums", "record"])
@pytest.mark.parametrize(("norm", "clipped"), [({}, [1, 1, 1, 1]), (WIDE, [0, 0, 1, 1])])
def test_beyond_bounds_or_norm(asked, norm, clipped):
    records = [dict(zip(RECORDS, values)) for values in zip(*RECORDS.values())]
    its = question(asked, **norm)
    for what in (its, mechanism_for(its)):
        assert [is_clipped(what, record) for record in records] == clipped


@pytest.mark.parametrize("form", [np.asarray, list])
def test_many_at_once_say_it_in_one_line(caplog, form):
    hours = mechanism_for(question(studies.NUMBER))
    hours.perturb_many(form([0.0, 12.0, 12.5, -1.0, 3.0]))
    hours.perturb_many(form([0.0, 12.0]))
    rating = mechanism_for(question(studies.LINEAR, **WIDE))
    rating.perturb_many(
        {name: form(column) for name, column in RECORDS.items()}
        if form is np.asarray
        else [dict(zip(RECORDS, values)) for values in zip(*RECORDS.values())]
    )
    assert caplog.messages == [
        "clipped to the study's bounds or norm: hours 2 of 5",
        "clipped to the study's bounds or norm: rating 2 of 4",
    ]


def test_what_is_taken_as_a_number_is_counted_as_one(caplog):
    """pyarrow's numbers compare with no other; a whole number beyond all floats becomes none."""
    mechanism_for(question(studies.NUMBER)).perturb_many(pyarrow.array([3.0, 12.5]))
    rating = mechanism_for(question(studies.RECORD, **WIDE))
    rating.perturb_many({"age": [42, 10**400], "years": [23, 23], "rate": [5, 5]})
    assert caplog.messages == [
        "clipped to the study's bounds or norm: hours 1 of 2",
        f"clipped to the study's bounds or norm: {rating.field} 1 of 2",
    ]


def perturbed(folder, document, text, capsys):
    (folder / "study.json").write_text(json.dumps(document))
    (folder / "answers.csv").write_text(text)
    arguments = [str(folder / "study.json"), str(folder / "answers.csv"), "--out", str(folder / "out.ndjson")]
    assert main(["perturb", *arguments]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if "clipped" in line]


def test_a_file_of_answers_says_it_for_each_question(tmp_path, capsys):
    document = studies.document(studies.NUMBER, studies.AGE, studies.YES_NO)
    text = "hours,age,ever\n3,20,yes\n60,20,no\n13,10,no\n"
    assert perturbed(tmp_path, document, text, capsys) == [
        "clipped to the study's bounds or norm: hours 2 of 3, age 1 of 3"
    ]


def test_nothing_is_said_where_nothing_was_clipped(tmp_path, capsys):
    assert perturbed(tmp_path, studies.document(studies.NUMBER), "hours\n0\n12\n", capsys) == []


def test_a_table_says_how_many_of_its_rows(tmp_path, capsys):
    document = studies.document({**studies.TABLE, **WIDE}, **studies.HOLDER)
    text = "t,v,pe\n" + "10,40,480\n" * 400 + "50,40,480\n10,40,600\n"
    assert perturbed(tmp_path, document, text, capsys) == [
        "clipped to the study's bounds or norm: power 2 of 402"
    ]
