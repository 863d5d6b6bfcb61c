"""A study: what is asked, what a device may answer, and the noise that protects the answer."""

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, Self

from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.channel import CHANNEL, PROTOCOL, Channel, SecureSum
from ldp_client.documents.errors import StudyError
from ldp_client.documents.fields import Boolean, Constant, Day, Error, Identifier, Integer, Matching, OneOf
from ldp_client.documents.public import PUBLIC, PublicField, wrong_value
from ldp_client.documents.question import QUESTIONS, SECTIONS, Question, Section
from ldp_client.documents.rational import Rational
from ldp_client.documents.report import MOST_QUESTIONS
from ldp_client.documents.rules import check_study
from ldp_client.documents.shapes import ListOf, Record, Tagged
from ldp_client.documents.spoken import FIELD, LANGUAGES, Spoken, languages_of, plain

LONGEST_CONTACT = 200
MOST_DAYS = 36500
# Code points that end a line or change the writing direction.
MARKS = (*range(0x2028, 0x202F), *range(0x2066, 0x206A))


class Line(Spoken):
    """A text on one line, without control characters and without marks that change the writing direction."""

    def read(self, value: Any, path: str, error: Error) -> str:
        text = Spoken.read(self, value, path, error)
        codes = [ord(character) for character in text]
        if any(code < 0x20 or 0x7F <= code < 0xA0 or code in MARKS for code in codes):
            raise error(path, "must be one line, without control characters")
        return text


# Without @ in a web address: the host after it would differ from the host that people see first.
_WEB = r"https://[A-Za-z0-9][A-Za-z0-9._+~:/?#\[\]!$&'()*,;=%-]*"
_MAIL = "[A-Za-z0-9._+-]+@[A-Za-z0-9_+-]+([.][A-Za-z0-9_+-]+)+"
CONTACT = Matching(
    f"({_WEB}|{_MAIL})",
    "must be an e-mail address, or a web address that begins with https://, of at most "
    f"{LONGEST_CONTACT} characters",
    LONGEST_CONTACT,
)
# Fields of a study document.
ASKER = {
    "owner": Line(200),
    "contact": CONTACT,
    "ethics": Line(1000),
    "retention": Record({"days": Integer(1, MOST_DAYS)}),
}

FORMAT = "ldpkit.study/1"
MAX_BYTES = 1 << 20
# Who answers: one person about herself, or a data holder about its many records.
RESPONDENTS = ("person", "holder")

