"""The test vectors of tests/golden/vectors: `python -m tests.portable.vectors` states their outcomes anew.

Each entry has what is asked and what comes of it. A new entry states what is asked, a new study the names of
its mechanism's integers, and the program adds the rest. The payload of a stream of bytes never changes.
"""

import hashlib
import json
import sys
from pathlib import Path

from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import AnswerError, StudyError
from ldp_client.documents.report import report_id_of
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanism_for, mechanisms_of
from ldp_client.secure_sum import split

FOLDER = Path(__file__).parents[1] / "golden" / "vectors"
# Addresses, which tests/ldp_client/device and tests/js read.
FILES = sorted({path.stem for path in FOLDER.iterdir()} - {"origins"})
OUTCOMES = ("payload", "pieces", "bytes", "refused", "report", "canonical", "digest", "id")


class Stream:
    """A source of bytes that are fixed by head and seed; `taken` counts those read."""

    def __init__(self, head, seed):
        self._rest = head
        self._seed = seed.encode()
        self._counter = 0
        self.taken = 0

    def read(self, size):
        while len(self._rest) < size:
            self._rest += hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        self.taken += size
        return taken


def outcome(mechanism, draw):
    """What one draw gives: the payload and how many bytes it reads, or the field that is refused.

    The payload of a secure sum is the vector that a device splits.
    """
    stream = Stream(bytes.fromhex(draw.get("head", "")), draw["seed"])
    source = NotForRealAnswers(stream.read)
    # In an answer these strings stand for numbers that JSON lacks.
    numbers = {name: float(name) for name in ("NaN", "Infinity", "-Infinity")}
    answer = draw["answer"]
    if isinstance(answer, dict):
        answer = {name: numbers.get(str(value), value) for name, value in answer.items()}
    else:
        answer = numbers.get(str(answer), answer)
    try:
        if hasattr(mechanism, "noisy_vector"):
            payload = mechanism.noisy_vector(mechanism.quantise(answer), source)
        else:
            payload = mechanism.perturb(answer, source)
    except AnswerError as error:
        return {"refused": error.field, "bytes": stream.taken}
    return {"payload": payload.hex(), "bytes": stream.taken}


def _report(entry):
    study, stream = Study(entry["study"]), Stream(b"", entry["seed"])
    source = NotForRealAnswers(stream.read)
    try:
        report = perturb_answers(study, mechanisms_of(study), entry["answers"], source)
    except AnswerError as error:
        return {"refused": error.field, "bytes": stream.taken}
    return {"report": report.to_json(), "bytes": stream.taken}


def _study(entry):
    try:
        study = Study.from_json(entry["text"])
        mechanisms_of(study)
    except StudyError as error:
        return {"refused": error.field}
    return {"canonical": study.to_json(), "digest": study.digest}


def _pieces(entry):
    stream = Stream(bytes.fromhex(entry["random"]), "")
    source = NotForRealAnswers(stream.read)
    found = split(bytes.fromhex(entry["vector"]), entry["nodes"], entry["expansion"], source)
    return {"pieces": [piece.hex() for piece in found], "bytes": stream.taken}


def _id(entry):
    return {"id": report_id_of(bytes.fromhex(entry["secret"]))}


KINDS = {"text": _study, "answers": _report, "vector": _pieces, "secret": _id}


def renewed(vectors):
    made, mechanisms = dict(vectors), {}
    if isinstance(vectors.get("studies"), dict):
        made["studies"] = {}
        for name, entry in vectors["studies"].items():
            mechanisms[name] = mechanism = mechanism_for(Study(entry["study"]).questions[0])
            integers = {integer: str(getattr(mechanism, integer)) for integer in entry["integers"]}
            made["studies"][name] = {"study": entry["study"], "integers": integers}
    for key in (key for key, entries in vectors.items() if isinstance(entries, list)):
        made[key] = []
        for entry in vectors[key]:
            if key == "draws":
                found = outcome(mechanisms[entry["study"]], entry)
            else:
                found = next(work for kind, work in KINDS.items() if kind in entry)(entry)
            kept = {name: value for name, value in entry.items() if name not in OUTCOMES}
            made[key].append({**kept, **found})
    return made


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def differences(vectors):
    made, wrong = renewed(vectors), []
    for key in made.keys() - {"about"}:
        entries = list(made[key].items()) if isinstance(made[key], dict) else list(enumerate(made[key]))
        wrong += [f"{key} {place}: {entry}" for place, entry in entries if entry != vectors[key][place]]
    return wrong


def render(document):
    """JSON with one line for each entry of each list or object inside."""
    parts = []
    for name, value in document.items():
        if isinstance(value, dict):
            inside = ",\n".join(f"{_line(key)}: {_line(entry)}" for key, entry in value.items())
            parts.append(f"{_line(name)}: {{\n{inside}\n}}")
        elif isinstance(value, list):
            inside = ",\n".join(map(_line, value))
            parts.append(f"{_line(name)}: [\n{inside}\n]")
        else:
            parts.append(f"{_line(name)}: {_line(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def _line(value):
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for _name in sys.argv[1:] or FILES:
        (FOLDER / f"{_name}.json").write_text(render(renewed(load(_name))), encoding="utf-8")
