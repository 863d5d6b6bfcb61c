"""Device-side noise for a file of answers, where someone already holds them (a gateway, a simulation)."""

import os

from ldp_client.answering import perturb_answers
from ldp_client.answers import read_answers
from ldp_client.files import replacing
from ldp_client.mechanisms import mechanism_for
from schemas.errors import AnswerError, InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemas.study import Study


def perturb_file(study: "Study", answers_path: str, reports_path: str) -> int:
    """Write one report for each person of an answer file, NDJSON; returns how many.

    Nothing is written when any answer is wrong. Raises InputError with the line, and for a study whose
    reports protect nobody unless they are summed as secret shares.
    """
    if study.route is not None:
        raise InputError(f"study {study.id} is a secure sum: its reports leave devices as shares only")
    if os.path.exists(reports_path):
        raise InputError(f"{reports_path} exists: noise is drawn once, choose another file or remove it")
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    count = 0
    with replacing(reports_path) as file:
        for number, answers in read_answers(study, answers_path):
            try:
                report = perturb_answers(study, mechanisms, answers)
            except AnswerError as error:
                where = f"{os.path.basename(answers_path)}, line {number}"
                raise InputError(f"{where}: {error.field}: {error.problem}") from None
            file.write(report.to_json() + "\n")
            count += 1
    return count
