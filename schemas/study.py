"""The author's and the analyst's study: what a device knows of it, and models and priors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_client.documents import question as device_question
from ldp_client.documents import signed as device_signed
from ldp_client.documents import study as device_study
from ldp_client.documents.catalogue import Fitting
from ldp_client.documents.errors import InputError, StudyError
from ldp_client.documents.rules import is_leveled
from ldp_client.documents.shapes import ListOf, Record, Tagged
from ldp_client.documents.study import MOST_QUESTIONS
from ldp_client.files.disk import read_bytes
from ldp_client.words.text import say
from schemas.models import MODELS, NO_LAW
from schemas.priors import check_prior, given_priors

if TYPE_CHECKING:
    from ldp_client.documents.protocol import SecureSum


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
        for question in parsed["questions"]:
            question["model"] = question["model"] or {"name": NO_LAW}
        super()._take(parsed)
        check_authored(parsed)

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
        return Study.from_json(text)
    except StudyError as error:
        is_signed = device_signed.FORMAT.encode() in text
        problem, code = (say("files.signed"), "files.signed") if is_signed else (error, error.code)
        raise InputError(f"{path}: {problem}", code=code) from None


def check_authored(parsed: dict[str, Any]) -> None:
    """Raise StudyError if a parsed study's models, priors or ids conflict with its other fields."""
    for index, question in enumerate(parsed["questions"]):
        path = f"questions[{index}]"
        if question["ask"] in ("record", "table"):
            _check_record_model(question, f"{path}.model")
        check_prior(question, path)
    _check_field_names(parsed["questions"])


def _check_field_names(questions: tuple[dict[str, Any], ...]) -> None:
    """Reject question ids such as record.field: columns of answers name a record's fields that way."""
    records = [question["id"] for question in questions if question.get("response")]
    for index, question in enumerate(questions):
        for record in records:
            if question["id"].startswith(record + "."):
                problem = f"looks like the name of a field of {record}: choose another id"
                raise StudyError(f"questions[{index}].id", problem, code="study.id_like_record_field")


def _check_record_model(question: dict[str, Any], path: str) -> None:
    """Raise StudyError unless the model and its priors suit a record's fields and noise."""
    mechanism, is_number = question["mechanism"], "bounds" in question["response"]
    if mechanism.get("statistic") is not None:
        if question["model"]["name"] != "marginals":
            problem = "the statistic 'marginals' needs 'marginals'"
            raise StudyError(f"{path}.name", problem, code="study.marginals_model")
        return
    needed = "linear_regression" if is_number else "logistic_regression"
    if question["model"]["name"] != needed:
        problem = f"a {'number' if is_number else 'yes/no'} response needs {needed!r}"
        raise StudyError(f"{path}.name", problem, code="study.model_not_for_response")
    priors = given_priors(question["model"])
    if mechanism.get("intercept") is False and "centre" in priors:
        problem = "needs statistics with an intercept"
        raise StudyError(f"{path}.prior.centre", problem, code="study.centre_needs_intercept")
    fields = [*question["features"], question["response"]]
    if any(is_leveled(feature) for feature in question["features"]):
        for name in [name for name in priors if name.startswith("feature_")]:
            problem = "is for number features without cuts: levels have shares instead"
            raise StudyError(f"{path}.prior.{name}", problem, code="study.level_prior_invalid")
    elif "feature_correlation" in priors and not any("bounds" in field for field in fields):
        problem = "is for a number among the features: pairs of yes/no have their own prior"
        raise StudyError(f"{path}.prior.feature_correlation", problem, code="study.correlation_prior_invalid")
