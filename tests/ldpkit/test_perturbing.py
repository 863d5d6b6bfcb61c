"""Files of answers become files of reports."""

import pandas as pd

from ldp_client.documents.errors import InputError
from ldpkit import perturb, perturbing
from schemas import Study
from summaries import summarize
from tests import studies
from tests.kit.errors import raises


def test_noise_that_another_run_wrote_meanwhile_is_not_replaced(tmp_path):
    answers, out = tmp_path / "answers.csv", tmp_path / "reports.ndjson"
    answers.write_text("ever\nyes\n")
    study = Study(studies.document(studies.YES_NO))
    with raises(InputError, "files.exists"):
        perturbing.perturb_file(study, str(answers), str(out), lambda _: out.write_text("first"))
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
