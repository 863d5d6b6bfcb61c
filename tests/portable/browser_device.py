"""The browser's device as its tests call it, with the study that most of them ask."""

from __future__ import annotations

from typing import Any

from selenium import webdriver

from schemas import Study
from tests import studies
from tests.portable.chromium import run

DOCUMENT = studies.document(studies.NUMBER, studies.CHOICE)
CANONICAL = Study(DOCUMENT).canonical().decode()
ANSWERS = {"hours": 3.5, "occupation": "worker"}
OPEN = """
const [document, answers] = args;
const study = await parseStudy(JSON.stringify(document));
const device = await openDevice({ maxEpsilon: "4" });
"""


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
