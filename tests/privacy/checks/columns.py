"""What noise did to reports, in columns of mean 0 that no answer has a part in: to be held together.

Where two questions, two people, or a report's id share random bytes, columns of theirs go together.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ldp_client.audit.answers import SILENT, words_of
from ldp_client.audit.findings import Check
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_record import GaussianYesNoRecord
from ldp_client.mechanisms.sampled_products import SampledProducts
from tests.privacy.checks.products import sign_told
from tests.privacy.checks.surprise import Column

# So many numbers of a payload, or products of its signs, are held against others.
WORDS = 4


def noise_columns(
    mechanism: Any, answers: Sequence[Any], payloads: Sequence[bytes], words: int = WORDS
) -> list[Column]:
    """Columns over reports, in their order; none where a payload consists of nothing that is known here.

    answers: what each report was made of. words: of a payload's numbers so many.
    """
    if isinstance(mechanism, ChoiceMechanism):
        own = _of_each(answers, mechanism.quantise)
        return [support_column(mechanism, own, own, payloads)]
    if isinstance(mechanism, SampledProducts):
        return [*_products(mechanism, answers, payloads, words)]
    return [*_numbers(mechanism, answers, payloads, words)]


def _of_each(answers: Sequence[Any], make: Any) -> list[Any]:
    """What is made of each answer: once of equal ones."""
    keys = [repr(answer) for answer in answers]
    made = {key: make(answer) for key, answer in dict(zip(keys, answers)).items()}
    return [made[key] for key in keys]


def support_column(
    mechanism: Any, own: Sequence[int], indices: Sequence[int], payloads: Sequence[bytes]
) -> Column:
    """Whether each report supports that choice; all of them their own one, or all one of the others."""
    share = float(mechanism.support_probability(own[0], indices[0])) if own else 0.0
    found = [mechanism.supported(payload, index) for payload, index in zip(payloads, indices)]
    return Column([supported - share for supported in found], share)


def _numbers(
    mechanism: Any, answers: Sequence[Any], payloads: Sequence[bytes], words: int
) -> Iterator[Column]:
    """Noise on each number, and whether a yes/no response told the truth."""
    silent = _of_each(answers, lambda answer: words_of(mechanism, answer, SILENT))
    told = [mechanism.words(payload) for payload in payloads]
    if isinstance(mechanism, GaussianYesNoRecord):
        share, own = float(mechanism.p), _of_each(answers, lambda answer: mechanism.quantise(answer)[-1])
        yield Column([(payload[-1] == one) - share for payload, one in zip(payloads, own)], share)
    for place in range(min(words, len(silent[0]) if silent else 0)):
        yield Column([float(row[place] - still[place]) for row, still in zip(told, silent)])


def _products(
    mechanism: SampledProducts, answers: Sequence[Any], payloads: Sequence[bytes], words: int
) -> Iterator[Column]:
    """Signs, and products of them, given the block drawn; and of that, its half and whether it is odd."""
    records = _of_each(answers, mechanism.quantise)
    numbers = [divmod(int.from_bytes(payload, "big"), mechanism.patterns) for payload in payloads]
    for some in range(1, min(mechanism.patterns, words + 1)):
        told = [sign_told(mechanism, record, number, some) for record, number in zip(records, numbers)]
        shares = [share for _, _, share in told]
        yield Column([own - share for _, own, share in told], shares=shares)
    blocks = range(len(mechanism.blocks))
    for chosen in (blocks[len(blocks) // 2 :], blocks[1::2]):
        share = sum([mechanism.weights[place] for place in chosen]) / mechanism.total
        if 0 < share < 1:
            yield Column([(place in chosen) - share for place, _ in numbers], share)


def not_held(name: str, questions: Sequence[str]) -> Iterator[Check]:
    """Say of which questions this could not be checked, as nothing is known of what their noise is."""
    if questions:
        detail = f"{', '.join(questions)}: nothing is known of what noise did to their payloads"
        yield Check(f"{name}, of all questions", True, detail, made=False)
