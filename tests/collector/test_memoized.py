"""A version that changes what a memoized question asks is refused: devices keep one answer to its id."""

from __future__ import annotations

import pytest

from schemas import Study
from tests import studies
from tests.collector.answered import refusal

TEXTS = {"en": "Which do you like?", "de": "Was mögen Sie?", "es": "¿Cuál le gusta?"}
BRAND = {**studies.MEMOIZED_BITS, "ordered": True, "mechanism": studies.KEPT}
PLAIN = {**BRAND, "text": TEXTS["en"], "choices": ["apple", "kiwi"]}
BARE = studies.MEMOIZED
PRIOR = {"name": "multinomial", "prior": {"p": {"distribution": "dirichlet", "concentration": "2"}}}
APPLE = {"en": "apple", "de": "Apfel", "es": "manzana"}


def asked_in(*languages, text=TEXTS, apple=APPLE):
    """The question with its texts in these languages."""
    return {
        **BRAND,
        "text": {tag: text[tag] for tag in languages},
        "choices": [{tag: apple[tag] for tag in languages}, "kiwi"],
    }


def version_of(version, *questions, **fields):
    """A version of the study, with the languages of its last question's text."""
    text = questions[-1].get("text")
    languages = {"languages": list(text)} if isinstance(text, dict) else {}
    return Study(studies.document(*questions, version=version, **languages, **fields))


@pytest.mark.parametrize(
    ("before", "question"),
    [
        pytest.param(PLAIN, PLAIN, id="no change"),
        pytest.param(PLAIN, {**PLAIN, "ordered": False}, id="no scale any more"),
        pytest.param(PLAIN, {**PLAIN, "model": PRIOR}, id="another prior"),
        pytest.param(PLAIN, asked_in("de", "en"), id="the plain text is one of the languages"),
        pytest.param(asked_in("de", "en"), PLAIN, id="one language is left, and is not stated"),
        pytest.param(asked_in("en", "de"), asked_in("en", "es"), id="one language is replaced"),
        pytest.param(asked_in("en"), asked_in("de"), id="all languages are replaced"),
        pytest.param({**BARE, "text": "A survey"}, BARE, id="the text moves to the title"),
    ],
)
def test_version_that_asks_the_same_is_published(empty, before, question):
    for version, asked in ((1, before), (2, question)):
        assert empty.publish(version_of(version, asked)).status_code == 201


COUNTED = {key: value for key, value in {**PLAIN, "choices": {"count": 40}}.items() if key != "ordered"}
OTHER = {**TEXTS, "de": "Was essen Sie?"}
PEAR = {**APPLE, "de": "Birne"}
STRONGER = {**studies.KEPT, "epsilon": "3"}
ONCE = {"name": "randomized_response", "epsilon": "2"}


@pytest.mark.parametrize(
    ("before", "question", "part"),
    [
        (PLAIN, {**BARE, "id": PLAIN["id"], "text": PLAIN["text"]}, "type"),
        (PLAIN, {**PLAIN, "mechanism": STRONGER}, "mechanism"),
        (PLAIN, {**PLAIN, "mechanism": ONCE}, "mechanism"),
        (PLAIN, {**PLAIN, "choices": ["kiwi", "apple"]}, "text or choices"),
        (PLAIN, {**PLAIN, "choices": ["apple", "kiwi", "plum"]}, "text or choices"),
        (PLAIN, COUNTED, "text or choices"),
        (COUNTED, {**COUNTED, "choices": {"count": 41}}, "text or choices"),
        (PLAIN, {**PLAIN, "text": "Which do you eat?"}, "text or choices"),
        (PLAIN, asked_in("de", "es"), "text or choices"),
        (asked_in("en", "de"), asked_in("en", "de", text=OTHER), "text or choices"),
        (asked_in("en", "de"), asked_in("en", "de", apple=PEAR), "text or choices"),
        (BARE, {**BARE, "text": "Do you smoke?"}, "text or choices"),
    ],
)
def test_version_that_asks_something_else_is_refused(empty, before, question, part):
    assert empty.publish(version_of(1, studies.YES_NO, before)).status_code == 201
    response = empty.publish(version_of(2, studies.YES_NO, question))
    assert response.status_code == 409
    assert refusal(response) == ("study-conflict", "questions[1]")
    detail = response.get_json()["detail"]
    assert f"differs from version 1 in its {part}: give it a new id" in detail
    assert len(detail) <= 160
    renamed = {**question, "id": "renamed"}
    assert empty.publish(version_of(2, studies.YES_NO, renamed)).status_code == 201


def test_other_title_above_question_without_text_is_refused(empty):
    assert empty.publish(version_of(1, BARE)).status_code == 201
    response = empty.publish(version_of(2, BARE, title="Opiates"))
    assert refusal(response) == ("study-conflict", "questions[0]")


def test_every_earlier_version_counts(empty):
    for version, asked in ((1, asked_in("en", "de")), (2, asked_in("en")), (3, studies.YES_NO)):
        assert empty.publish(version_of(version, asked)).status_code == 201
    response = empty.publish(version_of(4, asked_in("en", "de", text=OTHER)))
    assert "differs from version 1" in response.get_json()["detail"]
