"""A label that looks like a blank, such as NA for Namibia, is dropped or refused as if it were one.

Defence: `ldpkit fit`, `ldpkit plan`: only an empty cell is blank; reject such a word, unless the study or
design lists it as a label.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.population import Population, people_of
from inference.analyses.survey import DROP, load_survey, load_waves, read_frame
from inference.analyses.table import Table, table_of
from inference.design.possible_reports import possible_of_design, possible_of_study
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.answers import read_answers
from schemas import Study
from tests import studies
from tests.kit.channels import known_channel
from tests.kit.errors import raises

SPELLINGS = ["NA", "n/a", "nan", "null"]
spelt = pytest.mark.parametrize("label", SPELLINGS)
THIRDS = [["4/6", "1/6", "1/6"], ["1/6", "4/6", "1/6"], ["1/6", "1/6", "4/6"]]
FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]


def asked(label: str, **more: Any) -> Study:
    """A choice and a public choice with the label."""
    choice = {**studies.CHOICE, "id": "job", "choices": ["no", "yes", label]}
    public = [{"id": "land", "choices": ["ZA", label]}]
    return Study(studies.document(choice, public=public, **more))


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def lands(*levels: str) -> Table:
    """Twenty reports of each land, as a study lists them."""
    listed = pd.Categorical(list(levels) * 20, categories=list(levels))
    frame = pd.DataFrame({"land": listed, "town": [f"{level}" for level in listed]})
    return table_of(frame, [known_channel("armed", ("no", "yes"), [0, 1] * (len(frame) // 2), FORCED)])


@spelt
@pytest.mark.parametrize("formula", ["armed ~ land", "armed ~ 1 + (1 | land)", "armed ~ town"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_census_counts_people_with_blank_like_label(
    label: str, formula: str, kind: str, tmp_path: Path
) -> None:
    path = str(tmp_path / f"census.{kind}")
    rows = pd.DataFrame({"land": ["ZA", label], "town": ["ZA", label], "count": [200, 100]})
    rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    table = lands("ZA", label)
    frame, counts = people_of(assemble(table, formula), table, Population(census=read_frame(path)))
    column = "town" if "town" in formula else "land"
    assert (list(frame[column]), list(counts)) == (["ZA", label], [200, 100])


@spelt
def test_census_keeps_leading_zeros_with_blank_like_label(label: str, tmp_path: Path) -> None:
    path = written(tmp_path, "census.csv", f"land,count\n01,200\n{label},100\n")
    table = lands("01", label)
    frame, _ = people_of(assemble(table, "armed ~ land"), table, Population(census=read_frame(path)))
    assert list(frame["land"]) == ["01", label]


@spelt
def test_census_with_unlisted_word_for_missing_is_rejected(label: str, tmp_path: Path) -> None:
    path = written(tmp_path, "census.csv", f"land,count\nZA,200\n{label},100\n")
    over, table = Population(census=read_frame(path)), lands("ZA", "BW")
    with raises(InputError, "table.columns_invalid", "the census: column land", label):
        people_of(assemble(table, "armed ~ land"), table, over)
    over, table = Population(census=pd.read_csv(path)), lands("ZA", label)
    with raises(InputError, "table.blank_cells", "1", "blank"):
        people_of(assemble(table, "armed ~ land"), table, over)
    over = Population(census=pd.read_csv(path, keep_default_na=False))
    assert list(people_of(assemble(table, "armed ~ land"), table, over)[0]["land"]) == ["ZA", label]
    empty = Population(census=read_frame(written(tmp_path, "empty.csv", "land,count\nZA,2\n,1\n")))
    with raises(InputError, "table.blank_cells", "1"):
        people_of(assemble(table, "armed ~ land"), table, empty)


@spelt
@pytest.mark.parametrize("column", ["town", "age"])
@pytest.mark.parametrize("blanks", ["error", DROP])
def test_table_with_unlisted_word_for_missing_is_rejected(
    label: str, column: str, blanks: str, tmp_path: Path
) -> None:
    design = tmp_path / "design.json"
    design.write_bytes(design_of("yes"))
    rows = f"town,age,armed\nA,30,no\nB,31,yes\n{label if column == 'town' else 'A'},"
    path = written(tmp_path, "table.csv", f"{rows}{label if column == 'age' else 32},no\n")
    with raises(InputError, "table.columns_invalid", f"column {column}", label):
        load_survey(path, str(design), f"armed ~ {column}", blanks)


def design_of(label: str, **rows: str) -> bytes:
    matrix = [["5/6", "1/6"], ["1/6", "5/6"]]
    column = {"answers": ["no", "yes"], "reports": ["no", label], "matrix": matrix}
    if rows:
        groups = [{"rows": {"land": "ZA"}, "matrix": matrix}, {"rows": rows, "matrix": matrix}]
        column = {"answers": ["no", "yes"], "reports": ["no", label], "matrices": groups}
    return json.dumps({"format": "ldpkit.design/1", "columns": {"armed": column}}).encode()


@spelt
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_table_report_may_be_a_blank_like_label(label: str, kind: str, tmp_path: Path) -> None:
    design = tmp_path / "design.json"
    design.write_bytes(design_of(label))
    path = str(tmp_path / f"table.{kind}")
    rows = pd.DataFrame({"age": [30, 41, 52], "armed": ["no", label, label]})
    rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    table, _ = load_survey(path, str(design), "armed ~ age")
    assert table.private["armed"].codes.tolist() == [0, 1, 1]
    other = rows.assign(age=[31, 44, 50], armed=[label, "no", label])
    later = str(tmp_path / f"later.{kind}")
    other.to_csv(later, index=False) if kind == "csv" else other.to_parquet(later)
    both, _ = load_waves({"1": path, "2": later}, str(design), "armed ~ wave", "error", ())
    # Each wave has its own two vectors.
    assert (both.private["armed"].codes % 2).tolist() == [0, 1, 1, 1, 0, 1]


@spelt
@pytest.mark.parametrize("one", ["1", "1.0"])
def test_waves_may_mix_number_codes_and_blank_like_label(label: str, one: str, tmp_path: Path) -> None:
    """A wave without the label has numbers, and one with it has words."""
    column = {"answers": ["a", "b", "c"], "reports": ["1", "2", label], "matrix": THIRDS}
    design = tmp_path / "design.json"
    design.write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"armed": column}}))
    first = written(tmp_path, "a.csv", f"age,armed\n31,{one}\n42,{label}\n53,2\n")
    second = written(tmp_path, "b.csv", "age,armed\n34,1\n45,2\n56,1\n")
    for waves in ({"a": first, "b": second}, {"b": second, "a": first}):
        both, _ = load_waves(waves, str(design), "armed ~ wave", "error", ())
        codes = {"a": [0, 2, 1], "b": [0, 1, 0]}
        expected = [place for name in waves for place in codes[name]]
        assert (both.private["armed"].codes % 3).tolist() == expected
        assert "armed" not in both.alike


@spelt
def test_table_of_people_for_plan_may_have_blank_like_label(label: str, tmp_path: Path) -> None:
    known = read_frame(written(tmp_path, "people.csv", f"land,count\nZA,2\n{label},1\n"))
    assert set(possible_of_study(asked(label), "job ~ land", known).table.public["land"]) == {"ZA", label}
    lost = pd.read_csv(tmp_path / "people.csv")
    with raises(InputError, "table.blank_cells", "land of the table of people"):
        possible_of_study(asked(label), "job ~ land", lost)


@spelt
def test_design_rows_may_have_a_blank_like_label(label: str, tmp_path: Path) -> None:
    design = tmp_path / "design.json"
    design.write_bytes(design_of("yes", land=label))
    path = written(tmp_path, "table.csv", f"land,armed\nZA,no\n{label},yes\n{label},no\n")
    table, read = load_survey(path, str(design), "armed ~ land")
    assert list(table.public["land"]) == ["ZA", label, label]
    possible = possible_of_design(read, "armed ~ land", read_frame(path))
    assert set(possible.table.public["land"]) == {"ZA", label}


@spelt
def test_answer_file_distinguishes_label_from_blank(label: str, tmp_path: Path) -> None:
    choice = {**studies.CHOICE, "id": "job", "choices": ["no", "yes", label], "refusal": True}
    study = Study(studies.document(choice, public=[{"id": "land", "choices": ["ZA", label]}]))
    path = written(tmp_path, "answers.csv", f"job,land\n{label},{label}\nno,ZA\n")
    read = [answers for _, answers in read_answers(study, path)]
    assert read == [{"job": label, "land": label}, {"job": "no", "land": "ZA"}]
    path = written(tmp_path, "answers.csv", f"job,land\n,{label}\n{label},ZA\n")
    read = [answers for _, answers in read_answers(study, path, refusals=True)]
    assert [one["job"] for one in read] == [None, label]
    with pytest.raises((InputError, AnswerError)):
        list(read_answers(study, path))
