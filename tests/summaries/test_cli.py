"""Commands refuse to write their result over what they read, by any name or link."""

from __future__ import annotations

import os

import pytest

from inference.results.saving import RESULT
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.summaries.engines_data import FEW, OTHER, made, write, write_dataset

STUDY = Study(studies.document(studies.YES_NO))


@pytest.fixture
def files(tmp_path):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    mechanisms = {"ever": mechanism_for(STUDY.questions[0])}
    lines = [perturb_answers(STUDY, mechanisms, {"ever": True}).to_json() + "\n" for _ in range(5)]
    (tmp_path / "reports.ndjson").write_text("".join(lines))
    os.link(tmp_path / "reports.ndjson", tmp_path / "linked.ndjson")
    (tmp_path / "symbolic.ndjson").symlink_to("reports.ndjson")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(capsys, folder, *arguments):
    """The files are all as before, and the line says what to do."""
    before = contents(folder)
    assert main(list(map(str, arguments))) == 3
    said = capsys.readouterr().err
    assert "which this command reads: choose another file" in said
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["reports.ndjson", "study.json", "linked.ndjson"])
def test_summary_cannot_overwrite_its_sources(files, capsys, name):
    refused(capsys, files, "summarize", files / "study.json", files / "reports.ndjson", "--out", files / name)


@pytest.fixture
def dataset(tmp_path):
    """The folder of a study's dataset, which has other versions too."""
    (tmp_path / "study.json").write_text(FEW.to_json())
    write(tmp_path / "ds/study_id=survey/study_version=2/day=2026-01-01/part-00.parquet", made(OTHER, 4))
    return write_dataset(tmp_path / "ds", made(FEW, 60))


@pytest.mark.parametrize(("version", "given"), [(1, "ds"), (2, "file://{}/ds"), (1, "linked")])
def test_summary_cannot_overwrite_part_of_its_dataset(tmp_path, dataset, capsys, given, version):
    (tmp_path / "linked").symlink_to("ds")
    given = given.format(tmp_path) if "{}" in given else f"{tmp_path}/{given}"
    part = next(dataset.glob(f"study_version={version}/*/*.parquet"))
    for out in (part, dataset / "_manifest.json"):
        before = contents(tmp_path)
        assert main(["summarize", f"{tmp_path}/study.json", given, "--out", str(out)]) == 3
        assert contents(tmp_path) == before
        assert str(out) in capsys.readouterr().err


def test_summary_inside_dataset_folder_can_be_rewritten(tmp_path, dataset):
    out = dataset.parent / "summary.json"
    for _ in range(2):
        assert main(["summarize", *map(str, [tmp_path / "study.json", tmp_path / "ds", "--out", out])]) == 0
    assert out.read_text().startswith('{"digest"')


def test_second_study_cannot_overwrite_fit_of_first(files, capsys):
    (files / "fit").mkdir()
    (files / "fit" / RESULT).write_text("{}")
    refused(capsys, files, "derive", files / "study.json", files / "fit", "--out", files / "fit" / RESULT)


def test_signed_study_cannot_overwrite_key(files, capsys):
    key = files / "key.pem"
    assert main(["keygen", "--out", str(key)]) == 0
    capsys.readouterr()
    refused(capsys, files, "sign", files / "study.json", "--signing-key", key, "--out", key)
