"""Perturb many people's answers at once, in chunks of bounded memory."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ldp_client.bulk import randomising
from ldp_client.bulk.quantising import Quantised, count_clipped, in_rows, quantise_many, with_blanks
from ldp_client.bulk.randomising import Payloads
from ldp_client.columns.clipping import ClippedCount
from ldp_client.core.randomness import Source, urandom
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.mechanisms import Mechanism
from ldp_client.mechanisms.base import refuse_forgetful
from ldp_client.mechanisms.tables.base import TableMechanism

Randomise = Callable[[Any, Any, Source], Payloads]

# Working memory of a chunk, in bytes of its largest array: it should fit a processor's cache.
CHUNK = 1 << 19

# Mechanisms by name. All others use their scalar form.
RANDOMISERS: dict[str, Randomise] = {
    "laplace": randomising.number,
    "gaussian": randomising.number,
    "refusable_laplace": randomising.refusable,
    "refusable_gaussian": randomising.refusable,
    "gaussian_statistics": randomising.gaussian_statistics,
    "gaussian_record": randomising.gaussian_record,
    "sampled_products": randomising.sampled_products,
    "randomized_response": randomising.randomized_response,
    "oue": randomising.oue,
    "sue": randomising.sue,
    "olh": randomising.olh,
    "hadamard": randomising.hadamard,
    "memoized": randomising.memoized,
}


def perturb_many(
    mechanism: Mechanism, answers: Any, random: Source = urandom, refusals: bool = False
) -> Payloads:
    """Draw one noisy payload for each of many answers, by the law of the mechanism's `perturb`.

    All answers are checked before any noise is drawn. A warning to the logger "ldpkit" counts the clipped
    answers: one line on standard error if logging is not set up.

    Args:
        mechanism: the question's mechanism; memoized mechanisms are rejected.
        answers: in the forms that quantise_many takes: an array of numbers, of booleans for a yes/no, of
            labels or of numbered choices; for a record {field: array}; or a sequence of answers.
        random: the operating system's generator, or NotForRealAnswers(source) in tests and simulations.
        refusals: treat missing answers (None, NaN, masked) as "prefer not to say", if the question offers it.

    Returns:
        An array of uint8, one row of `payload_size` bytes for each answer.

    Raises:
        AnswerError: an answer does not fit or is missing; the error names its row.
        InputError: the question is memoized, `refusals` is set but the question offers no refusal, or
            `mechanism` is not a mechanism.
    """
    if not hasattr(mechanism, "payload_size"):
        raise InputError(
            "perturb_many takes a mechanism, such as mechanism_for(study.questions[0]), not a "
            f"{type(mechanism).__name__}: `ldpkit perturb` takes a study",
            code="files.one_mechanism",
        )
    if isinstance(mechanism, TableMechanism):
        # Each holder perturbs its own table.
        raise AnswerError.say("core.table_alone", mechanism.field)
    refuse_forgetful({mechanism.field: mechanism})
    answers = with_blanks(mechanism, in_rows(mechanism.field, answers), refusals)
    quantised = quantise_many(mechanism, answers)
    count = ClippedCount()
    count.total = len(quantised)
    count.note(mechanism.field, count_clipped(mechanism, answers))
    if count.line():
        logging.getLogger("ldpkit").warning(count.line())
    return randomise_many(mechanism, quantised, random)


def randomise_many(mechanism: Mechanism, quantised: Quantised, random: Source) -> Payloads:
    """Return the noisy payloads of quantised answers: an array, or a list of results of `quantise`."""
    randomise: Randomise = RANDOMISERS.get(mechanism.name, _one_by_one)
    step = max(1, CHUNK // max(mechanism.payload_size, 8))
    payloads = np.empty((len(quantised), mechanism.payload_size), np.uint8)
    for start in range(0, len(quantised), step):
        chunk = quantised[start : start + step]
        payloads[start : start + len(chunk)] = randomise(mechanism, chunk, random)
    return payloads


def _one_by_one(mechanism: Mechanism, quantised: Sequence[Any], random: Source) -> Payloads:
    each = quantised.tolist() if isinstance(quantised, np.ndarray) else quantised
    together = b"".join([mechanism.randomise(value, random) for value in each])
    return np.frombuffer(together, np.uint8).reshape(len(quantised), mechanism.payload_size)
