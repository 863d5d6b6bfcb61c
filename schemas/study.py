"""The author's and the analyst's study: what a device knows of it, and models and priors."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ldp_client.documents import question as device_question
from ldp_client.documents import signed as device_signed
from ldp_client.documents import study as device_study
from ldp_client.documents.canonical import parse_json
from ldp_client.documents.catalogue import Fitting
from ldp_client.documents.channel import SecureSum
from ldp_client.documents.errors import InputError, StudyError
from ldp_client.documents.rational import DECIMAL
from ldp_client.documents.report import MOST_QUESTIONS
from ldp_client.documents.rules import is_leveled, refuse_study
from ldp_client.documents.shapes import ListOf, Record, Tagged
from ldp_client.documents.study import MAX_BYTES
from schemas.disk import read_bytes
from schemas.models import MODELS, NO_LAW
from schemas.priors import check_prior, given_priors


def _with_model(ask: str, shape: Record) -> Record:
    """Return a question's fields, with the model. A number question may omit it."""
    required, optional = dict(shape.required), dict(shape.optional)
    (optional if ask == "number" else required)["model"] = Fitting(MODELS, ask)
    if ask != "number":
        del optional["model"]
    return Record(required, optional)


_QUESTION = Tagged("ask", {ask: _with_model(ask, shape) for ask, shape in device_question.QUESTIONS.items()})
STUDY = Record(
    {**device_study.STUDY.required, "questions": ListOf(_QUESTION, 1, MOST_QUESTIONS, unique_by="id")},
    device_study.STUDY.optional,
)


class ModelSpec:
    """The model that the analyst will fit, and the priors that are stated: {parameter: distribution}."""

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.name: str = parsed["name"]
        self.prior: dict[str, dict[str, Any]] = given_priors(parsed)


class Question(device_question.Question):
    """One question of a study, with its model. Attributes that its kind does not have are None or empty.

    Args:
        parsed: the question's part of a study document, as STUDY reads it.
        path: its path in the document, such as "questions[0]".
        protocol: the study's protocol, if it has one.

    Attributes:
        model: the model that the analyst will fit, with the stated priors.
    """

    def __init__(self, parsed: dict[str, Any], path: str, protocol: SecureSum | None = None) -> None:
        super().__init__(parsed, path, protocol)
        self.model = ModelSpec(parsed["model"])


class Study(device_study.Study):
    """A valid study document, with what only its author and its analysts need.

    Build it with `Study.from_json(text)` or `Study(document)`.

    Args:
        document: the plain JSON value, which is copied: later changes to it do not change the study.

    Attributes:
        questions: in the document's order, with their models.

    Raises:
        StudyError: the document is not a study; the error names the field that is wrong.
    """

    _shape = STUDY
    _question_class = Question
    questions: tuple[Question, ...]

    def _take(self, parsed: dict[str, Any]) -> None:
        """Check and keep models and priors too. Raise StudyError if they conflict with other fields."""
        for question in parsed["questions"]:
            question["model"] = question["model"] or {"name": NO_LAW}
        super()._take(parsed)
        records = [question["id"] for question in parsed["questions"] if "response" in question]
        for index, question in enumerate(parsed["questions"]):
            path = f"questions[{index}]"
            if "response" in question:
                _check_record_model(question, f"{path}.model")
            check_prior(question, path)
            # Columns of answers name a record's fields that way.
            of = [record for record in records if question["id"].startswith(record + ".")]
            problem = f"looks like the name of a field of {', '.join(of)}: choose another id"
            refuse_study(of, f"{path}.id", problem, "study.id_like_record_field")

    def question(self, question_id: str) -> Question:
        """Find a question by its id.

        Args:
            question_id: the id.

        Returns:
            The question.

        Raises:
            KeyError: the study has no such question.
        """
        question = super().question(question_id)
        assert isinstance(question, Question)
        return question


class SignedStudy(device_signed.SignedStudy):
    """A study and its signatures. `from_json` validates the form; it does not verify signatures."""

    _study_class = Study
    study: Study


def load_study(path: str) -> Study:
    """Read a study document. Raises InputError, which names the file and the wrong field."""
    text = read_bytes(path)
    try:
        return read_study(text)
    except StudyError as error:
        if device_signed.FORMAT.encode() in text:
            problem = "is a signed study, for devices: give the study.json that was signed"
            raise InputError(f"{path}: {problem}", code="files.signed") from None
        raise InputError(f"{path}: {error}", code=error.code) from None


def read_study(text: bytes) -> Study:
    """Read a study that a person wrote: numbers may replace decimals in quotes. Raises StudyError."""
    document = parse_json(text, StudyError, MAX_BYTES)
    # A second time, because a float would round the digits that were written.
    return Study(_as_written(json.loads(text, parse_float=str)) if isinstance(document, dict) else document)


def _as_written(value: Any, is_decimal: bool = False) -> Any:
    """Return a part of a document with the numbers of decimal fields as text."""
    if isinstance(value, dict):
        return {name: _as_written(part, name in _decimal_fields()) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_written(part, is_decimal) for part in value]
    return str(value) if is_decimal and type(value) is int else value


@lru_cache(maxsize=1)
def _decimal_fields() -> frozenset[str]:
    """Return the names of all fields that are decimals, or lists of decimals."""
    return frozenset(_decimals_in("", STUDY.json_schema()))


def _decimals_in(name: str, schema: Any) -> Iterator[str]:
    """Yield `name` if the JSON schema or its items are a decimal, and the names of such fields below it."""
    if not isinstance(schema, dict):
        return
    if schema.get("pattern") == f"^{DECIMAL}$":
        yield name
    for part in (schema.get("items"), *schema.get("oneOf", ()), *schema.get("prefixItems", ())):
        yield from _decimals_in(name, part)
    for field, part in schema.get("properties", {}).items():
        yield from _decimals_in(field, part)
    yield from _decimals_in("", schema.get("additionalProperties"))


def _check_record_model(question: dict[str, Any], path: str) -> None:
    """Raise StudyError unless the model and its priors suit a record's fields and noise."""
    mechanism, priors = question["mechanism"], given_priors(question["model"])
    needed = "linear_regression" if "bounds" in question["response"] else "logistic_regression"
    needed = "marginals" if mechanism.get("statistic") is not None else needed
    problem = f"must be {needed!r}: it fits the response, and the statistic if one is stated"
    is_other = question["model"]["name"] != needed
    refuse_study(is_other, f"{path}.name", problem, "study.model_not_for_response")
    is_wrong = mechanism.get("intercept") is False and "centre" in priors
    problem = "needs statistics with an intercept"
    refuse_study(is_wrong, f"{path}.prior.centre", problem, "study.centre_needs_intercept")
    fields = [*question["features"], question["response"]]
    is_cut = any(is_leveled(feature) for feature in question["features"])
    for name in [name for name in priors if name.startswith("feature_")]:
        is_wrong = name == "feature_correlation" and not any("bounds" in field for field in fields)
        problem = "is for number features without cuts: levels and yes/no have other priors"
        refuse_study(is_cut or is_wrong, f"{path}.prior.{name}", problem, "study.feature_prior_invalid")
