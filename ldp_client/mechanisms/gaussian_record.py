"""One record with noise on every entry: perturbed features and response (LDPBI 3.2.3, METHODS 5).

A numeric response is released with the features in one normal vector. The study's response_share is
then the share of the squared L2 distance of two records that the response may use. A yes/no response
is released by randomized response, next to normal features. response_share is then its share of ε.
"""

from math import floor, isqrt
from typing import Any

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius, log_ratio
from ldp_client.core.quantise import clip_norm
from ldp_client.core.randomness import Source, truth_or_other
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import Privacy, pack_signed, register, unpack_signed
from ldp_client.mechanisms.record import RecordMechanism


@register
class GaussianRecord(RecordMechanism):
    """Features clipped to the norm in integers, plus round(2**20 × N(0, 1)) on each; then the response.

    grid: integers for a scaled feature of 1. radius: no vector of features is longer, in integers. distance:
    of two records, in integers, that the noise hides.
    A numeric response is one more entry of the vector, on its own grid. response_grid: integers for a scaled
    response of 1. Two records are at most 2·radius apart in their features and 2·response_grid in their
    response: together no more than the distance.
    A yes/no is one more byte, 0 or 1: the truth with probability threshold / 2**32 (p, else q).
    A payload has 4 signed bytes for each feature, then 4 signed bytes or 1 byte for the response.
    """

    name = "gaussian_record"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        stated, count = question.mechanism, len(self.features)
        share = stated.response_share
        assert share is not None
        path = f"{self.where}.response_share"
        if self.binary:
            of_response = stated.epsilon * share
            of_features = stated.epsilon - of_response
            self.distance = gaussian_radius(of_features, stated.delta, count)
            self._set_grid(question, self.distance)
            self.units = (self.grid, 1)
            is_large = not self._tell_truth(of_response, 2)
            problem = "leaves too little epsilon for the response"
            refuse_study(is_large, path, problem, "study.response_share_too_large")
            self.payload_size = 4 * count + 1
            self.privacy = Privacy(of_features + log_ratio(*self.odds), stated.delta)
            return
        self.distance = gaussian_radius(stated.epsilon, stated.delta, count + 1)
        square = self.distance * self.distance
        square_of_response = floor(square * share)
        self._set_grid(question, isqrt(square - square_of_response))
        self.response_grid = isqrt(square_of_response) // 2
        is_small = self.response_grid < 1
        refuse_study(is_small, path, "is too small", "study.response_share_too_small")
        self.units = (self.grid, self.response_grid)
        self.payload_size = 4 * (count + 1)
        self.privacy = Privacy(stated.epsilon, stated.delta)

    def _set_grid(self, question: Question, distance: int) -> None:
        """Set the grid on which clipped features have a norm of at most half of `distance`."""
        assert question.norm is not None
        self.radius = distance // 2
        self.grid = floor(self.radius / question.norm)
        problem = "epsilon or delta is too small for a record of this size"
        refuse_study(self.grid < 1, self.where, problem, "study.epsilon_too_small_for_record")

    @property
    def feature_noise_sd(self) -> float:
        """The noise's standard deviation on each feature, in scaled units."""
        return (1 << NOISE_BITS) / self.grid

    @property
    def response_noise_sd(self) -> float:
        """The noise's standard deviation on a numeric response, in scaled units."""
        return (1 << NOISE_BITS) / self.response_grid

    def quantise(self, answer: Any) -> list[int]:
        """Return features, clipped to the norm, and the response on its grid or as 0 or 1.

        Raises AnswerError.
        """
        features, response = self.quantise_fields(answer)
        return [*clip_norm(features, self.radius), int(response > 0) if self.binary else response]

    def randomise(self, quantised: list[int], random: Source) -> bytes:
        """Add one normal to each entry, but apply randomized response to a yes/no."""
        noise = normal(len(self.features) + (not self.binary), random)
        noisy = pack_signed([value + disturbance for value, disturbance in zip(quantised, noise)])
        if self.binary:
            noisy += bytes([truth_or_other(quantised[-1], 2, self.threshold, random)])
        return noisy

    def check(self, payload: bytes) -> None:
        """Raise ReportError if an entry exceeds record plus noise, or a yes/no is not 0 or 1."""
        super().check(payload)
        split = 4 * len(self.features)
        if any(abs(value) > self.radius + NOISE_REACH for value in unpack_signed(payload[:split])):
            raise self.impossible("has a feature out of range")
        if self.binary:
            if payload[-1] > 1:
                raise self.impossible("has a response that is neither yes nor no")
        elif abs(unpack_signed(payload[split:])[0]) > self.response_grid + NOISE_REACH:
            raise self.impossible("has a response out of range")
