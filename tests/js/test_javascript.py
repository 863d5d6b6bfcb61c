"""The JavaScript library and the modules of the participant's page, tested by node."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from ldp_client.documents.errors import LdpkitError
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from tests import studies
from tests.js import run
from tests.portable import npm
from tests.portable.npm import JAVASCRIPT
from tests.portable.vectors import load


@pytest.mark.processes
@pytest.mark.parametrize("name", run.FILES)
def test_modules_keep_their_rules(name):
    run.passes(name)


HIDDEN = {"id": "age", "ask": "number", "bounds": [[0, 0, 0], [0, 0, 0]], "cuts": ["1"]}
PUBLIC = [{"id": "region", "choices": ["n", "s"]}, {"id": "year", "bounds": ["0", "9"], "step": "3"}]
LEVELED = {name: entry["study"]["questions"][0] for name, entry in load("levels")["studies"].items()}
LOGISTIC = {"response": {"id": "rate", "ask": "yes_no"}, "model": {"name": "logistic_regression"}}
PRIOR = {"coefficients": {"age": {"distribution": "normal", "loc": "0", "scale": "1"}}}
BASES = [
    studies.document({**LEVELED["linear"], "model": {"name": "linear_regression", "prior": PRIOR}}),
    studies.document({**studies.PRODUCTS, **LOGISTIC}, studies.CHOICE, studies.AGE, public=PUBLIC),
    studies.document(
        studies.YES_NO_RECORD, studies.MEMOIZED_BITS, studies.NEWER[1], sample_one_question=True
    ),
]
JUNK: list[Any] = [None, "", [], ["1"], {}, "number"]
# Names that JavaScript objects have anyway, and that the device stores with a feature.
NAMES = ["__proto__", "constructor", "toString", "signs", "size"]
READ = f"""
import {{ readFileSync }} from "node:fs";
const {{ mechanismFor, parseStudy }} = await import("{JAVASCRIPT / "index.js"}");
async function read(text) {{
  try {{
    const study = await parseStudy(text);
    return study.digest + study.questions.map((one) => " " + mechanismFor(one).payloadSize);
  }} catch (error) {{
    return error.code === "study" ? "refused" : String(error);
  }}
}}
const found = [];
for (const text of JSON.parse(readFileSync(process.argv[1], "utf8"))) found.push(await read(text));
console.log(JSON.stringify(found));
"""


def in_python(document: Any) -> str:
    try:
        study = Study(document)
        sizes = [f" {mechanism.payload_size}" for mechanism in mechanisms_of(study).values()]
        return study.digest + ",".join(sizes)
    except LdpkitError:
        return "refused"


def objects_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries: Any = enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield path
        entries = value.items()
    for key, entry in entries:
        yield from objects_in(entry, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def known_values() -> dict[str, list[Any]]:
    """What each field is anywhere in these studies."""
    known: dict[str, list[Any]] = {name: [] for name in NAMES}
    for base in BASES:
        for path in objects_in(base):
            for name, value in at(base, path).items():
                known.setdefault(name, []).append(value)
    return known


def changed(count: int) -> Iterator[Any]:
    """Studies with a field of one object removed, replaced by what it is elsewhere, or by junk."""
    known, source = known_values(), random.Random(1)
    for _ in range(count):
        document = copy.deepcopy(source.choice(BASES))
        path = source.choice(list(objects_in(document)))
        name = source.choice(list(known))
        if at(document, path).pop(name, None) is None or source.random() < 0.8:
            at(document, path)[name] = source.choice(JUNK + (known[name] if path else []))
        yield document


@pytest.mark.processes
@pytest.mark.attack(16)
def test_python_and_javascript_reject_the_same_studies(tmp_path):
    """Devices read a hostile study differently: answers fail on some, and a missing report reveals them."""
    hidden = {**LEVELED["logistic"], "features": [HIDDEN]}
    documents = [*BASES, studies.document(hidden), *changed(500)]
    expected = [in_python(document) for document in documents]
    assert expected[: len(BASES) + 1].index("refused") == len(BASES)
    file = tmp_path / "documents.json"
    file.write_text(json.dumps([json.dumps(document) for document in documents]))
    found = json.loads(npm.node("--input-type=module", "-e", READ, file))
    assert [
        (document, one, other) for document, one, other in zip(documents, expected, found) if one != other
    ] == []
