"""Devices read a hostile author's study differently: some answers fail, and a missing report reveals them.

Defence: The device: JavaScript and Python refuse the same documents, tested with thousands of changed
ones.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from ldp_client.documents.errors import LdpkitError
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from tests import studies
from tests.portable.platforms import JAVASCRIPT
from tests.portable.vector_records import LOGISTIC, leveled_studies

HIDDEN = {"id": "age", "ask": "number", "bounds": [[0, 0, 0], [0, 0, 0]], "cuts": ["1"]}
PUBLIC = [{"id": "region", "choices": ["n", "s"]}, {"id": "year", "bounds": ["0", "9"], "step": "3"}]
PRIOR = {"coefficients": {"age": {"distribution": "normal", "loc": "0", "scale": "1"}}}
BASES = [
    studies.document({**leveled_studies()["linear"], "model": {"name": "linear_regression", "prior": PRIOR}}),
    studies.document({**studies.PRODUCTS, **LOGISTIC}, studies.CHOICE, studies.AGE, public=PUBLIC),
    studies.document(
        studies.YES_NO_RECORD, studies.MEMOIZED_BITS, studies.NEWER[1], sample_one_question=True
    ),
]
JUNK: list[Any] = [None, "", [], ["1"], {}, "number"]
# Names that JavaScript objects have anyway, and that the device stores with a feature.
NAMES = ["__proto__", "constructor", "toString", "signs", "size"]
PROGRAM = f"""
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
for (const text of JSON.parse(readFileSync(0, "utf8"))) found.push(await read(text));
console.log(JSON.stringify(found));
"""


def in_javascript(documents: list[Any]) -> list[str]:
    texts = json.dumps([json.dumps(document) for document in documents])
    command = ["node", "--input-type=module", "-e", PROGRAM]
    done = subprocess.run(command, input=texts, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def in_python(document: Any) -> str:
    try:
        study = Study(document)
        sizes = [f" {mechanism.payload_size}" for mechanism in mechanisms_of(study).values()]
        return study.digest + ",".join(sizes)
    except LdpkitError:
        return "refused"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where objects stand."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    if isinstance(value, dict):
        yield path
    for key, entry in entries:
        yield from places(entry, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def stated() -> dict[str, list[Any]]:
    """What each field is anywhere in these studies."""
    found: dict[str, list[Any]] = {name: [] for name in NAMES}
    for base in BASES:
        for path in places(base):
            for name, value in at(base, path).items():
                if value not in found.setdefault(name, []):
                    found[name].append(value)
    return found


def changed() -> Iterator[Any]:
    """Each study's objects with one field removed, added from elsewhere, or replaced by junk."""
    known = stated()
    for base in BASES:
        for path in places(base):
            for name in known:
                values = JUNK + (known[name][:2] if path else [])
                for value in values:
                    document = copy.deepcopy(base)
                    at(document, path)[name] = value
                    yield document
                document = copy.deepcopy(base)
                if at(document, path).pop(name, None) is not None:
                    yield document


@pytest.mark.needs("node")
def test_python_and_javascript_reject_the_same_studies():
    hidden = {**leveled_studies()["logistic"], "features": [HIDDEN]}
    documents = [*BASES, studies.document(hidden), *changed()]
    expected = [in_python(document) for document in documents]
    assert expected[: len(BASES) + 1].index("refused") == len(BASES)
    found = in_javascript(documents)
    differing = [
        (document, one, other) for document, one, other in zip(documents, expected, found) if one != other
    ]
    assert not differing[:3]
