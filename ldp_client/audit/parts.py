"""A record with a yes/no response, seen in parts: features with normal noise, a response by a coin."""

from ldp_client.audit.pairs import answers_for
from ldp_client.core.calibration import log_ratio
from ldp_client.core.strips import NOISE_REACH
from ldp_client.mechanisms.base import Mechanism, Privacy
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from schemas.rational import Rational

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from schemas.study import Question


def has_parts(mechanism: "Any") -> bool:
    """Whether a report has features and a response whose ε add up."""
    return isinstance(mechanism, GaussianYesNoRecord)


class Features(Mechanism):
    """The noisy features alone, at the privacy that the study leaves for them."""

    name = "gaussian_record"

    def __init__(self, of: "Any", privacy: Privacy) -> None:
        self.of = of
        self.field, self.privacy = of.field, privacy
        self.payload_size = of.payload_size - 1

    def quantise(self, answer: "Any") -> "list[int]":
        entries: "list[int]" = self.of.quantise(answer)
        return entries

    def randomise(self, quantised: "list[int]", random: "Source") -> bytes:
        """A report without its response."""
        return bytes(self.of.randomise(quantised, random)[:-1])

    def check(self, payload: bytes) -> None:
        """As part of a report."""
        self.of.check(payload + bytes(1))


class Response(ChoiceMechanism):
    """The noisy response alone, of two records that differ in all: its privacy is what its odds give."""

    name = "randomized_response"

    def __init__(self, of: "Any", question: "Question") -> None:
        self.of = of
        self.field = of.field
        answers = answers_for(question)
        self.records = [answers["all high, no"], answers["all low, yes"]]
        self.labels, self.choices, self.payload_size = ("no", "yes"), 2, 1
        self.numbered, self.boolean = False, True
        self.p, self.q, self.odds = of.p, of.q, of.odds
        self.privacy = Privacy(log_ratio(*of.odds), Rational(0))

    def randomise(self, quantised: int, random: "Source") -> bytes:
        """The response of a report."""
        return bytes(self.of.perturb(self.records[quantised], random)[-1:])

    def supported(self, payload: bytes, index: int) -> bool:
        """As randomized response."""
        return payload[0] == index

    def check(self, payload: bytes) -> None:
        """As part of a report."""
        self.of.check(bytes(self.of.payload_size - 1) + payload)


class Together(Mechanism):
    """The whole report, to look for events of features and response together."""

    name = "gaussian_record"

    def __init__(self, of: "Any") -> None:
        self.of = of
        self.field, self.privacy, self.payload_size = of.field, of.privacy, of.payload_size

    def quantise(self, answer: "Any") -> "list[int]":
        entries: "list[int]" = self.of.quantise(answer)
        return entries

    def randomise(self, quantised: "list[int]", random: "Source") -> bytes:
        """A report."""
        return bytes(self.of.randomise(quantised, random))

    def check(self, payload: bytes) -> None:
        """As the mechanism does."""
        self.of.check(payload)

    def words(self, payload: bytes) -> "list[int]":
        """The features, and the response as far apart as noise reaches."""
        return [*super().words(payload), payload[-1] * NOISE_REACH]
