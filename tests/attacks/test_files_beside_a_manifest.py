"""A summary silently misses files in a dataset's folder that its manifest does not list.

Defence: `ldpkit summarize`, `summarize_dataset`, `count_dataset`: refuse, name three of the files and say
what to do; an interrupted export gets another message. Known limit: a folder served over `http://`, whose
files cannot be listed; files that arrive while a call runs.
"""

from __future__ import annotations

import re
import shlex

import pytest

from ldp_client.documents.errors import InputError
from summaries import count_dataset, summarize_dataset
from tests.summaries.engines_data import REPORTS, RIGHT, STUDY, made, write, write_dataset

OWN = "study_id=survey"
JANUARY, FEBRUARY = "study_version=1/day=2026-01-01", "study_version=1/day=2026-02-01"


@pytest.fixture
def both(tmp_path):
    """The folder of an earlier export's manifest, with a day of a later one's."""
    write_dataset(tmp_path, REPORTS[:200])
    write(tmp_path / OWN / FEBRUARY / "part-00.parquet", REPORTS[200:])
    return tmp_path


def refusal_of(where):
    with pytest.raises(InputError) as error:
        summarize_dataset(STUDY, where)
    with pytest.raises(InputError) as again:
        count_dataset(STUDY, where, ["ever"])
    assert str(again.value) == str(error.value)
    return str(error.value)


def test_unlisted_files_in_a_dataset_are_reported_with_a_fix(both):
    said = refusal_of(both)
    assert said == refusal_of(both / OWN)
    assert said.startswith(
        f"{both / OWN} has 1 Parquet file that _manifest.json does not list: {FEBRUARY}/part-00.parquet. "
    )
    named = f"{both / OWN}/**/*.parquet"
    assert f"name the files, '{named}'," in said
    assert summarize_dataset(STUDY, named).to_json() == RIGHT


def test_suggested_pattern_works_in_folder_with_special_characters(tmp_path):
    root = tmp_path / "it's [1]*"
    write_dataset(root, REPORTS[:200])
    write(root / OWN / FEBRUARY / "part-00.parquet", REPORTS[200:])
    (said,) = re.findall(r"name the files, (.*), to have", refusal_of(root))
    (named,) = shlex.split(said)
    assert summarize_dataset(STUDY, named).to_json() == RIGHT


def test_error_names_three_of_many_unlisted_files(both):
    for number in range(1, 5):
        write(both / OWN / FEBRUARY / f"part-0{number}.parquet", made(STUDY, 1, seed=number))
    (both / OWN / JANUARY / "part-00 2.parquet").write_bytes(b"of a copy that kept both")
    said = refusal_of(both)
    assert "has 6 Parquet files that _manifest.json does not list: " in said
    assert (
        f": {JANUARY}/part-00 2.parquet, {FEBRUARY}/part-00.parquet, {FEBRUARY}/part-01.parquet and" in said
    )
    assert " and 3 others. " in said


def test_remote_store_is_listed_once_per_call(both, monkeypatch):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(f"{both}/{OWN}", f"/both/{OWN}", recursive=True)
    assert f"does not list: {FEBRUARY}/part-00.parquet. " in refusal_of("memory://both")
    memory.rm_file(f"/both/{OWN}/{FEBRUARY}/part-00.parquet")
    listed, genuine = [], type(memory).find
    monkeypatch.setattr(type(memory), "find", lambda self, at: listed.append(at) or genuine(self, at))
    assert summarize_dataset(STUDY, "memory://both").questions["ever"].n == 200
    assert listed == [f"/both/{OWN}/"]
    monkeypatch.undo()
    memory.rm("/both", recursive=True)


@pytest.mark.parametrize(
    "name",
    [
        f"study_id=other/{FEBRUARY}/part-00.parquet",
        f"{OWN}/study_id=survey/{FEBRUARY}/part-00.parquet",
        f"{OWN}/study_version=2/day=2026-02-01/part-00.parquet",
        f"{OWN}/summary.parquet",
        f"{OWN}/{JANUARY}/._part-00.parquet",
        f"{OWN}/{JANUARY}/.ldpkit-0123456789abcdef",
        f"{OWN}/study_version=1/.ipynb_checkpoints/part-00.parquet",
        f"{OWN}/study_version=1/_temporary/part-00.parquet",
    ],
)
def test_unrelated_files_in_a_dataset_are_ignored(tmp_path, name):
    write_dataset(tmp_path, REPORTS)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    assert summarize_dataset(STUDY, tmp_path).to_json() == RIGHT
