"""The base class of all mechanisms: sampler, privacy loss, and the check of payloads."""

import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from ldp_client.core.noise_levels import CHOICE_BITS, truth_threshold
from ldp_client.core.randomness import Source, urandom
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.documents.question import Question

LARGEST_SIGNED = (1 << 31) - 1


class Privacy(NamedTuple):
    """The exact privacy loss of a mechanism's integer arithmetic, for replace-one neighbours.

    Attributes:
        epsilon: nats; exact, or (a logarithm) at most 2**-100 above the exact value.
        delta: a probability.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __repr__(self) -> str:
        return f"Privacy(epsilon={float(self.epsilon):.9g}, delta={float(self.delta):.9g})"


class Mechanism:
    """One way to answer one question with noise.

    A subclass sets `privacy` and `payload_size` and implements `quantise` and `randomise`. A sentence in
    ldp_client/words/en.json describes the mechanism.

    Args:
        question: the question that it answers.

    Attributes:
        name: the mechanism's name in studies.
        field: the question's id.
        where: the path of the mechanism in the study document.
        privacy: the exact loss of its integer arithmetic.
        payload_size: bytes, the same for every answer.
        refusal: whether None, "prefer not to say", is an answer too, which the noise hides like all others.
    """

    name = ""
    refusal = False
    privacy: Privacy
    payload_size: int

    def __init__(self, question: Question) -> None:
        self.field = question.id
        self.where = f"{question.path}.mechanism"
        self.refusal = question.refusal

    def perturb(self, answer: Any, random: Source = urandom) -> bytes:
        """Draw one noisy payload for one answer.

        Args:
            answer: a number, a choice, a yes or no, or a record, as the question asks; None, "prefer not to
                say", if the question offers it.
            random: the operating system's generator, or NotForRealAnswers(source) in tests and simulations.

        Returns:
            `payload_size` bytes.

        Raises:
            AnswerError: the answer does not fit; the error does not repeat it.
        """
        return self.randomise(self.quantise(answer), random)

    def quantise(self, answer: Any) -> Any:
        """Convert an answer to integers within the mechanism's domain; subclasses implement it.

        Args:
            answer: as in `perturb`.

        Returns:
            The argument of `randomise`.

        Raises:
            AnswerError: the answer does not fit; the error does not repeat it.
        """
        raise NotImplementedError(self.name)

    def randomise(self, quantised: Any, random: Source) -> bytes:
        """Draw the noisy payload of a quantised answer; subclasses implement it.

        Args:
            quantised: the result of `quantise`.
            random: a source of secret random bytes.

        Returns:
            `payload_size` bytes.
        """
        raise NotImplementedError(self.name)

    def check(self, payload: bytes) -> None:
        """Reject a payload that no device could have sent.

        Args:
            payload: a report's bytes for this question.

        Raises:
            ReportError: the size is wrong or, in subclasses, the content is.
        """
        if len(payload) != self.payload_size:
            raise self.impossible(f"must have {self.payload_size} bytes, has {len(payload)}")

    def words(self, payload: bytes) -> list[int]:
        """Read a payload's noisy integers.

        Args:
            payload: signed 32-bit big-endian integers; trailing bytes of an incomplete integer are ignored.

        Returns:
            The integers.
        """
        return unpack_signed(payload[: len(payload) - len(payload) % 4])

    def _tell_truth(self, epsilon: Fraction, count: int) -> bool:
        """Set threshold, odds, p and q to tell the truth among `count` values, else another, within epsilon.

        Returns:
            False if epsilon is too small: the caller raises an error.
        """
        whole, others = 1 << CHOICE_BITS, count - 1
        self.threshold = truth_threshold(epsilon, count)
        self.odds = (self.threshold * others, whole - self.threshold)
        self.p = Fraction(self.threshold, whole)
        self.q = Fraction(whole - self.threshold, whole * others)
        return self.odds[0] > self.odds[1] > 0

    def impossible(self, problem: str) -> ReportError:
        """Build the error for an impossible payload of this question; the caller raises it.

        Args:
            problem: a description of the problem.

        Returns:
            The error, which names the question.
        """
        return ReportError(f"payloads.{self.field}", problem, code="report.payload_impossible")


# Builds a question's mechanism, by the name that studies use.
MECHANISMS: dict[str, Callable[[Question], Mechanism]] = {}


def register(kind: type[Mechanism]) -> type[Mechanism]:
    """Add a mechanism to the registry: a class decorator.

    Other threads may use the class at once: what it needs of its module comes before it.

    Raises:
        ValueError: Another mechanism has the name.
    """
    if kind.name in MECHANISMS:
        raise ValueError(f"a mechanism {kind.name!r} is already registered")
    MECHANISMS[kind.name] = kind
    return kind


def refuse_forgetful(mechanisms: dict[str, Any]) -> None:
    """Raise InputError for a memoized mechanism that is not `memoized.Remembering`.

    It would draw a new permanent answer for each report, and many reports together reveal the true answer.
    """
    for question in mechanisms:
        if hasattr(mechanisms[question], "permanent"):
            raise InputError.say("core.memoized", question=question)


def pack_signed(values: list[int]) -> bytes:
    """Pack values as signed 32-bit big-endian integers. Values out of range saturate (post-processing)."""
    if max(values) > LARGEST_SIGNED or min(values) < -LARGEST_SIGNED:
        values = [min(max(value, -LARGEST_SIGNED), LARGEST_SIGNED) for value in values]
    return struct.pack(f">{len(values)}i", *values)


def unpack_signed(payload: bytes) -> list[int]:
    """Return the integers that `pack_signed` packed."""
    return list(struct.unpack(f">{len(payload) // 4}i", payload))
