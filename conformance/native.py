"""The device core in C as a port: python conformance/run.py python conformance/native.py [LIBRARY].

Compiles c/ with `cc` if no library is named. What C's types exclude, such as a text for a number, is passed
as a missing answer.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldp_client.documents.question import Question
from ldp_client.documents.study import Study
from ldpkit.native import question_table

CORE = Path(__file__).parents[1] / "c"
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
MECHANISMS = (
    *("RANDOMIZED_RESPONSE", "OUE", "SUE", "SUBSET_SELECTION", "OLH", "HADAMARD", "MEMOIZED_RESPONSE"),
    *("MEMOIZED_SUE", "LAPLACE", "GAUSSIAN", "GAUSSIAN_RECORD", "GAUSSIAN_STATISTICS", "SAMPLED_PRODUCTS"),
)
MISSING, NUMBER, CHOICE, REFUSAL = range(4)
MOST_DIGITS = 7
# More than sizeof(ldp_random).
RANDOM_BYTES = 4096
FILL = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t)


class Value(ctypes.Structure):
    """An `ldp_value`."""

    _fields_ = (("kind", ctypes.c_uint32), ("choice", ctypes.c_uint32), ("number", ctypes.c_double))


class Field(ctypes.Structure):
    """An `ldp_field`."""

    _fields_ = (
        ("id", ctypes.c_char_p),
        ("choices", ctypes.c_uint32),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("cuts", ctypes.POINTER(ctypes.c_double)),
    )


class Pair(ctypes.Structure):
    """An `ldp_entry` or an `ldp_product`."""

    _fields_ = (("first", ctypes.c_uint16), ("second", ctypes.c_uint16))


class Table(ctypes.Structure):
    """An `ldp_question`."""

    _fields_ = (
        ("id", ctypes.c_char_p),
        ("mechanism", ctypes.c_int),
        ("fields", ctypes.POINTER(Field)),
        ("field_count", ctypes.c_uint16),
        ("refusal", ctypes.c_uint8),
        *((name, ctypes.c_uint32) for name in ("payload_size", "work_words", "choices")),
        *((name, ctypes.c_uint64) for name in ("threshold", "again")),
        *((name, ctypes.c_uint32) for name in ("size", "width", "levels", "unit", "response_unit")),
        *((name, ctypes.c_uint32) for name in ("radius", "weight")),
        *((name, ctypes.c_uint64) for name in ("diagonal", "off_diagonal")),
        ("entries", ctypes.POINTER(Pair)),
        ("products", ctypes.POINTER(Pair)),
        ("ends", ctypes.POINTER(ctypes.c_uint32)),
        ("blocks", ctypes.c_uint32),
        ("signs", ctypes.c_uint8),
        ("key", ctypes.POINTER(ctypes.c_ubyte)),
        ("memory", ctypes.POINTER(ctypes.c_ubyte)),
        ("epsilon", ctypes.c_uint64),
        ("delta", ctypes.c_uint64),
    )


def compiled(folder: Path, sources: Path = CORE, flags: tuple[str, ...] = FLAGS) -> Path:
    """Compile the core to a shared library in a folder. Raises CalledProcessError."""
    library = folder / "libldpkit.so"
    files = sorted(map(str, sources.glob("*.c")))
    subprocess.run(["cc", *flags, "-shared", "-fPIC", "-o", str(library), *files], check=True)
    return library


def table_of(question: Question) -> Table:
    """Return the question's `ldp_question`."""
    stated = question_table(question)
    fields = []
    for field in stated["fields"]:
        cuts = _array(ctypes.c_double, field.get("cuts", []))
        fields.append(Field(**{**field, "id": field["id"].encode(), "cuts": cuts}))
    stated["fields"] = (Field * len(fields))(*fields)
    stated["field_count"] = len(fields)
    stated["id"] = question.id.encode()
    stated["mechanism"] = 1 + MECHANISMS.index(stated["mechanism"][4:])
    kinds = {"entries": Pair, "products": Pair, "ends": ctypes.c_uint32, "memory": ctypes.c_ubyte}
    stated |= {name: _array(kind, stated[name]) for name, kind in kinds.items() if name in stated}
    return Table(**stated)


def _array(kind: Any, values: list[Any]) -> Any:
    """A C array of integers, floats or pairs; None if it is empty."""
    made = [kind(*value) if kind is Pair else value for value in values]
    return (kind * len(made))(*made) if made else None


