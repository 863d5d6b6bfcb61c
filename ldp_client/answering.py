"""From one set of answers to one report."""

from ldp_client.core.randomness import read, uniform_below, urandom
from ldp_client.documents.errors import AnswerError, RefusedError
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.mechanisms.memoized import refuse_forgetful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Study
    from ldp_client.mechanisms import Mechanism


def quantise_answers(
    study: "Study", mechanisms: "dict[str, Mechanism]", answers: "dict[str, Any]"
) -> "list[tuple[str, Any]]":
    """Question ids and quantised answers, in the study's order. Raises AnswerError."""
    if not isinstance(answers, dict):
        raise AnswerError("answers", "must be {question id: answer}")
    names = [question.id for question in study.questions]
    for name in names:
        if name not in answers:
            raise AnswerError(name, "has no answer")
    for name in answers:
        if name not in mechanisms:
            raise AnswerError(str(name)[:64], "is not a question of this study")
    return [(name, mechanisms[name].quantise(answers[name])) for name in names]


def perturb_answers(
    study: "Study", mechanisms: "dict[str, Mechanism]", answers: "dict[str, Any]", random: "Source" = urandom
) -> Report:
    """One report with a fresh id. All answers are checked before any noise is drawn. Raises AnswerError.

    Reads `random` in the order of the study's questions, then for the id's secret. A study that asks one
    question has it drawn first, uniformly, whatever the answers are; only its answer gets noise and is
    reported, and the report's padding makes its size that of any other. Raises RefusedError for a study with
    a route, InputError for a memoized question whose mechanism is not `Remembering` a person's permanent
    answer.
    """
    refuse_route(study)
    refuse_forgetful(mechanisms)
    return report_of(study, mechanisms, quantise_answers(study, mechanisms, answers), random)


def report_of(
    study: "Study", mechanisms: "dict[str, Mechanism]", quantised: "list[tuple[str, Any]]", random: "Source"
) -> Report:
    """The report of one person's quantised answers. Raises RefusedError for a study with a route."""
    refuse_route(study)
    asked = [quantised[uniform_below(len(quantised), random)]] if study.ask_one else quantised
    payloads = {name: mechanisms[name].randomise(value, random) for name, value in asked}
    secret = read(random, SECRET_BYTES)
    padding = padding_of(study, mechanisms, payloads)
    report_id = report_id_of(secret)
    return Report(report_id, study.id, study.version, study.digest, payloads, padding, secret)


def refuse_route(study: "Study") -> None:
    """Raises RefusedError where one device's noise protects nobody, so that no report may be made."""
    if study.route is not None:
        raise RefusedError(
            f"study {study.id} is a secure sum: the noise of one device alone protects nobody, so no report "
            "of it is made; its answers leave a device as secret shares only"
        )


def padding_of(study: "Study", mechanisms: "dict[str, Mechanism]", payloads: "dict[str, bytes]") -> int:
    """Spaces behind a report's text, so that its size does not tell which question was drawn."""
    if not study.ask_one:
        return 0
    sizes = {name: len(name) + _base64_size(mechanisms[name].payload_size) for name in mechanisms}
    return max(sizes.values()) - sum([sizes[name] for name in payloads])


def _base64_size(size: int) -> int:
    return (size + 2) // 3 * 4
