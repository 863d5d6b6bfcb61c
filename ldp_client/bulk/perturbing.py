"""perturb_many for every mechanism: quantise all answers, then noise in chunks of bounded memory."""

import logging

import numpy as np

from ldp_client.bulk import choices, numbers
from ldp_client.bulk.quantising import count_clipped, quantise_many
from ldp_client.clipping import ClippedCount
from ldp_client.core.randomness import urandom
from ldp_client.mechanisms.memoized import refuse_forgetful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from ldp_client.bulk.quantising import Quantised
    from ldp_client.core.randomness import Source
    from ldp_client.mechanisms import Mechanism

    Payloads = NDArray[np.uint8]
    Randomise = Callable[[Any, Any, Source], Payloads]

# Working memory of a chunk, in bytes of its largest array: it should stay in a processor's cache.
CHUNK = 1 << 19

# Mechanisms by name; all others go through their scalar form.
RANDOMISERS: "dict[str, Randomise]" = {
    "laplace": numbers.laplace,
    "gaussian": numbers.gaussian,
    "gaussian_statistics": numbers.gaussian_statistics,
    "gaussian_record": numbers.gaussian_record,
    "randomized_response": choices.randomized_response,
    "oue": choices.oue,
    "sue": choices.sue,
    "subset_selection": choices.subset_selection,
    "olh": choices.olh,
    "hadamard": choices.hadamard,
    "memoized": choices.memoized,
}


def perturb_many(mechanism: "Mechanism", answers: "Any", random: "Source" = urandom) -> "Payloads":
    """Draw one noisy payload for each of many answers, by the law of the mechanism's `perturb`.

    All answers are checked before any noise is drawn. How many answers were clipped goes to the logger
    "ldpkit", as a warning: one line on standard error where logging is not set up.

    Args:
        mechanism: the question's; memoized ones are refused.
        answers: in the forms that quantise_many takes: an array of numbers, of booleans for a yes/no, of
            labels or of numbered choices; for a record {field: array}; or a sequence of answers.
        random: gives secret random bytes; the operating system's unless another is passed in.

    Returns:
        An array of uint8, one row of `payload_size` bytes for each answer.

    Raises:
        AnswerError: an answer does not fit or is missing; the error names its row.
        InputError: the question is memoized.
    """
    refuse_forgetful({mechanism.field: mechanism})
    quantised = quantise_many(mechanism, answers)
    count = ClippedCount()
    count.total = len(quantised)
    count.note(mechanism.field, count_clipped(mechanism, answers))
    if count.line():
        logging.getLogger("ldpkit").warning(count.line())
    return randomise_many(mechanism, quantised, random)


def randomise_many(mechanism: "Mechanism", quantised: "Quantised", random: "Source") -> "Payloads":
    """The noisy payloads of quantised answers: an array, or a list of what `quantise` returns."""
    randomise: "Randomise" = RANDOMISERS.get(mechanism.name, _one_by_one)
    step = max(1, CHUNK // max(mechanism.payload_size, 8))
    payloads = np.empty((len(quantised), mechanism.payload_size), np.uint8)
    for start in range(0, len(quantised), step):
        chunk = quantised[start : start + step]
        payloads[start : start + len(chunk)] = randomise(mechanism, chunk, random)
    return payloads


def _one_by_one(mechanism: "Mechanism", quantised: "Sequence[Any]", random: "Source") -> "Payloads":
    each = quantised.tolist() if isinstance(quantised, np.ndarray) else quantised
    together = b"".join([mechanism.randomise(value, random) for value in each])
    return np.frombuffer(together, np.uint8).reshape(len(quantised), mechanism.payload_size)
