"""Files of answers become files of reports."""

import subprocess
import sys

import pytest

from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit import perturbing
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises

MEMOIZED = (studies.MEMOIZED, studies.MEMOIZED_BITS)
STUDY = Study(studies.document(*studies.ALL, *[item for item in studies.NEWER if item not in MEMOIZED]))
ANSWERS = {
    question.id: {**studies.ANSWERS, **studies.NEWER_ANSWERS}[question.id] for question in STUDY.questions
}
BARE = """
import sys
sys.path.insert(0, sys.argv[1])
from ldpkit.perturbing import perturb_file
from schemas import Study
print(perturb_file(Study.from_json(open("study.json").read()), "answers.csv", "reports.ndjson"))
assert "numpy" not in sys.modules
"""


def write_answers(folder, people):
    path = folder / "answers.csv"
    path.write_text(studies.answers_csv(people))
    return str(path)


def reports_in(path):
    return [Report.from_json(line) for line in path.read_text().splitlines()]


def check_reports(reports, count):
    assert len(reports) == len({report.id for report in reports}) == count
    mechanisms = {question.id: mechanism_for(question) for question in STUDY.questions}
    for report in reports:
        assert report.digest == STUDY.digest
        assert set(report.payloads) == set(mechanisms)
        for name, payload in report.payloads.items():
            mechanisms[name].check(payload)


def test_progress_is_told_while_reports_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(perturbing, "REPORTS_BETWEEN_STEPS", 10)
    told = []
    out = tmp_path / "reports.ndjson"
    assert (
        perturbing.perturb_file(STUDY, write_answers(tmp_path, [ANSWERS] * 25), str(out), told.append) == 25
    )
    assert told == [10, 20, 25]
    check_reports(reports_in(out), 25)


@pytest.mark.slow
def test_perturb_file_works_without_numpy(tmp_path, pytestconfig):
    write_answers(tmp_path, [ANSWERS] * 3)
    (tmp_path / "study.json").write_text(STUDY.to_json())
    command = [sys.executable, "-I", "-S", "-c", BARE, str(pytestconfig.rootpath)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr
    check_reports(reports_in(tmp_path / "reports.ndjson"), 3)


def test_noise_that_another_run_wrote_meanwhile_is_not_replaced(tmp_path):
    out = tmp_path / "reports.ndjson"
    study = Study(studies.document(studies.YES_NO))
    with raises(InputError, "files.exists"):
        perturbing.perturb_file(
            study, write_answers(tmp_path, [{"ever": True}]), str(out), lambda _: out.write_text("first")
        )
    assert out.read_text() == "first"
    assert not list(tmp_path.glob(".ldpkit-*"))
