"""Tries to have people asked in a second round without the words, units and languages of the first.

Defence: `derive`: all but bounds, norm and budget is the first study's.
"""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from inference.projection.second_study import second_study
from schemas import Study
from tests.inference import test_holder_projection as holders
from tests.secure_sum import test_two_rounds as sums
from tests.secure_sum.conftest import QUESTIONS

WORDS = {"en": "Hours a week", "de": "Stunden je Woche"}
UNIT = {"en": "hours", "de": "Stunden"}
OF_STUDY = {
    "languages": ["en", "de"],
    "title": {"en": "Work", "de": "Arbeit"},
    "purpose": {"en": "To know.", "de": "Um es zu wissen."},
}


def in_words(study):
    """The study in two languages, each field with its words and unit."""
    document = deepcopy(study.document)
    for question in document["questions"]:
        question["text"] = {"en": "About your work", "de": "Zu Ihrer Arbeit"}
        for field in (*question["features"], question["response"]):
            field |= {"text": WORDS, "unit": UNIT}
    return Study({**document, **OF_STUDY})


def without_what_is_found(document):
    """All that a projection has no say in."""
    kept = deepcopy(document)
    for question in kept["questions"]:
        for field in (*question["features"], question["response"]):
            del field["bounds"]
        for name in ("norm", "mechanism", "model"):
            question.pop(name, None)
    return {name: value for name, value in kept.items() if name not in ("id", "version")}


def assert_asked_alike(first, again):
    assert without_what_is_found(again.document) == without_what_is_found(first.document)
    for language in ("en", "de"):
        asked = again.shown_in(language).questions[0]
        assert {field.text for field in asked.fields} == {WORDS[language]}
        assert {field.unit for field in asked.fields} == {UNIT[language]}


def test_second_secure_sum_keeps_words(tmp_path):
    study = in_words(sums.first_study())
    sums.write_posterior(study, tmp_path)
    again, _ = second_study(study, tmp_path, "again")
    assert_asked_alike(study, again)
    assert set(again.document["questions"][0]["mechanism"]) == {"name", "epsilon", "delta"}


def test_second_holder_study_keeps_words(tmp_path):
    study = in_words(holders.first_study(count_share="0.1"))
    path = holders.reports_file(study, holders.tables([6000]), tmp_path)
    again, _ = second_study(study, path, "again")
    assert_asked_alike(study, again)
    assert again.document["questions"][0]["mechanism"]["count_share"] == "0.1"


@pytest.mark.parametrize("before", [["ever"], []])
def test_second_study_keeps_sections_of_its_questions(tmp_path, before):
    study = sums.first_study()
    other = {"id": "ever", **deepcopy(QUESTIONS["ever"])}
    sections = [{"title": "Health", "questions": ["spread", *({"ever"} - set(before))]}]
    sections += [{"title": "Before", "questions": before}] if before else []
    questions = [*study.document["questions"], other]
    study = Study({**study.document, "questions": questions, "sections": sections})
    sums.write_posterior(study, tmp_path)
    again, _ = second_study(study, tmp_path, "again")
    assert again.document["sections"] == [{"title": "Health", "questions": ["spread"]}]


def test_second_study_does_not_change_first_document(tmp_path):
    study = in_words(sums.first_study())
    sums.write_posterior(study, tmp_path)
    before = json.dumps(study.document)
    second_study(study, tmp_path, "again")
    assert json.dumps(study.document) == before