def value_of(answer: Any, choices: Any, refusal: bool) -> Value:
    """An answer as an `ldp_value`. choices: labels, a range, or () for a number."""
    if answer is None and refusal:
        return Value(REFUSAL, 0, 0)
    if not choices:
        if answer in ("NaN", "Infinity", "-Infinity"):
            return Value(NUMBER, 0, float(answer))
        is_number = type(answer) in (int, float)
        return Value(NUMBER, 0, max(min(answer, 1e308), -1e308)) if is_number else Value()
    if isinstance(answer, bool) and tuple(choices) == ("no", "yes"):
        return Value(CHOICE, int(answer), 0)
    if isinstance(choices, range):
        if isinstance(answer, str) and answer.isascii() and answer.isdigit() and len(answer) <= MOST_DIGITS:
            answer = int(answer)
        is_index = type(answer) is int and 0 <= answer < 1 << 32
        return Value(CHOICE, answer, 0) if is_index else Value()
    is_choice = isinstance(answer, str) and answer in choices
    return Value(CHOICE, choices.index(answer), 0) if is_choice else Value()


class Port:
    """The core as a shared library."""

    def __init__(self, library: Path) -> None:
        self.core = ctypes.CDLL(str(library))
        self.tables: dict[str, tuple[Question, Table]] = {}

    def answer(self, case: dict[str, Any]) -> dict[str, Any]:
        """Answer one case of the kit."""
        if case["kind"] == "id":
            found = ctypes.create_string_buffer(33)
            self.core.ldp_report_id(bytes.fromhex(case["secret"]), found)
            return {"id": found.value.decode()}
        if case["kind"] != "draw" or "protocol" in case:
            return {"unsupported": True}
        return self._draw(case)

    def _draw(self, case: dict[str, Any]) -> dict[str, Any]:
        question, table = self._table(case["question"])
        answer, is_record = case["answer"], question.ask == "record"
        if is_record and not (isinstance(answer, dict) and len(answer) <= len(question.fields)):
            # An array of values has one for each field.
            return {"refused": question.id, "bytes": 0}
        values = self.values_of(question, answer)
        wrong = ctypes.c_uint16()
        if self.core.ldp_check(ctypes.byref(table), values, ctypes.byref(wrong)):
            field = f".{question.fields[wrong.value].id}" if is_record else ""
            return {"refused": f"{question.id}{field}", "bytes": 0}
        recorded, taken = bytes.fromhex(case["random"]), 0

        def fill(_context: int, out: Any, size: int) -> int:
            nonlocal taken
            ctypes.memmove(out, recorded[taken : taken + size], size)
            taken += size
            return size

        payload = self._perturbed(table, values, FILL(fill))
        return {"payload": payload.hex(), "bytes": taken}

    def _perturbed(self, table: Table, values: Any, fill: Callable[..., int]) -> bytes:
        random = (ctypes.c_uint64 * (RANDOM_BYTES // 8))()
        self.core.ldp_random_begin_recorded(random, fill, None)
        payload = (ctypes.c_ubyte * table.payload_size)()
        work = (ctypes.c_uint64 * table.work_words)()
        if MECHANISMS[table.mechanism - 1].startswith("MEMOIZED"):
            kept = (ctypes.c_ubyte * table.payload_size)()
            result = self.core.ldp_draw_permanent(ctypes.byref(table), values, random, kept)
            result = result or self.core.ldp_draw_memoized(ctypes.byref(table), kept, random, payload)
        else:
            result = self.core.ldp_draw(ctypes.byref(table), values, random, work, payload)
        if result:
            raise SystemExit(f"the core returned {result}")
        return bytes(payload)

    def _table(self, document: dict[str, Any]) -> tuple[Question, Table]:
        key = json.dumps(document)
        if key not in self.tables:
            head = {"format": "ldpkit.study/1", "id": "conformance", "title": "Conformance", "version": 1}
            (question,) = Study({**head, "questions": [document]}).questions
            self.tables[key] = question, table_of(question)
        return self.tables[key]

    @staticmethod
    def values_of(question: Question, answer: Any) -> Any:
        """Return an array of the `ldp_value`s of an answer, or of a record's fields."""
        if question.ask != "record":
            return (Value * 1)(value_of(answer, question.choices, question.refusal))
        values = []
        for field in question.fields:
            choices = field.choices or (() if field.bounds is not None else ("no", "yes"))
            values.append(value_of(answer.get(field.id), choices, False))
        return (Value * len(values))(*values)


def main() -> None:
    """Answer the kit's cases, one a line."""
    with tempfile.TemporaryDirectory() as folder:
        port = Port(Path(sys.argv[1]) if len(sys.argv) > 1 else compiled(Path(folder)))
        for line in sys.stdin:
            print(json.dumps(port.answer(json.loads(line))))


if __name__ == "__main__":
    main()
