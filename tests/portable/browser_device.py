"""The browser's device as its tests call it, with the study that most of them ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selenium import webdriver
from selenium.webdriver.remote.webdriver import WebDriver

from schemas import Study
from tests import studies
from tests.portable.chromium import run
from tests.portable.make_vectors import FOLDER
from tests.portable.run_vectors import stream_of

DOCUMENT = studies.document(studies.NUMBER, studies.CHOICE)
CANONICAL = Study(DOCUMENT).canonical().decode()
ANSWERS = {"hours": 3.5, "occupation": "worker"}
OPEN = """
const [document, answers] = args;
const study = await parseStudy(JSON.stringify(document));
const device = await openDevice({ maxEpsilon: "4" });
"""

# A source for `openDevice` whose bytes follow from a number, by the generator mulberry32.
SEEDED = """
const seeded = (seed) => {
  const next = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 24;
  };
  const random = (size) => Uint8Array.from({ length: size }, next);
  random.forTests = true;
  return random;
};
"""

OF_A_VECTOR = """
const [document, answers, bytes, name] = args;
const random = (size) => Uint8Array.from(bytes.splice(0, size));
random.forTests = true;
const study = await parseStudy(JSON.stringify({ ...document, opens: undefined, closes: undefined }));
const { digest } = await parseStudy(JSON.stringify(document));
const dated = Object.freeze({ ...study, digest });
const device = await openDevice({ maxEpsilon: "64", name, random });
return device.answer(dated, answers);
"""


def reports_of_vectors(page: WebDriver) -> Iterator[tuple[str, str]]:
    """Of each vector of a report its text, and what the device makes of the same bytes."""
    vectors = json.loads((FOLDER / "reports.json").read_text(encoding="utf-8"))["reports"]
    assert vectors
    for number, entry in enumerate(vectors):
        stream = list(stream_of(entry).read(entry["bytes"]))
        # A device draws the secret before its transaction, and these vectors have it in the id's place.
        stream = stream[-16:] + stream[:-16]
        found = run(page, OF_A_VECTOR, entry["study"], entry["answers"], stream, f"vector-{number}")
        yield entry["report"], found["body"].replace(found["id"], found["secret"])


def answered(
    page: webdriver.Chrome, document: dict[str, Any] = DOCUMENT, answers: dict[str, Any] | None = ANSWERS
) -> Any:
    return run(page, OPEN + "return device.answer(study, answers);", document, answers)


def status(page: webdriver.Chrome, document: dict[str, Any] = DOCUMENT) -> Any:
    return run(page, OPEN + "return device.status(study);", document, None)


def consent(page: webdriver.Chrome, document: dict[str, Any] = DOCUMENT) -> Any:
    return run(page, OPEN + "return device.consent(study);", document, None)


def flush(page: webdriver.Chrome, attempts: int = 1, document: dict[str, Any] = DOCUMENT) -> Any:
    run(page, OPEN + f"return device.flush({{ attempts: {attempts} }});", document, None)
    return status(page, document)["report"]


def withdraw(page: webdriver.Chrome, document: dict[str, Any] = DOCUMENT) -> Any:
    return run(page, OPEN + "return device.withdraw(study.id);", document, None)


def path_of(report: dict[str, Any]) -> str:
    return f"/v1/studies/survey/reports/{report['id']}"
