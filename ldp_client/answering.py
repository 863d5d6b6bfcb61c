"""From one set of answers to one report."""

from typing import Any

from ldp_client.core.integers import ceil_div
from ldp_client.core.randomness import Source, read, uniform_below, urandom
from ldp_client.documents.errors import AnswerError, RefusedError
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.base import refuse_forgetful


def quantise_answers(
    study: Study, mechanisms: dict[str, Mechanism], answers: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Return question ids and quantised answers in the study's order, without public fields.

    Raises AnswerError.
    """
    if not isinstance(answers, dict):
        raise AnswerError.say("core.answers", "answers")
    names = [question.id for question in study.questions]
    for name in names:
        if name not in answers:
            raise AnswerError.say("core.no_answer", name)
    public = [field.id for field in study.public]
    for name in answers:
        if name not in mechanisms and name not in public:
            raise AnswerError.say("core.not_asked", str(name)[:64])
    return [(name, mechanisms[name].quantise(answers[name])) for name in names]


def public_values(study: Study, answers: dict[str, Any], invited: bool = True) -> dict[str, str]:
    """Return the values that a report carries without noise: {public field id: value}, in the study's order.

    invited: accept that values from a ticket are missing, because the collector adds them. Raises
    AnswerError for a value that is missing or that the study does not list.
    """
    values = {}
    for field in study.public:
        if field.id in answers:
            values[field.id] = field.value_of(answers[field.id])
        elif not (invited and field.from_ticket):
            raise AnswerError.say("core.no_answer", field.id)
    return values


def perturb_answers(
    study: Study, mechanisms: dict[str, Mechanism], answers: dict[str, Any], random: Source = urandom
) -> Report:
    """Return one report with a fresh id. Check all answers, public ones too, before drawing any noise.

    `random` is read in the order of the study's questions, then for the id's secret. If the study has
    `sample_one_question`, the question is drawn first, uniformly, whatever the answers are. Only its answer
    gets noise and is reported; padding gives all reports the same size. Raises AnswerError, RefusedError for
    a study with a protocol, InputError for a memoized question whose mechanism is not `Remembering` a
    person's permanent answer.
    """
    refuse_forgetful(mechanisms)
    quantised = quantise_answers(study, mechanisms, answers)
    return report_of(study, mechanisms, quantised, random, public_values(study, answers))


def report_of(
    study: Study,
    mechanisms: dict[str, Mechanism],
    quantised: list[tuple[str, Any]],
    random: Source,
    public: dict[str, str] | None = None,
) -> Report:
    """Return the report of one person's quantised answers and public values.

    Raises RefusedError for a secure sum, AnswerError for public values that are not the study's.
    """
    refuse_route(study)
    public = public or {}
    # Values from a ticket may be missing.
    wrong = study.wrong_public(public, invited=True) if study.public or public else None
    if wrong:
        raise AnswerError(*wrong, code="answer.public_invalid")
    asked = [quantised[uniform_below(len(quantised), random)]] if study.sample_one_question else quantised
    payloads = {name: mechanisms[name].randomise(value, random) for name, value in asked}
    secret = read(random, SECRET_BYTES)
    padding = padding_of(study, mechanisms, payloads, public)
    report_id = report_id_of(secret)
    return Report(report_id, study.id, study.version, study.digest, payloads, padding, secret, public)


def refuse_route(study: Study) -> None:
    """Raise RefusedError if the study has a protocol: one device's noise does not protect its answer."""
    if study.protocol is not None:
        raise RefusedError.say("core.sum_alone", study=study.id)


def padding_of(
    study: Study,
    mechanisms: dict[str, Mechanism],
    payloads: dict[str, bytes],
    public: dict[str, str],
) -> int:
    """Return the number of spaces after a report's text that hide the question drawn and all values."""
    carried = [field for field in study.public if field.id in public]
    spaces = sum(field.longest - field.length(public[field.id]) for field in carried)
    if not study.sample_one_question:
        return spaces
    # The id and the payload in base64.
    sizes = {name: len(name) + 4 * ceil_div(mechanisms[name].payload_size, 3) for name in mechanisms}
    return spaces + max(sizes.values()) - sum(sizes[name] for name in payloads)
