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


def test_perturb_many_warns_of_clipping_in_one_line(caplog):
    """pyarrow numbers do not compare with others; a huge integer does not convert to a float."""
    hours = studies.mechanism_of(studies.NUMBER)
    for answers in (np.asarray([0.0, 12.5, -1.0]), [0.0, 12.5, -1.0], pyarrow.array([3.0, 12.5, -1.0])):
        perturb_many(hours, answers)
    perturb_many(hours, [0.0, 12.0])
    for asked, columns in (
        (studies.LINEAR, {name: np.asarray(column) for name, column in RECORDS.items()}),
        (studies.RECORD, {"age": [42, 10**400], "years": [23, 23], "rate": [5, 5]}),
    ):
        perturb_many(studies.mechanism_of(asked, **WIDE), columns)
    assert [line.partition(": ")[2] for line in caplog.messages] == [
        *["hours 2 of 3"] * 3,
        "rating 2 of 4",
        "wage 1 of 2",
    ]


@pytest.mark.parametrize(
    ("document", "text", "warned"),
    [
        (studies.document(studies.NUMBER), "hours\n0\n12\n", None),
        (
            studies.document(studies.NUMBER, studies.AGE, studies.YES_NO),
            "hours,age,ever\n3,20,yes\n60,20,no\n13,10,no\n",
            "hours 2 of 3, age 1 of 3",
        ),
        (
            studies.document({**studies.TABLE, **WIDE}, **studies.HOLDER),
            "t,v,pe\n" + "10,40,480\n" * 400 + "50,40,480\n10,40,600\n",
            "power 2 of 402",
        ),
    ],
)
def test_file_of_answers_warns_of_clipping_per_question(tmp_path, capsys, document, text, warned):
    (tmp_path / "study.json").write_text(json.dumps(document))
    (tmp_path / "answers.csv").write_text(text)
    paths = [str(tmp_path / name) for name in ("study.json", "answers.csv", "out.ndjson")]
    assert main(["perturb", *paths[:2], "--out", paths[2]]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "clipped" in line]
    assert said == ([f"clipped to the study's bounds or norm: {warned}"] if warned else [])
