"""Questions and labels whose columns in a decoded table would bear one name."""

from __future__ import annotations

from ldp_client import mechanism_for
from schemas import Report, Study
from summaries.decoding import Decoding
from tests import studies


def test_a_label_that_ends_another_questions_id_takes_no_column_of_it():
    """Shares of `c` beside a number `c.x`: one would stand in the place of the other, under its name."""
    choice = {**studies.ONE_OF, "id": "c", "choices": ["x", "y.z"]}
    number = {**studies.NUMBER, "id": "c.x"}
    inner = {**choice, "id": "c.y", "choices": ["z", "w"]}
    study = Study(studies.document(choice, number, inner))
    answers = {"c": "x", "c.x": 1.0, "c.y": "w"}
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    payloads = {name: mechanisms[name].perturb(answer) for name, answer in answers.items()}
    report = Report("0" * 32, study.id, study.version, study.digest, payloads)
    decoding = Decoding(lambda *_: study)
    decoding.meet(report)
    cells = decoding.cells(report)
    assert len(cells) == len(decoding.columns) == 3 + 1 + 2 + 2
    assert cells["unbiased.c.x"] == cells["noisy.c.x"]
