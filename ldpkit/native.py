"""The integers of a question for the device core in C: the members of `ldp_question` in c/ldpkit.h."""

import hashlib
from itertools import accumulate
from typing import Any

from ldp_client import mechanism_for
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import InputError
from ldp_client.documents.question import Field, Question
from ldp_client.documents.rules import power_of_two

# The core adds squares of 128 fields in 64 bits.
LARGEST_UNIT = 1 << 28
CONSTANT = 0xFFFF
KEY_BYTES = 16
SIMPLE = (
    *("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard"),
    *("laplace", "gaussian", "gaussian_record", "gaussian_statistics", "sampled_products"),
)
# The members that are attributes of the mechanism, under the same names.
MEMBERS = ("levels", "threshold", "choices", "width", "radius", "weight", "diagonal", "off_diagonal", "signs")
# The attribute that a choice mechanism draws by: `size` in the core.
SIZES = ("size", "hashes", "blocks")
MEMOIZED = {"randomized_response": "LDP_MEMOIZED_RESPONSE", "sue": "LDP_MEMOIZED_SUE"}


def question_table(question: Question) -> dict[str, Any]:
    """Return the members of a question's `ldp_question` by name, without members that are 0.

    Raises:
        StudyError: the mechanism has no noise at this epsilon.
        InputError: the core does not have the mechanism, or an integer is too large for it.
    """
    name = question.mechanism.name
    if name not in SIMPLE and name != "memoized":
        raise InputError(
            f"{question.id}: {name} needs the Python library: the core in C does not have this mechanism",
            code="compile.mechanism",
        )
    mechanism: Any = mechanism_for(question)
    table: dict[str, Any] = {
        "id": question.id,
        "mechanism": MEMOIZED[question.mechanism.of] if name == "memoized" else f"LDP_{name.upper()}",
        "payload_size": mechanism.payload_size,
        "refusal": int(question.refusal),
    }
    # A memoized mechanism draws its permanent answer by the integers of its first stage.
    sampler = mechanism.first if name == "memoized" else mechanism
    table |= {member: getattr(sampler, member, 0) for member in MEMBERS}
    if question.ask == "number":
        assert question.bounds is not None
        low, high = question.bounds
        table["fields"] = [{"id": question.id, "low": float(low), "high": float(high)}]
    elif question.ask == "record":
        table["fields"] = [_field(field) for field in question.fields]
        table |= _products(mechanism) if name == "sampled_products" else _normals(mechanism)
    else:
        table["fields"] = [{"id": question.id, "choices": len(question.choices)}]
        table["again"] = getattr(mechanism, "again", 0)
        table["size"] = next((getattr(sampler, size) for size in SIZES if hasattr(sampler, size)), 0)
    if name == "subset_selection":
        table["work_words"] = _words(4 * (mechanism.choices - 1 + mechanism.size))
    if question.repeats:
        table["memory"] = _memory_of(question, table)
    if table.get("unit", 0) >= LARGEST_UNIT or table.get("off_diagonal", 0) >> 64:
        raise InputError(
            f"{question.id}: the norm is too small for integers of 64 bits: state a larger norm",
            code="compile.norm_unfit",
        )
    return {key: value for key, value in table.items() if value}


def _field(field: Field) -> dict[str, Any]:
    if field.choices or field.bounds is None:
        return {"id": field.id, "choices": len(field.choices) or 2}
    low, high = field.bounds
    return {
        "id": field.id,
        "low": float(low),
        "high": float(high),
        "cuts": [float(cut) for cut in field.cuts],
    }


def _normals(mechanism: Any) -> dict[str, Any]:
    """Return the units and the working memory of a perturbed record or of Gaussian statistics."""
    statistics = mechanism.name == "gaussian_statistics"
    draws = len(mechanism.coordinates) if statistics else mechanism.payload_size // 4
    unit, response_unit = mechanism.units
    work_words = len(mechanism.features) + 2 + _words(12 * draws)
    return {"unit": unit, "response_unit": response_unit, "work_words": work_words}


def _products(mechanism: Any) -> dict[str, Any]:
    entries = [(CONSTANT, 0)]
    for index, field in enumerate(mechanism.features):
        if field.choices:
            entries += [(index, number) for number in range(1, power_of_two(len(field.choices)))]
        else:
            entries += [(index, cut) for cut in range(len(field.cuts) or 1)]
    entries.append((len(mechanism.features), 0))
    return {
        "entries": entries,
        "products": [mechanism.coordinates[product] for block in mechanism.blocks for product in block],
        "ends": list(accumulate(mechanism.weights)),
        "blocks": len(mechanism.blocks),
    }


def _words(size: int) -> int:
    return (size + 7) // 8


def _memory_of(question: Question, table: dict[str, Any]) -> list[int]:
    """Return 16 bytes that name a memoized question's words and its permanent noise."""
    stated = {
        "text": question.full_text,
        "choices": len(question.choices) if question.numbered else list(question.choices),
        "mechanism": table["mechanism"],
        "threshold": table["threshold"],
    }
    return list(hashlib.sha256(canonical_json(stated).encode()).digest()[:KEY_BYTES])
