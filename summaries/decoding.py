"""Reports one by one, as readable columns: noisy answers, and unbiased values if the mechanism has any.

For a number, `noisy.ID` is the answer with its noise, in the question's unit, and is already unbiased. For a
choice it is the reported choice, or a JSON list if a report supports several choices. On average over the
noise, `unbiased.ID[LABEL]` (`unbiased.ID` for a yes/no) is 1 for participants who answer that choice and 0
for all others: its mean estimates the share. `refused.ID` is the same for "prefer not to say"; if refusals
occur, a number is not unbiased. All columns are computed from the payload, which remains the input of
analyses.
"""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ldp_client import mechanism_for
from ldp_client.mechanisms.base import Mechanism, unpack_signed
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.number import NumberMechanism, RefusableNumber
from schemas import Report, Study
from summaries.reductions import REDUCTIONS

# Each has a column.
MOST_CHOICES = 64
Cell = str | float | None
# Names of columns, and whether each has numbers.
Columns = dict[str, bool]


class Decoder(NamedTuple):
    """The decoder of one question. columns: its columns. cells: decodes a payload into their cells."""

    columns: Columns
    cells: Callable[[bytes], list[Cell]]


class Decoding:
    """The decoded columns of a study's reports, whatever version they answer.

    find: looks up a study by its version's number and digest. columns: those of the versions asked for so
    far. undecoded: the questions without columns, because only a model can interpret their reports.
    """

    def __init__(self, find: Callable[[int, str], Study]) -> None:
        self._find = find
        self._decoders: dict[str, dict[str, Decoder]] = {}
        self.columns: Columns = {}
        self.undecoded: list[str] = []

    def meet(self, report: Report) -> None:
        """Know the columns of the version that a report answers. Raises what `find` raises."""
        if report.digest in self._decoders:
            return
        study = self._find(report.version, report.digest)
        made = {question.id: decoder_of(mechanism_for(question)) for question in study.questions}
        missing = [question for question, decoder in made.items() if decoder is None]
        self.undecoded += [question for question in missing if question not in self.undecoded]
        known = {question: decoder for question, decoder in made.items() if decoder is not None}
        self._decoders[study.digest] = known
        for decoder in known.values():
            for name, is_number in decoder.columns.items():
                # In an earlier version the question may have differed: a column is numeric only if it always
                # is.
                self.columns[name] = is_number and self.columns.get(name, True)

    def cells(self, report: Report) -> dict[str, Cell]:
        """The decoded cells of a report that was met: a number is one also in a column that has texts too."""
        found: dict[str, Cell] = {}
        for question, decoder in self._decoders[report.digest].items():
            if question in report.payloads:
                found.update(zip(decoder.columns, decoder.cells(report.payloads[question])))
        return found


def decoder_of(mechanism: Mechanism) -> Decoder | None:
    """Return a decoder for a question's payloads, or None if only a model can interpret them."""
    if isinstance(mechanism, RefusableNumber):
        number, refused = _of_number(mechanism.number), _unbiased(mechanism)
        names = {f"noisy.{mechanism.field}": True, f"refused.{mechanism.field}": True}
        return Decoder(names, lambda payload: [number.cells(payload[:-1])[0], refused[payload[-1]]])
    if isinstance(mechanism, NumberMechanism):
        return _of_number(mechanism)
    if isinstance(mechanism, ChoiceMechanism) and mechanism.choices <= MOST_CHOICES:
        return _of_choice(mechanism)
    return None


def _of_number(mechanism: NumberMechanism) -> Decoder:
    low, high = map(float, mechanism.bounds)
    step = (high - low) / mechanism.levels

    def cells(payload: bytes) -> list[Cell]:
        noisy = low + step * unpack_signed(payload)[0]
        return [noisy, noisy]

    return Decoder({f"noisy.{mechanism.field}": True, f"unbiased.{mechanism.field}": True}, cells)


def _of_choice(mechanism: ChoiceMechanism) -> Decoder:
    labels: Sequence[str | int | None] = list(mechanism.labels)
    unbiased = _unbiased_set(mechanism)
    is_one = REDUCTIONS[mechanism.name].counts(mechanism) == "choices"
    # For yes/no one column is enough.
    shown = range(1 if mechanism.boolean else 0, len(labels))

    def cells(payload: bytes) -> list[Cell]:
        reported = [mechanism.supported(payload, index) for index in range(len(labels))]
        supported = [label for label, is_in in zip(labels, reported) if is_in]
        values = [unbiased(payload, index, reported[index]) for index in shown]
        if is_one:
            # None is a refusal, which `refused.ID` shows.
            return [None if supported[0] is None else str(supported[0]), *values]
        return [json.dumps(supported, ensure_ascii=False), *values]

    names = [_column(mechanism, labels[index]) for index in shown]
    return Decoder({f"noisy.{mechanism.field}": False, **dict.fromkeys(names, True)}, cells)


def _column(mechanism: ChoiceMechanism, label: str | int | None) -> str:
    if label is None:
        return f"refused.{mechanism.field}"
    # No id has a bracket: after a dot a label could make it the name of another question's column.
    return f"unbiased.{mechanism.field}" + ("" if mechanism.boolean else f"[{label}]")


def _unbiased_set(mechanism: ChoiceMechanism) -> Callable[[bytes, int, bool], float]:
    """Return a function (payload, choice, is supported) → a value that averages 1 for this choice, else 0."""
    if not isinstance(mechanism, Hadamard):
        values = _unbiased(mechanism)
        return lambda _payload, _index, is_in: values[is_in]
    # How much likelier the choice's half of its block is than the other half: q is the mean of both.
    gain = 2 * float(mechanism.p - mechanism.q)

    def value(payload: bytes, index: int, is_in: bool) -> float:
        # A report of another block is no evidence either way, so two values alone would not be enough.
        block, _ = mechanism.place(index)
        is_here = int.from_bytes(payload, "big") // mechanism.width == block
        return (1 if is_in else -1) / gain if is_here else 0.0

    return value


def _unbiased(mechanism: ChoiceMechanism | RefusableNumber) -> tuple[float, float]:
    """Return the unbiased values of a report that does not support a choice, and of a supporting report."""
    p, q = mechanism.p, mechanism.q
    apart = float(p - q)
    return -float(q) / apart, (1.0 - float(q)) / apart
