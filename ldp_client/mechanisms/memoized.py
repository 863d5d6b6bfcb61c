"""A permanent noisy answer, and fresh noise on it for each report (as RAPPOR; Erlingsson et al. 2014).

However often a device reports, all its reports together are post-processing of one permanent answer,
which is drawn once and kept: they cost the longitudinal ε once. The instantaneous ε applies to a
single report, and hides that two reports come from the same permanent answer.
"""

from fractions import Fraction
from typing import Any

from ldp_client.core.noise_levels import memoized_flip, memoized_truth
from ldp_client.core.randomness import Source, truth_or_other
from ldp_client.documents.question import Question
from ldp_client.mechanisms.base import MECHANISMS, Mechanism, Privacy
from ldp_client.mechanisms.choice import ChoiceMechanism, RandomizedResponse
from ldp_client.mechanisms.unary import Sue, biased_bits


class Memoized(ChoiceMechanism):
    """A choice mechanism with two stages. p, q, odds and report_privacy describe a single report.

    privacy: the longitudinal loss, of all reports together. of: the name of the mechanism at both stages,
    which also defines the format of states and payloads. first: the permanent stage. again: the threshold
    of the instantaneous stage, over 2**bits.
    """

    name = "memoized"
    of = ""
    first: RandomizedResponse | Sue
    report_privacy: Privacy

    def _state_both(self, often: int, seldom: int) -> None:
        """Set odds and the privacy of one report and of all, from the two weights of one report."""
        self._state_odds(often, seldom)
        self.report_privacy, self.privacy = self.privacy, self.first.privacy
        self.payload_size = self.first.payload_size

    def permanent(self, quantised: int, random: Source) -> bytes:
        """Draw the permanent noisy answer. Call it once, and keep the result."""
        return self.first.randomise(quantised, random)

    def instantaneous(self, state: bytes, random: Source) -> bytes:
        """Draw a payload from the permanent answer."""
        raise NotImplementedError(self.of)

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Apply both stages, for a device that reports once."""
        return self.instantaneous(self.permanent(quantised, random), random)

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if the payload supports the choice in the memoized mechanism."""
        return self.first.supported(payload, index)

    def check(self, payload: bytes) -> None:
        """Raise ReportError for a payload that no device could have sent."""
        self.first.check(payload)


class MemoizedResponse(Memoized):
    """k-ary randomized response applied twice, which is k-ary randomized response again."""

    of = "randomized_response"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.first = RandomizedResponse(question)
        k, whole, kept = self.choices, 1 << self.bits, self.first.threshold
        self.again = memoized_truth(_instantaneous(question), kept, k)
        truth = kept * self.again * (k - 1) + (whole - kept) * (whole - self.again)
        everything = whole * whole * (k - 1)
        self._state_both(truth * (k - 1), everything - truth)
        self.p = Fraction(truth, everything)
        self.q = Fraction(everything - truth, everything * (k - 1))

    def instantaneous(self, state: bytes, random: Source) -> bytes:
        """Return the permanent choice with probability again / 2**bits, else another choice."""
        kept = int.from_bytes(state, "big")
        return truth_or_other(kept, self.choices, self.again, random).to_bytes(self.payload_size, "big")


class MemoizedSue(Memoized):
    """Symmetric unary encoding with every bit flipped twice, which is symmetric unary encoding again."""

    of = "sue"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.first = first = Sue(question)
        whole, flipped = 1 << self.bits, first.threshold
        self.again = memoized_flip(_instantaneous(question), flipped)
        flips = flipped * (whole - self.again) + (whole - flipped) * self.again
        kept = whole * whole - flips
        self._state_both(kept * kept, flips * flips)
        self.p, self.q = Fraction(kept, whole * whole), Fraction(flips, whole * whole)
        self._pack = first.pack

    def instantaneous(self, state: bytes, random: Source) -> bytes:
        """Return the permanent bits, each flipped with probability again / 2**bits."""
        flips = biased_bits(self.again, self.payload_size, random)
        return self._pack(int.from_bytes(state, "little") ^ flips)


class Remembering(Mechanism):
    """A memoized mechanism with one person's permanent answer: drawn at its first use, None before.

    A caller that makes a report must store `answer` durably before the report leaves, for all later reports.
    """

    def __init__(self, mechanism: Any, answer: bytes | None) -> None:
        self.name = mechanism.name
        self.field = mechanism.field
        self.privacy = mechanism.privacy
        self.payload_size = mechanism.payload_size
        self.mechanism = mechanism
        self.answer = answer

    def quantise(self, answer: Any) -> Any:
        return self.mechanism.quantise(answer)

    def randomise(self, quantised: Any, random: Source) -> bytes:
        if self.answer is None:
            self.answer = bytes(self.mechanism.permanent(quantised, random))
        return bytes(self.mechanism.instantaneous(self.answer, random))


def _instantaneous(question: Question) -> Fraction:
    stated = question.mechanism.instantaneous_epsilon
    assert stated is not None
    return stated


def memoized(question: Question) -> Mechanism:
    """Build the memoized form of the mechanism that the study names in `of`. Raises StudyError."""
    return {kind.of: kind for kind in (MemoizedResponse, MemoizedSue)}[question.mechanism.of](question)


MECHANISMS["memoized"] = memoized
