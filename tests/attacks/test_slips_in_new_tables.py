"""Give a plan a table of other people, or a feature in bins a blank: refused, and nothing is written."""

import json

import pytest

from ldpkit.cli import main
from schemas import Study
from tests import studies

PUBLIC = [{"id": "region", "choices": ["a", "b"]}]
BINNED = {
    "id": "habits",
    "ask": "record",
    "features": [{"id": "age", "bounds": ["0", "90"], "cuts": ["30", "60"]}],
    "response": {"id": "ever", "ask": "yes_no"},
    "mechanism": {"name": "sampled_products", "epsilon": "1"},
    "model": {"name": "logistic_regression"},
}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("region,count\na,10\n,5\n", "region of the table of people is blank in 1 row"),
        ("region,count\na,10\nc,5\n", "region has 'c', which the study does not have"),
        ("region;count\na;10\nb;5\n", "separated by semicolons"),
    ],
)
def test_plan_rejects_invalid_table_of_people(tmp_path, capsys, table, said):
    study, people, out = tmp_path / "study.json", tmp_path / "people.csv", tmp_path / "plan"
    study.write_text(Study({**studies.document(studies.YES_NO), "public": PUBLIC}).to_json())
    people.write_text(table)
    command = ["plan", str(study), "--formula", "ever ~ region", "--table", str(people), "--n", "1000"]
    assert main([*command, "--out", str(out)]) == 3
    assert said in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("cell", ["", " ", "nan", "thirty"])
def test_perturb_rejects_binned_feature_without_number(tmp_path, capsys, cell):
    study, answers, out = tmp_path / "study.json", tmp_path / "answers.csv", tmp_path / "reports.ndjson"
    study.write_text(json.dumps(Study(studies.document(BINNED)).document))
    answers.write_text(f"habits.age,habits.ever\n20,yes\n{cell},yes\n")
    assert main(["perturb", str(study), str(answers), "--out", str(out)]) == 3
    assert "line 3" in capsys.readouterr().err
    assert not out.exists()