_OPTIONAL: dict[str, Any] = {
    FIELD: LANGUAGES,
    "purpose": Spoken(5000),
    "consent": Spoken(2000),
    "opens": Day(),
    "closes": Day(),
    "sample_one_question": Boolean(),
    "sections": SECTIONS,
    "public": PUBLIC,
    "protocol": PROTOCOL,
    "channel": CHANNEL,
    "respondent": OneOf(RESPONDENTS),
    **ASKER,
}
STUDY = Record(
    {
        "format": Constant(FORMAT),
        "id": Identifier(),
        "version": Integer(1, 10**6),
        "title": Spoken(200),
        "questions": ListOf(Tagged("ask", QUESTIONS), 1, MOST_QUESTIONS, unique_by="id"),
    },
    _OPTIONAL,
)


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
        consent: the owner's own words about what a person agrees to; "" if not stated.
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
            fields whose values come with the ticket.

    Raises:
        StudyError: the document is not a study; the error names the field that is wrong.
    """

    # True for a study that `shown_in` returned, which was never published.
    only_shown = False
    # What a subclass reads the document and each question by.
    _shape = STUDY
    _question_class = Question

    def __init__(self, document: dict[str, Any]) -> None:
        self.languages: tuple[str, ...] = languages_of(document, StudyError)
        self._take(self._read(document))
        self._canonical = canonical_json(document)

    def _read(self, document: Any) -> dict[str, Any]:
        """Parse the document in its own language. Raise StudyError if it is invalid in any language."""
        languages = self.languages
        try:
            own = plain(document, languages[0], StudyError) if languages else document
        except RecursionError:
            raise StudyError("", "is nested too deeply", code="study.too_deep") from None
        parsed: dict[str, Any] = self._shape.read(own, "", StudyError)
        for language in languages[1:]:
            self._shape.read(plain(document, language, StudyError), "", StudyError)
        return parsed

    def _take(self, parsed: dict[str, Any]) -> None:
        """Check the parsed document as a whole, and keep its values. Raise StudyError."""
        check_study(parsed)
        self.id: str = parsed["id"]
        self.version: int = parsed["version"]
        self.title: str = parsed["title"]
        self.purpose: str = parsed["purpose"] or ""
        self.owner: str = parsed["owner"] or ""
        self.contact: str = parsed["contact"] or ""
        self.ethics: str = parsed["ethics"] or ""
        self.consent: str = parsed["consent"] or ""
        retention = parsed["retention"]
        self.retention_days: int | None = retention["days"] if retention else None
        self.opens: str | None = parsed["opens"]
        self.closes: str | None = parsed["closes"]
        self.protocol: SecureSum | None = SecureSum(parsed["protocol"]) if parsed["protocol"] else None
        self.channel: Channel | None = Channel(parsed["channel"]) if parsed["channel"] else None
        self.sample_one_question: bool = bool(parsed["sample_one_question"])
        self.respondent: str = parsed["respondent"] or RESPONDENTS[0]
        asked = enumerate(parsed["questions"])
        self.questions: tuple[Question, ...] = tuple(
            [self._question_class(item, f"questions[{index}]", self.protocol) for index, item in asked]
        )
        self.sections: tuple[Section, ...] = tuple(Section(item) for item in parsed["sections"] or ())
        for section in [one for one in self.sections if one.any_of]:
            for name in section.questions:
                self.question(name).list_title = section.title
        self.public: tuple[PublicField, ...] = tuple(PublicField(item) for item in parsed["public"] or ())
        self.carried = tuple(field for field in self.public if field.from_ticket)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
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
    def document(self) -> Any:
        """The plain JSON value, a new copy each time: changes to a copy do not change the digest."""
        return json.loads(self._canonical)

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        return self._canonical

    def canonical(self) -> bytes:
        """Return the canonical bytes, over which the digest and signatures are computed."""
        return self._canonical.encode("utf-8")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes, 64 hexadecimal digits."""
        from hashlib import sha256

        return sha256(self.canonical()).hexdigest()

    def shown_in(self, language: str) -> Self:
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
        # channel refers to labels in the study's own language.
        shown = type(self)({key: document[key] for key in document if key != "channel"})
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
        return self.total_of([question.mechanism.epsilon for question in self.questions])

    @property
    def delta(self) -> Rational:
        """The delta, a probability, that these questions spend on a device: added up as epsilon is."""
        return self.total_of([question.mechanism.delta for question in self.questions])

    def total_of(self, costs: Sequence[Fraction]) -> Rational:
        """Add up the costs of the questions, as `epsilon` does.

        Args:
            costs: of each question, in order.

        Returns:
            The cost of all.
        """
        total = largest = Fraction(0)
        for question, cost in zip(self.questions, costs):
            if not self.sample_one_question or question.repeats:
                total += cost
            else:
                largest = max(largest, cost)
        return Rational(total + largest)

    @property
    def cells(self) -> int:
        """The number of combinations of public values; 1 without public fields."""
        return prod([field.size for field in self.public])

    @property
    def strata(self) -> int:
        """The number of combinations of public values that tickets can carry; 1 if they carry none."""
        return prod([field.size for field in self.carried])

    def wrong_public(self, values: dict[str, str], invited: bool = False) -> tuple[str, str] | None:
        """Check a report's public values against this study.

        Args:
            values: {field id: value}, as the report has them.
            invited: whether a ticket still adds the fields that it carries, so that they may be missing.

        Returns:
            (field, problem) of the first value that is wrong, or None if all are right.
        """
        return wrong_value(self.public, values, invited)

    def wrong_payload(self, names: Iterable[str]) -> tuple[str, str] | None:
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
