"""A study: what is asked, what a device may answer, and the noise that protects the answer."""

from binascii import hexlify

from ldp_client.documents.canonical import canonical_json, parse_canonical, parse_json
from ldp_client.documents.catalogue import KINDS_OF_PRODUCTS
from ldp_client.documents.channel import Channel
from ldp_client.documents.errors import StudyError
from ldp_client.documents.paper import Paper
from ldp_client.documents.priors import given_priors
from ldp_client.documents.public import PublicField
from ldp_client.documents.rational import Rational
from ldp_client.documents.route import Route
from ldp_client.documents.sections import Section, below
from ldp_client.documents.spoken import languages_of, plain
from ldp_client.documents.study_rules import check_together
from ldp_client.documents.study_shape import STUDY, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional

MAX_BYTES = 1 << 20
YES_NO = ("no", "yes")


class Field:
    """One field of a record: a number has bounds, a choice its choices, a yes/no neither.

    text: what people read in place of its id; measured_in: what its number counts; "" where not stated.
    cuts: where a number's bins meet, from low to high; none where it is taken as it is.
    """

    def __init__(self, parsed: "dict[str, Any]") -> None:
        self.id: str = parsed["id"]
        self.text: str = parsed.get("text") or ""
        self.measured_in: str = parsed.get("measured_in") or ""
        self.bounds: "Optional[tuple[Rational, Rational]]" = parsed.get("bounds")
        self.cuts: "tuple[Rational, ...]" = parsed.get("cuts") or ()
        self.choices: "tuple[str, ...]" = parsed.get("choices") or ()


