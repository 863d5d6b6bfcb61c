"""Perturbs one file of answers twice for a study, so that everybody in it counts twice and pays twice."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.cli import main
from ldp_client.files import batch
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
    assert perturb(study, "north.csv", "3.ndjson", "--again") == 0


GREW = "ever\nyes\nno\nno\n"
LATER = {"version": 2, "title": "Once more"}
OTHER_ID = [{**PEOPLE["questions"][0], "id": "smoked", "text": " do you SMOKE "}]


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        (GREW, {}),
        ("ever\r\nyes\r\nno\r\n", {}),
        ("ever\nyes\nyes\n", {}),
        (None, LATER),
        (GREW, LATER),
        (None, {"questions": [*PEOPLE["questions"], {**studies.NUMBER}]}),
        ("smoked\nyes\nno\n", {"questions": OTHER_ID}),
    ],
    ids=["grew", "saved again", "edited", "later version", "both", "one more question", "other id"],
)
def test_what_may_be_the_same_people_is_refused(folder, capsys, content, changes):
    first = {**PEOPLE, "questions": [{**PEOPLE["questions"][0], "text": "Do you smoke?"}]}
    (folder / "north.csv").write_text("ever\nyes\nno\n")
    assert perturb(first, "north.csv", "1.ndjson") == 0
    if content:
        (folder / "north.csv").write_bytes(content.encode())
    assert perturb({**first, **changes}, "north.csv", "2.ndjson") == 3
    assert "give the answers of other people a file of another name" in capsys.readouterr().err


def test_other_questions_and_studies_are_taken(folder):
    (folder / "north.csv").write_text("ever\nyes\nno\n")
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 0
    assert perturb({**PEOPLE, "id": "another"}, "north.csv", "2.ndjson") == 0
    (folder / "north.csv").write_text("hours\n3\n4\n")
    assert perturb({**PEOPLE, "version": 2, "questions": [studies.NUMBER]}, "north.csv", "3.ndjson") == 0


def test_of_two_at_once_one_draws(folder, capsys, monkeypatch):
    (folder / "north.csv").write_text("ever\nyes\nno\n")
    perturb_people, codes = batch.perturb_people, []

    def meanwhile(*given, **named):
        if not codes:
            codes.append(None)
            codes[0] = perturb(PEOPLE, "north.csv", "2.ndjson", "--again")
        return perturb_people(*given, **named)

    monkeypatch.setattr(batch, "perturb_people", meanwhile)
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 0
    assert codes == [3]
    assert "another draw from north.csv is under way" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["1.ndjson", "north.csv", "north.csv.perturbed", "study.json"]


@pytest.mark.parametrize("out", ["north.csv.perturbed", "north.csv.perturbing", "./north.csv.perturbed"])
def test_reports_do_not_take_the_marks_name(folder, out):
    (folder / "north.csv").write_text("ever\nyes\nno\n")
    assert perturb(PEOPLE, "north.csv", out) == 3
    assert sorted(os.listdir()) == ["north.csv", "study.json"]


@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize("kind", FILES)
def test_reports_that_do_not_stand_leave_no_mark(folder, monkeypatch, kind, earlier):
    study, content = FILES[kind]
    (folder / "north.csv").write_text(content)
    if earlier:
        assert perturb({**study, "id": "earlier"}, "north.csv", "0.ndjson") == 0
    mark = folder / "north.csv.perturbed"
    before = mark.read_bytes() if earlier else None

    def full(*_):
        raise OSError(28, "No space left on device")

    for way in ("link", "replace"):
        monkeypatch.setattr(f"ldp_client.files.disk.os.{way}", full)
    assert perturb(study, "north.csv", "1.ndjson") == 3
    assert (mark.read_bytes() if mark.exists() else None) == before
    assert not os.path.exists("1.ndjson")
    monkeypatch.undo()
    assert (
        main(["perturb", str(folder / "study.json"), str(folder / "north.csv"), "--out", str(folder / "2")])
        == 0
    )


def test_the_mark_has_no_answer_and_is_its_owners(folder):
    (folder / "north.csv").write_text("ever\nyes\n")
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 0
    mark = folder / "north.csv.perturbed"
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    assert sorted(json.loads(mark.read_text())) == [
        "asked",
        "id",
        "names",
        "reports",
        "study",
        "version",
        "when",
    ]


def test_a_question_without_words_in_two_languages_is_marked(folder):
    """What it asks is the study's title, of which there are two."""
    titled = {"title": {"en": "Loans", "de": "Kredite"}, "languages": ["en", "de"]}
    (folder / "loans.json").write_text(json.dumps({**studies.document(studies.YES_NO), **titled}))
    (folder / "loans.csv").write_text("ever\nyes\n")
    assert main(["perturb", "loans.json", "loans.csv", "--out", "1.ndjson"]) == 0
    (entry,) = [json.loads(line) for line in Path("loans.csv.perturbed").read_text().splitlines()]
    assert len(entry["names"]) == 3


def test_without_a_mark_there_are_no_reports(folder, capsys):
    (folder / "north.csv").write_text("ever\nyes\n")
    for text in ("mine", '{"names": 5}'):
        (folder / "north.csv.perturbed").write_text(f"{text}\n")
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


def test_reports_that_went_down_a_broken_pipe_are_reports(folder):
    """Whoever read them has them: the next draw is a second one."""
    (folder / "north.csv").write_text("ever\n" + "yes\n" * 3000)
    (folder / "study.json").write_text(json.dumps(PEOPLE))
    command = f"{sys.executable} -m ldp_client.cli perturb study.json north.csv --out - | head -c 300"
    some = subprocess.run(["bash", "-c", command], capture_output=True, check=False).stdout
    assert some.startswith(b'{"digest"')
    assert perturb(PEOPLE, "north.csv", "1.ndjson") == 3


def test_answers_come_through_no_pipe(folder):
    """It leaves no mark, and what fills it could be perturbed again and again."""
    reading, writing = os.pipe()
    os.write(writing, b'{"ever": true}\n{"ever": false}\n')
    os.close(writing)
    assert perturb(PEOPLE, f"/dev/fd/{reading}", "1.ndjson") == 3
    os.close(reading)
    assert not (folder / "1.ndjson").exists()
