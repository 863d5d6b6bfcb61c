"""From one set of answers to one report."""

from binascii import hexlify

from ldp_client.core.randomness import urandom
from schemas.errors import AnswerError
from schemas.report import ID_BYTES, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.mechanisms import Mechanism
    from schemas.study import Study


def perturb_answers(study: "Study", mechanisms: "dict[str, Mechanism]", answers: "dict[str, Any]") -> Report:
    """One report with a fresh id. All answers are checked before any noise is drawn. Raises AnswerError."""
    for name in mechanisms:
        if name not in answers:
            raise AnswerError(name, "has no answer")
    for name in answers:
        if name not in mechanisms:
            raise AnswerError(str(name)[:64], "is not a question of this study")
    quantised = {name: mechanisms[name].quantise(answers[name]) for name in mechanisms}
    payloads = {name: mechanisms[name].randomise(quantised[name], urandom) for name in mechanisms}
    report_id = hexlify(urandom(ID_BYTES)).decode()
    return Report(report_id, study.id, study.version, study.digest, payloads)