class MechanismSpec:
    """A mechanism's name and stated parameters, as the study gives them.

    weights: {kind of product: weight} of sampled products; 1 for a kind that is not stated.
    products: how many of them a report has.
    Of tables: count_share (None: the number of records is public), average (1: none), intercept and
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
    """One question of a study. Fields that its kind does not have are None or empty.

    Args:
        parsed: the question's part of a study document, as STUDY reads it.
        path: where it stands in the document, such as "questions[0]".
        route: the study's, if it has one.

    Attributes:
        path: as given.
        id: its name within the study.
        route: as given.
        ask: "number" (has bounds), "choice" (choices), "yes_no" (choices are no, yes), "record" (features,
            norm, response) or "table" (the same, of a data holder's many records).
        text: what people are asked; "" where the document does not say.
        list_title: of a box of a list what the list asks; "" elsewhere.
        bounds: the lowest and highest number, in the question's own unit.
        measured_in: that unit, such as "hours"; "" where the document does not say.
        choices: labels, or range(count) where they are `numbered`.
        numbered: whether choices are numbers without labels.
        ordered: whether the labels are a scale, from its low end to its high one.
        features: the fields of a record, with their bounds.
        norm: the largest Euclidean norm of a record's features.
        response: the field of a record that a regression explains.
        fields: the features, and the response last.
        refusal: whether no answer, None, is one of the answers: "prefer not to say".
        refusal_share: of a number, which share of epsilon is for the coin that says so; None elsewhere.
        mechanism: the mechanism's name and stated parameters.
        model: the model that the analyst will fit, with the priors that are stated.
        repeats: whether each version of the study may ask it again.
    """

    def __init__(self, parsed: "dict[str, Any]", path: str, route: "Optional[Route]" = None) -> None:
        self.path = path
        self.id: str = parsed["id"]
        self.route = route
        self.ask: str = parsed["ask"]
        self.text: str = parsed["text"] or ""
        self.list_title = ""
        self.measured_in: str = parsed.get("measured_in") or ""
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
        """What people read of it: of a box of a list first what the list asks."""
        return below(self.list_title, self.text or self.id) if self.list_title else self.text


def _read(document: "Any", languages: "tuple[str, ...]") -> "dict[str, Any]":
    """The document's parts, in its own language; in each other one it has to be as good."""
    own = plain(document, languages[0], StudyError) if languages else document
    parsed: "dict[str, Any]" = STUDY.read(own, "", StudyError)
    for language in languages[1:]:
        STUDY.read(plain(document, language, StudyError), "", StudyError)
    return parsed


class Study:
    """A valid study document. Equal documents have equal canonical bytes and digests.

    Build it with `Study.from_json(text)` or `Study(document)`.

    Args:
        document: the plain JSON value; whoever edits it later does not edit the study.

    Attributes:
        languages: what its texts are in, its own first; all other attributes are in that one. Empty where the
            document does not say.
        id: the study's name.
        version: counts from 1.
        title: for people.
        purpose: for people; "" where the document does not say.
        owner: who asks; "" where the document does not say, as of contact and ethics.
        contact: an e-mail or https address of theirs.
        ethics: who approved the study, or why nobody needs to.
        retention_days: for how many days reports are kept: from the study's last day on, or where it has none
            from the day on which each arrived. None where the document does not say.
        opens: the first day, YYYY-MM-DD, or None.
        closes: the last day, or None.
        route: the nodes of a secure sum, or None.
        channel: how reports leave so that nobody can join a person and a report, or None.
        ask_one: whether each device answers one question only, drawn by itself.
        unit: who answers, a "person", or a data "holder" with a table of many records (then ε is for each
            record).
        questions: in the document's order.
        sections: which questions are shown together, in what order, each once; none where the document does
            not say.
        public: the fields that reports carry in clear, in the document's order; carried: those of them whose
            values come with the invitation.
        paper: how questions are asked with dice, beside devices, or None.
        digest: SHA-256 of the canonical bytes, 64 hexadecimal digits.

    Raises:
        StudyError: the document is no study; the error names the field that is wrong.
    """

    # Of what `shown_in` gives, which nobody published.
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
        self.route: "Optional[Route]" = Route(parsed["route"]) if parsed["route"] else None
        self.channel: "Optional[Channel]" = Channel(parsed["channel"]) if parsed["channel"] else None
        self.ask_one: bool = bool(parsed["ask_one"])
        self.unit: str = parsed["unit"] or UNITS[0]
        asked = enumerate(parsed["questions"])
        self.questions: "tuple[Question, ...]" = tuple(
            [Question(item, f"questions[{index}]", self.route) for index, item in asked]
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
        # Here, as it costs an interpreter's start more than all else that a device loads.
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
            StudyError: the text is no study; the error names the field that is wrong.
        """
        return cls(parse_json(text, StudyError, MAX_BYTES))

    @property
    def document(self) -> "Any":
        """The plain JSON value, a new one each time: what is digested stays as it was, whoever edits one."""
        return parse_canonical(self._canonical)

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        return self._canonical

    def canonical(self) -> bytes:
        """Return the canonical bytes: what is digested and signed."""
        return self._canonical.encode("utf-8")

    def shown_in(self, language: str) -> "Study":
        """Give the study with its texts in one language, to show: it has another digest, and no answers.

        Args:
            language: any tag.

        Returns:
            The study in that language where it has it, else in its own. Questions, choices and fields stand
            in the same order, so that what a person picks is the study's choice of that place.
        """
        if not self.languages:
            return self
        document = plain(self.document, self.language_for(language), StudyError)
        # Those two refer to labels of the study's own language.
        shown = Study({key: document[key] for key in document if key not in ("paper", "channel")})
        shown.channel = self.channel
        shown.only_shown = True
        return shown

    def language_for(self, language: str) -> str:
        """Say in which language `shown_in` shows the study.

        Args:
            language: any tag.

        Returns:
            The study's tag that is the same, else begins with the same part, else its first one; "" where it
            does not say which it has.
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
        """What these questions cost a device, in all versions together, in nats.

        It is the sum of their stated epsilon (basic composition). If ask_one, a device answers one of those
        that are asked once, and costs the largest of them. But every version draws anew among those that are
        memoized, and a device may come to answer all: they count in full.
        """
        return self._together([question.mechanism.epsilon for question in self.questions])

    @property
    def delta(self) -> Rational:
        """What these questions cost a device of delta, a probability: added up as epsilon is."""
        return self._together([question.mechanism.delta for question in self.questions])

    def _together(self, costs: "list[Rational]") -> Rational:
        total = largest = Rational(0)
        for question, cost in zip(self.questions, costs):
            if not self.ask_one or question.repeats:
                total = total + cost
            elif largest < cost:
                largest = cost
        return total + largest

    @property
    def cells(self) -> int:
        """How many combinations of public values there are; 1 without public fields."""
        cells = 1
        for field in self.public:
            cells *= field.size
        return cells

    def wrong_public(self, values: "dict[str, str]", invited: bool = False) -> "Optional[tuple[str, str]]":
        """Find out whether a report's public values are this study's.

        Args:
            values: {field id: value}, as the report has them.
            invited: whether an invitation still adds the fields that it carries, so that they may be missing.

        Returns:
            (field, problem) of the first value that is wrong, None where all are right.
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
        """Find out whether a report with payloads for these questions answers all; if ask_one exactly one.

        Args:
            names: ids of the questions that the report has payloads for.

        Returns:
            (question, problem) of the first payload that is wrong, None where the report answers the study.
        """
        given = sorted(names)
        asked = [question.id for question in self.questions]
        for name in given:
            if name not in asked:
                return name, "the study has no such question"
        if self.ask_one:
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
