"""A study: what is asked, what a device may answer, and the noise that protects the answer."""

from binascii import hexlify

from ldp_client.documents.canonical import canonical_json, parse_canonical, parse_json
from ldp_client.documents.catalogue import KINDS_OF_PRODUCTS
from ldp_client.documents.channel import Channel
from ldp_client.documents.errors import StudyError
from ldp_client.documents.paper import Paper
from ldp_client.documents.priors import given_priors
from ldp_client.documents.protocol import SecureSum
from ldp_client.documents.public import PublicField
from ldp_client.documents.rational import Rational
from ldp_client.documents.sections import Section, below
from ldp_client.documents.spoken import languages_of, plain
from ldp_client.documents.study_rules import check_together
from ldp_client.documents.study_shape import RESPONDENTS, STUDY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional

MAX_BYTES = 1 << 20
YES_NO = ("no", "yes")


class Field:
    """One field of a record: a number has bounds, a choice its choices, a yes/no neither.

    text: a label for people, instead of its id; unit: the unit of its number; "" if not stated.
    cuts: the boundaries of a number's bins, from low to high; empty if the number is not binned.
    """

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.id: str = parsed["id"]
        self.text: str = parsed.get("text") or ""
        self.unit: str = parsed.get("unit") or ""
        self.bounds: "Optional[tuple[Rational, Rational]]" = parsed.get("bounds")
        self.cuts: "tuple[Rational, ...]" = parsed.get("cuts") or ()
        self.choices: "tuple[str, ...]" = parsed.get("choices") or ()


class MechanismSpec:
    """A mechanism's name and stated parameters, as the study gives them.

    weights: {kind of product: weight} of sampled products; 1 for a kind that is not stated.
    products: the number of sampled products in a report.
    For tables: count_share (None: the number of records is public), average (1: none), intercept and
    fourth_moments.
    """

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.name: str = parsed["name"]
        self.epsilon: Rational = parsed["epsilon"]
        self.delta: Rational = parsed.get("delta") or Rational(0)
        self.cells: "Optional[int]" = parsed.get("cells")
        self.statistic: str = parsed.get("statistic") or ""
        self.share: "Optional[Rational]" = parsed.get("share")
        self.response_share: "Optional[Rational]" = parsed.get("response_share")
        self.of: str = parsed.get("of") or ""
        self.instantaneous_epsilon: "Optional[Rational]" = parsed.get("instantaneous_epsilon")
        self.count_share: "Optional[Rational]" = parsed.get("count_share")
        self.average: int = parsed.get("average") or 1
        self.intercept: bool = parsed.get("intercept") is not False
        self.fourth_moments: bool = parsed.get("fourth_moments") is True
        weights = parsed.get("weights") or {}
        self.weights: "dict[str, int]" = {kind: weights.get(kind) or 1 for kind in KINDS_OF_PRODUCTS}
        self.products: int = parsed.get("products") or 1


class ModelSpec:
    """The model that the analyst will fit, and the priors that are stated: {parameter: distribution}."""

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.name: str = parsed["name"]
        self.prior: "dict[str, dict[str, Any]]" = given_priors(parsed)


class Question:
    """One question of a study. Attributes that its kind does not have are None or empty.

    Args:
        parsed: the question's part of a study document, as STUDY reads it.
        path: its path in the document, such as "questions[0]".
        protocol: the study's protocol, if it has one.

    Attributes:
        path: as given.
        id: its name within the study.
        protocol: as given.
        ask: "number" (has bounds), "choice" (choices), "yes_no" (choices are no, yes), "record" (features,
            norm, response) or "table" (the same fields, for a data holder's many records).
        text: the question's text; "" if the document has none.
        list_title: the title of the list, if the question is a box of a list; else "".
        bounds: the lowest and highest number, in the question's own unit.
        unit: the unit of a number, such as "hours"; "" if not stated.
        choices: labels, or range(count) if they are `numbered`.
        numbered: whether choices are numbers without labels.
        ordered: whether the labels are a scale, from its low end to its high one.
        features: the fields of a record, with their bounds.
        norm: the largest Euclidean norm of a record's features.
        response: the field of a record that a regression explains.
        fields: the features, and the response last.
        refusal: whether None, "prefer not to say", is a valid answer.
        refusal_share: the share of epsilon that the refusal's coin spends, for numbers; else None.
        mechanism: the mechanism's name and stated parameters.
        model: the model that the analyst will fit, with the stated priors.
        repeats: whether each version of the study may ask it again.
    """

    def __init__(self, parsed: "dict[str, Any]", path: str, protocol: "Optional[SecureSum]" = None) -> None:
        self.path = path
        self.id: str = parsed["id"]
        self.protocol = protocol
        self.ask: str = parsed["ask"]
        self.text: str = parsed["text"] or ""
        self.list_title = ""
        self.unit: str = parsed.get("unit") or ""
        self.bounds: "Optional[tuple[Rational, Rational]]" = parsed.get("bounds")
        self.choices: "tuple[str, ...] | range" = (
            YES_NO if self.ask == "yes_no" else parsed.get("choices", ())
        )
        self.numbered = isinstance(self.choices, range)
        self.ordered: bool = bool(parsed.get("ordered"))
        refusal = parsed.get("refusal")
        self.refusal: bool = bool(refusal)
        self.refusal_share: "Optional[Rational]" = refusal["share"] if isinstance(refusal, dict) else None
        self.features: "tuple[Field, ...]" = tuple([Field(item) for item in parsed.get("features", ())])
        self.norm: "Optional[Rational]" = parsed.get("norm")
        self.response: "Optional[Field]" = Field(parsed["response"]) if "response" in parsed else None
        self.fields = self.features + (() if self.response is None else (self.response,))
        self.mechanism = MechanismSpec(parsed["mechanism"])
        self.model = ModelSpec(parsed["model"])
        self.repeats = self.mechanism.name == "memoized"

    @property
    def full_text(self) -> str:
        """The text that participants read; for a box of a list, it begins with the list's title."""
        return below(self.list_title, self.text or self.id) if self.list_title else self.text


