"""The holder of answers learns how many were clipped; a report does not depend on that."""

import json

import numpy as np
import pyarrow
import pytest

from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldp_client.columns.clipping import is_clipped
from ldpkit.cli import main
from tests import studies

RECORDS = {"age": [17.5, 42, 50, 29.75], "years": [0, 23, 3, 30], "rate": [1, 5, 3, 3]}
WIDE = {"norm": "1.4142135624"}


@pytest.mark.parametrize("asked", [studies.LINEAR, studies.RECORD], ids=["sums", "record"])
@pytest.mark.parametrize(("norm", "clipped"), [({}, [1, 1, 1, 1]), (WIDE, [0, 0, 1, 1])])
def test_values_beyond_bounds_or_norm_are_clipped(asked, norm, clipped):
    records = [dict(zip(RECORDS, values)) for values in zip(*RECORDS.values())]
    its = studies.question_of(asked, **norm)
    for what in (its, mechanism_for(its)):
        assert [is_clipped(what, record) for record in records] == clipped


@pytest.mark.parametrize("form", [np.asarray, list])
def test_perturb_many_warns_of_clipping_in_one_line(caplog, form):
    hours = studies.mechanism_of(studies.NUMBER)
    perturb_many(hours, form([0.0, 12.0, 12.5, -1.0, 3.0]))
    perturb_many(hours, form([0.0, 12.0]))
    rating = studies.mechanism_of(studies.LINEAR, **WIDE)
    perturb_many(
        rating,
        {name: form(column) for name, column in RECORDS.items()}
        if form is np.asarray
        else [dict(zip(RECORDS, values)) for values in zip(*RECORDS.values())],
    )
    assert caplog.messages == [
        "clipped to the study's bounds or norm: hours 2 of 5",
        "clipped to the study's bounds or norm: rating 2 of 4",
    ]


def test_every_accepted_number_type_is_counted_as_clipped(caplog):
    """pyarrow numbers do not compare with others; a huge integer does not convert to a float."""
    perturb_many(studies.mechanism_of(studies.NUMBER), pyarrow.array([3.0, 12.5]))
    rating = studies.mechanism_of(studies.RECORD, **WIDE)
    perturb_many(rating, {"age": [42, 10**400], "years": [23, 23], "rate": [5, 5]})
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


def test_file_of_answers_warns_of_clipping_per_question(tmp_path, capsys):
    document = studies.document(studies.NUMBER, studies.AGE, studies.YES_NO)
    text = "hours,age,ever\n3,20,yes\n60,20,no\n13,10,no\n"
    assert perturbed(tmp_path, document, text, capsys) == [
        "clipped to the study's bounds or norm: hours 2 of 3, age 1 of 3"
    ]


def test_no_warning_without_clipping(tmp_path, capsys):
    assert perturbed(tmp_path, studies.document(studies.NUMBER), "hours\n0\n12\n", capsys) == []


def test_table_warns_of_the_number_of_clipped_rows(tmp_path, capsys):
    document = studies.document({**studies.TABLE, **WIDE}, **studies.HOLDER)
    text = "t,v,pe\n" + "10,40,480\n" * 400 + "50,40,480\n10,40,600\n"
    assert perturbed(tmp_path, document, text, capsys) == [
        "clipped to the study's bounds or norm: power 2 of 402"
    ]
