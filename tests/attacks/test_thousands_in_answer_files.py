"""Write 2.500 for 2500 in answers that go behind noise, in a file or one by one: it was taken for 2.5.

Defence: `ldpkit perturb` and `ldpkit answer`: refuse such a column by the same rule before any noise is
drawn, and such a value as the participants' page does.
"""

import pytest

from ldp_client.documents.errors import AnswerError
from ldp_client.files.answers import values_from_text
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server

AGE = {"id": "age", "bounds": ["0", "1000"], "step": "0.01"}
PEOPLE = Study(studies.document({**studies.NUMBER, "bounds": ["0", "10000"]}, studies.LINEAR, public=[AGE]))
HOLDER = Study(studies.document(studies.TABLE, **studies.HOLDER))
ROW = {"hours": "3", "rating.age": "30", "rating.years": "4", "rating.rate": "2", "age": "30"}
SAID = "exactly three digits follow each point"


def perturbed(folder, study, columns, values):
    """`ldpkit perturb` of a file in which these values stand in all columns, or in those of that name."""
    (folder / "study.json").write_text(study.to_json())
    rows = [",".join(columns)]
    rows += [",".join(one.get(column, "3") for column in columns) for one in values]
    (folder / "answers.csv").write_text("\n".join(rows) + "\n")
    given = [str(folder / "study.json"), str(folder / "answers.csv"), "--out", str(folder / "out.ndjson")]
    return main(["perturb", *given])


@pytest.mark.parametrize("column", ["hours", "rating.years", "rating.rate", "age"])
@pytest.mark.parametrize("second", ["1.250", "950", "2.000"])
def test_ambiguous_number_column_is_rejected(tmp_path, capsys, column, second):
    values = [{**ROW, column: one} for one in ("2.500", second)]
    assert perturbed(tmp_path, PEOPLE, list(ROW), values) == 3
    assert f"answers.csv: {column}: {SAID}" in capsys.readouterr().err
    # Nothing was drawn, and nothing says so.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "study.json"]


@pytest.mark.parametrize("other", ["2.5", "0.500", "1250", "2.5000", "2.50"])
def test_one_clear_decimal_makes_column_unambiguous(tmp_path, other):
    values = [{**ROW, "hours": one} for one in ("2.500", other)]
    assert perturbed(tmp_path, PEOPLE, list(ROW), values) == 0


def test_ambiguous_column_of_data_holder_is_rejected(tmp_path, capsys):
    columns = [field.id for field in HOLDER.questions[0].fields]
    column = columns[-1]
    # Also where only a later part of the file has them.
    values = [{}] * 9000 + [{column: "1.250"}] * 3
    assert perturbed(tmp_path, HOLDER, columns, values) == 3
    assert f"answers.csv: {column}: {SAID}" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "study.json"]
    assert perturbed(tmp_path, HOLDER, columns, [*values, {column: "1.25"}]) == 0


@pytest.mark.parametrize("number", ["2.500", "2,500", "-1.500"])
@pytest.mark.parametrize("column", ["hours", "rating.years", "age"])
def test_ambiguous_single_value_is_rejected(column, number):
    with raises(AnswerError, "files.two_readings", field=column) as refused:
        values_from_text(PEOPLE, {**ROW, column: number})
    assert number not in str(refused.value)


def test_answer_command_rejects_ambiguous_value_before_noise(tmp_path, capsys):
    study = Study(studies.document({**studies.NUMBER, "bounds": ["0", "10000"]}))
    with Server(study.canonical()) as server:
        command = [
            "answer",
            "--max-epsilon",
            "8",
            f"{server.url}/v1/studies/survey",
            "--folder",
            str(tmp_path),
            "--yes",
        ]
        assert main([*command, "--set", "hours=2.500"]) == 3
        assert f"hours: {SAID}" in capsys.readouterr().err
        assert main([*command, "--set", "hours=2.5000"]) in (0, 5)