def _read(document: "Any", languages: "tuple[str, ...]") -> "dict[str, Any]":
    """Parse the document in its own language. Raise StudyError if it is invalid in any language."""
    own = plain(document, languages[0], StudyError) if languages else document
    parsed: "dict[str, Any]" = STUDY.read(own, "", StudyError)
    for language in languages[1:]:
        STUDY.read(plain(document, language, StudyError), "", StudyError)
    return parsed


class Study:
    """A valid study document. Equal documents have equal canonical bytes and digests.

    Build it with `Study.from_json(text)` or `Study(document)`.

    Args:
        document: the plain JSON value, which is copied: later changes to it do not change the study.

    Attributes:
        languages: the languages of its texts, its own first; all other attributes are in its own language.
            Empty if not stated.
        id: the study's name.
        version: counts from 1.
        title: for participants.
        purpose: for participants; "" if not stated.
        owner: who asks; "" if not stated, like contact and ethics.
        contact: the owner's e-mail or https address.
        ethics: who approved the study, or why no approval is needed.
        retention_days: the number of days for which reports are kept: from the study's last day, or from
            each report's arrival if the study has no last day. None if not stated.
        opens: the first day, YYYY-MM-DD, or None.
        closes: the last day, or None.
        protocol: the nodes of a secure sum, or None.
        channel: how reports are sent so that they cannot be linked to a person, or None.
        sample_one_question: whether each device answers only one question, which it draws itself.
        respondent: who answers, a "person", or a data "holder" with a table of many records (then ε is for
            each record).
        questions: in the document's order.
        sections: groups of questions that are shown together, in order, each question once; empty if not
            stated.
        public: the fields that reports carry without noise, in the document's order; carried: the public
            fields whose values come with the invitation.
        paper: how questions are asked with dice, in addition to devices, or None.
        digest: SHA-256 of the canonical bytes, 64 hexadecimal digits.

    Raises:
        StudyError: the document is not a study; the error names the field that is wrong.
    """

    # True for a study that `shown_in` returned, which was never published.
    only_shown = False

    def __init__(self, document: "dict[str, Any]") -> None:
        self.languages: "tuple[str, ...]" = languages_of(document, StudyError)
        parsed = _read(document, self.languages)
        check_together(parsed)
        self.id: str = parsed["id"]
        self.version: int = parsed["version"]
        self.title: str = parsed["title"]
        self.purpose: str = parsed["purpose"] or ""
        self.owner: str = parsed["owner"] or ""
        self.contact: str = parsed["contact"] or ""
        self.ethics: str = parsed["ethics"] or ""
        retention = parsed["retention"]
        self.retention_days: "Optional[int]" = retention["days"] if retention else None
        self.opens: "Optional[str]" = parsed["opens"]
        self.closes: "Optional[str]" = parsed["closes"]
        self.protocol: "Optional[SecureSum]" = SecureSum(parsed["protocol"]) if parsed["protocol"] else None
        self.channel: "Optional[Channel]" = Channel(parsed["channel"]) if parsed["channel"] else None
        self.sample_one_question: bool = bool(parsed["sample_one_question"])
        self.respondent: str = parsed["respondent"] or RESPONDENTS[0]
        asked = enumerate(parsed["questions"])
        self.questions: "tuple[Question, ...]" = tuple(
            [Question(item, f"questions[{index}]", self.protocol) for index, item in asked]
        )
        self.sections: "tuple[Section, ...]" = tuple([Section(item) for item in parsed["sections"] or ()])
        for section in [one for one in self.sections if one.any_of]:
            for name in section.questions:
                self.question(name).list_title = section.title
        self.public: "tuple[PublicField, ...]" = tuple([PublicField(item) for item in parsed["public"] or ()])
        self.carried = tuple([field for field in self.public if field.from_invitation])
        labels = {
            one.id: tuple([str(label) for label in one.choices]) for one in self.questions if not one.numbered
        }
        self.paper: "Optional[Paper]" = Paper(parsed["paper"], labels) if parsed["paper"] else None
        # Deferred: it takes longer to import than all other modules that a device loads.
        import hashlib

        self._canonical = canonical_json(document)
        self.digest: str = hexlify(hashlib.sha256(self.canonical()).digest()).decode()

    @classmethod
    def from_json(cls, text: "str | bytes") -> "Study":
        """Parse and validate a study document.

        Args:
            text: JSON, at most 1 MiB, as text or UTF-8 bytes; it need not be canonical.

        Returns:
            The study.

        Raises:
            StudyError: the text is not a study; the error names the field that is wrong.
        """
        return cls(parse_json(text, StudyError, MAX_BYTES))

    @property
    def document(self) -> "Any":
        """The plain JSON value, a new copy each time: changes to a copy do not change the digest."""
        return parse_canonical(self._canonical)

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        return self._canonical

    def canonical(self) -> bytes:
        """Return the canonical bytes, over which the digest and signatures are computed."""
        return self._canonical.encode("utf-8")

    def shown_in(self, language: str) -> "Study":
        """Return the study with its texts in one language, for display only: its digest differs.

        Args:
            language: any tag.

        Returns:
            The study in that language, or in its own language if it lacks it. The order of questions,
            choices and fields is the same, so that an index picked there is valid in the study.
        """
        if not self.languages:
            return self
        document = plain(self.document, self.language_for(language), StudyError)
        # paper and channel refer to labels in the study's own language.
        shown = Study({key: document[key] for key in document if key not in ("paper", "channel")})
        shown.channel = self.channel
        shown.only_shown = True
        return shown

    def language_for(self, language: str) -> str:
        """Return the language in which `shown_in` shows the study.

        Args:
            language: any tag.

        Returns:
            The study's tag that is equal, else has the same first part, else its first tag; "" if the study
            states no languages.
        """
        parts = [one.split("-")[0] for one in self.languages]
        first = language.split("-")[0]
        alike = self.languages[parts.index(first)] if first in parts else "".join(self.languages[:1])
        return language if language in self.languages else alike

    def question(self, question_id: str) -> Question:
        """Find a question by its id.

        Args:
            question_id: the id.

        Returns:
            The question.

        Raises:
            KeyError: the study has no such question.
        """
        for question in self.questions:
            if question.id == question_id:
                return question
        raise KeyError(question_id)

    @property
    def epsilon(self) -> Rational:
        """The privacy budget that these questions spend on a device, in all versions together, in nats.

        It is the sum of their stated epsilon (basic composition). If sample_one_question, a device answers
        only one question, so questions asked once cost their largest epsilon. Memoized questions count in
        full: each version draws again among them, and a device may eventually answer all.
        """
        return self._together([question.mechanism.epsilon for question in self.questions])

    @property
    def delta(self) -> Rational:
        """The delta, a probability, that these questions spend on a device: added up as epsilon is."""
        return self._together([question.mechanism.delta for question in self.questions])

    def _together(self, costs: "list[Rational]") -> Rational:
        total = largest = Rational(0)
        for question, cost in zip(self.questions, costs):
            if not self.sample_one_question or question.repeats:
                total = total + cost
            elif largest < cost:
                largest = cost
        return total + largest

    @property
    def cells(self) -> int:
        """The number of combinations of public values; 1 without public fields."""
        cells = 1
        for field in self.public:
            cells *= field.size
        return cells

    def wrong_public(self, values: "dict[str, str]", invited: bool = False) -> "Optional[tuple[str, str]]":
        """Check a report's public values against this study.

        Args:
            values: {field id: value}, as the report has them.
            invited: whether an invitation still adds the fields that it carries, so that they may be missing.

        Returns:
            (field, problem) of the first value that is wrong, or None if all are right.
        """
        known = {field.id: field for field in self.public}
        for name in sorted(values):
            if name not in known:
                return name, "the study has no such public field"
            if known[name].place(values[name]) is None:
                return name, "is not one of the values that the study lists"
        for field in self.public:
            if field.id not in values and not (invited and field.from_invitation):
                return field.id, "is missing"
        return None

    def wrong_payload(self, names: "Iterable[str]") -> "Optional[tuple[str, str]]":
        """Check that a report has payloads for all questions, or for exactly one if sample_one_question.

        Args:
            names: ids of the questions that the report has payloads for.

        Returns:
            (question, problem) of the first payload that is wrong, or None if the report answers the study.
        """
        given = sorted(names)
        asked = [question.id for question in self.questions]
        for name in given:
            if name not in asked:
                return name, "the study has no such question"
        if self.sample_one_question:
            problem = "must be exactly one: the study asks one"
            return None if len(given) == 1 else ("".join(given[1:2]), problem)
        missing = sorted([name for name in asked if name not in given])
        return (missing[0], "is missing") if missing else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Study({self.id!r}, version {self.version}, {len(self.questions)} questions)"
