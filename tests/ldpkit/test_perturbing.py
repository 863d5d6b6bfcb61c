"""Files of answers become files of reports."""

import pandas as pd

from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit import perturb, perturbing
from schemas import Report, Study
from summaries import summarize
from tests import studies
from tests.kit.errors import raises

MEMOIZED = (studies.MEMOIZED, studies.MEMOIZED_BITS)
STUDY = Study(studies.document(*studies.ALL, *[item for item in studies.NEWER if item not in MEMOIZED]))
ANSWERS = {
    question.id: {**studies.ANSWERS, **studies.NEWER_ANSWERS}[question.id] for question in STUDY.questions
}


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


def test_noise_that_another_run_wrote_meanwhile_is_not_replaced(tmp_path):
    out = tmp_path / "reports.ndjson"
    study = Study(studies.document(studies.YES_NO))
    with raises(InputError, "files.exists"):
        perturbing.perturb_file(
            study, write_answers(tmp_path, [{"ever": True}]), str(out), lambda _: out.write_text("first")
        )
    assert out.read_text() == "first"
    assert not list(tmp_path.glob(".ldpkit-*"))


def test_frame_of_answers_gives_a_report_a_person():
    study = Study(studies.document(studies.YES_NO, studies.NUMBER))
    frame = pd.DataFrame({"ever": [True, False, True], "hours": [1.5, 2, 40], "else": 0}, index=[7, 8, 9])
    reports = perturb(study, frame)
    assert len({report.id for report in reports}) == 3
    assert {report.digest for report in reports} == {study.digest}
    assert summarize(study, reports).questions["ever"].n == 3
    with raises(InputError, ("answer.line_invalid", "the table, row 2: ever")):
        perturb(study, frame.assign(ever=["yes", "maybe", "no"]))
