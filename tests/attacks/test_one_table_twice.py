"""Perturbs one file of answers twice for a study, so that everybody in it counts twice and pays twice."""

import json
import os
import stat

import pytest

from ldp_client.cli import main
from tests import studies

PEOPLE = studies.document(studies.YES_NO)
HOLDERS = studies.document(studies.TABLE, **studies.HOLDER)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def perturb(study, answers, out, *options):
    with open("study.json", "w", encoding="utf-8") as file:
        json.dump(study, file)
    return main(["perturb", "study.json", answers, "--out", out, *options])


FILES = {"people": (PEOPLE, "ever\nyes\nno\n"), "holder": (HOLDERS, "t,v,pe\n" + "20,50,450\n" * 30)}


@pytest.mark.parametrize("kind", FILES)
def test_a_second_draw_is_refused_and_names_the_first(folder, capsys, kind):
    study, content = FILES[kind]
    (folder / "north.csv").write_text(content)
    os.symlink("north.csv", "other.csv")
    assert perturb(study, "north.csv", "1.ndjson") == 0
    for name in ("north.csv", "other.csv"):
        capsys.readouterr()
        assert perturb(study, name, "2.ndjson") == 3
        assert str(folder / "1.ndjson") in capsys.readouterr().err
    assert not os.path.exists("2.ndjson")
    assert perturb({**study, "version": 2}, "north.csv", "2.ndjson") == 0
    assert perturb(study, "north.csv", "3.ndjson", "--again") == 0
    (folder / "north.csv").write_text(content + content.splitlines()[-1] + "\n")
    assert perturb(study, "north.csv", "4.ndjson") == 0


def test_the_mark_has_no_answer_and_is_its_owners(folder):
    (folder / "north.csv").write_text("ever\nyes\n")
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 0
    mark = folder / "north.csv.perturbed"
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    assert sorted(json.loads(mark.read_text())) == ["answers", "reports", "study", "when"]


def test_without_a_mark_there_are_no_reports(folder, capsys):
    (folder / "north.csv").write_text("ever\nyes\n")
    (folder / "north.csv.perturbed").write_text("mine\n")
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 3
    assert "is no mark" in capsys.readouterr().err
    os.remove("north.csv.perturbed")
    os.mkdir("north.csv.perturbed")
    assert perturb(PEOPLE, "north.csv", "1.ndjson", "--again") == 3
    assert "put the answers into a folder of yours" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["north.csv", "north.csv.perturbed", "study.json"]


def test_what_was_refused_leaves_no_mark(folder):
    (folder / "north.csv").write_text("ever\nyes\nperhaps\n")
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 3
    assert not os.path.exists("north.csv.perturbed")
