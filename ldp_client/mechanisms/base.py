"""What every mechanism states: its sampler, its privacy, and which payloads are possible."""

import struct

from ldp_client.core.randomness import urandom
from ldp_client.documents.errors import MissingExtraError, ReportError
from ldp_client.documents.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    from numpy import uint8
    from numpy.typing import NDArray

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question

    Kind = TypeVar("Kind", bound="type[Mechanism]")

LARGEST_SIGNED = (1 << 31) - 1

# How a question's mechanism is built, by the name that studies use.
MECHANISMS: "dict[str, Callable[[Question], Mechanism]]" = {}


def register(kind: "Kind") -> "Kind":
    """Add a mechanism to the registry: a class decorator.

    Raises:
        ValueError: Another mechanism has the name.
    """
    if kind.name in MECHANISMS:
        raise ValueError(f"there is a mechanism {kind.name!r} already")
    MECHANISMS[kind.name] = kind
    return kind


def part_of_ldpkit(module: str, name: str) -> "Any":
    """Import what comes with ldpkit, not with the device library alone.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return getattr(__import__(module, None, None, [name]), name)
    except ImportError as error:
        # MicroPython's errors name no module.
        if getattr(error, "name", module) != module:
            raise
        raise MissingExtraError("", module) from None


class Privacy:
    """The privacy loss that a mechanism's integers really give, replace-one neighbours.

    Args:
        epsilon: nats; exact, or (a logarithm) at most 2**-100 above the exact value.
        delta: a probability.
    """

    def __init__(self, epsilon: Rational, delta: Rational) -> None:
        self.epsilon = epsilon
        self.delta = delta

    def __repr__(self) -> str:
        return f"Privacy(epsilon={float(self.epsilon):.9g}, delta={float(self.delta):.9g})"


class Mechanism:
    """One way to answer one question with noise.

    A subclass sets `privacy` and `payload_size` and implements `quantise` and `randomise`; what it does to an
    answer is a sentence in ldp_client/words/en.json.

    Args:
        question: the question that it answers.

    Attributes:
        name: as studies write it.
        field: the question's id.
        where: where the study document states the mechanism.
        privacy: the loss that its integers really give.
        payload_size: bytes, the same for every answer.
        refusal: whether None is an answer too, "prefer not to say", which the noise hides as all others.
    """

    name = ""
    refusal = False
    privacy: Privacy
    payload_size: int

    def __init__(self, question: "Question") -> None:
        self.field = question.id
        self.where = f"{question.path}.mechanism"
        self.refusal = question.refusal

    def perturb(self, answer: "Any", random: "Source" = urandom) -> bytes:
        """Draw one noisy payload for one answer.

        Args:
            answer: a number, a choice, a yes or no, or a record, as the question asks; None, "prefer not to
                say", where the question offers it.
            random: gives secret random bytes; the operating system's unless another is passed in.

        Returns:
            `payload_size` bytes.

        Raises:
            AnswerError: the answer does not fit; the error does not repeat it.
        """
        return self.randomise(self.quantise(answer), random)

    def perturb_many(
        self, answers: "Any", random: "Source" = urandom, refusals: bool = False
    ) -> "NDArray[uint8]":
        """Draw one noisy payload for each of many answers, by the law of `perturb`. Needs NumPy.

        Args:
            answers: an array of numbers, booleans, labels or numbered choices; for a record
                {field: array}; or a sequence of answers.
            random: as in `perturb`.
            refusals: take what is missing (None, NaN, masked) as "prefer not to say", where the question
                offers it; else it is refused.

        Returns:
            An array of n rows of `payload_size` bytes.

        Raises:
            AnswerError: an answer does not fit.
            InputError: refusals of a question that does not offer it.
            MissingExtraError: the device library is installed alone, or without NumPy.
        """
        # By its name: the floor above, of ldpkit.
        perturb_many = part_of_ldpkit("ldp_client.bulk", "perturb_many")
        return perturb_many(self, answers, random, refusals)  # type: ignore[no-any-return]

    def quantise(self, answer: "Any") -> "Any":
        """Turn an answer into integers within the mechanism's domain; a subclass does it.

        Args:
            answer: as in `perturb`.

        Returns:
            What `randomise` takes.

        Raises:
            AnswerError: the answer does not fit; the error does not repeat it.
        """
        raise NotImplementedError(self.name)

    def randomise(self, quantised: "Any", random: "Source") -> bytes:
        """Draw the noisy payload of a quantised answer; a subclass does it.

        Args:
            quantised: what `quantise` returns.
            random: gives secret random bytes.

        Returns:
            `payload_size` bytes.
        """
        raise NotImplementedError(self.name)

    def in_words(self) -> str:
        """Say what the mechanism does to an answer, for people. No device core has the words."""
        # By its name: it is a floor above.
        describing = __import__("ldp_client.describing", None, None, ["in_words"])
        return describing.in_words(self)  # type: ignore[no-any-return]

    def check(self, payload: bytes) -> None:
        """Refuse a payload that no device could have sent.

        Args:
            payload: a report's bytes for this question.

        Raises:
            ReportError: the size is wrong or, in subclasses, so is what the bytes say.
        """
        if len(payload) != self.payload_size:
            raise self.impossible(f"must have {self.payload_size} bytes, has {len(payload)}")

    def words(self, payload: bytes) -> "list[int]":
        """Read the integers with noise that a payload consists of.

        Args:
            payload: signed 32-bit big-endian integers; bytes that are left over stay out.

        Returns:
            The integers.
        """
        return unpack_signed(payload[: len(payload) - len(payload) % 4])

    def impossible(self, problem: str) -> ReportError:
        """Make the error for an impossible payload of this question; the caller raises it.

        Args:
            problem: what is wrong, in words.

        Returns:
            The error, which names the question.
        """
        return ReportError(f"payloads.{self.field}", problem, code="report.payload_impossible")


def pack_signed(values: "list[int]") -> bytes:
    """Signed 32-bit big-endian integers; beyond their range they saturate (post-processing)."""
    if max(values) > LARGEST_SIGNED or min(values) < -LARGEST_SIGNED:
        values = [min(max(value, -LARGEST_SIGNED), LARGEST_SIGNED) for value in values]
    return struct.pack(f">{len(values)}i", *values)


def unpack_signed(payload: bytes) -> "list[int]":
    """The integers of pack_signed."""
    words = [int.from_bytes(payload[i : i + 4], "big") for i in range(0, len(payload), 4)]
    return [word - (1 << 32) if word >> 31 else word for word in words]
