"""A second study keeps the words of the first: all but bounds, norm and budget."""

import json
from copy import deepcopy

import pytest

from inference.projection.second_study import second_study
from schemas import Study
from tests.kit.secure_sum import QUESTIONS, build_study

WORDS = {"en": "Hours a week", "de": "Stunden je Woche"}
UNIT = {"en": "hours", "de": "Stunden"}
# A search for thresholds takes seconds.
pytestmark = pytest.mark.slow
SPREADS = {"age": (1.0, 0.5), "weight": (80.0, 10.0), "rate": (5.0, 3.0)}


def first_study(**more):
    """A secure sum of the spreads of three fields."""
    document = build_study("spread", devices=1000, max_faulty=50).document
    question = document["questions"][0]
    bounds = {"age": ["-10", "10"], "weight": ["0", "200"], "rate": ["-80", "80"]}
    fields = [{"id": name, "bounds": ends} for name, ends in bounds.items()]
    budget = {"epsilon": "0.2", "delta": "2e-7", "share": "0.2"}
    asked = {
        **question,
        "features": fields[:2],
        "response": fields[2],
        "mechanism": {**question["mechanism"], **budget},
    }
    return Study({**document, "questions": [asked], **more})


def projected(study, folder):
    """The second study of a posterior with these means and spreads."""
    rows = {}
    for name, (mean, sd) in SPREADS.items():
        rows[f"mean[{name}]"] = {"mean": mean, "sd": 0.0}
        rows[f"sd[{name}]"] = {"mean": sd, "sd": 0.0}
    text = json.dumps({"study_digest": study.digest, "questions": {"spread": {"parameters": rows}}})
    (folder / "posterior.json").write_text(text)
    return second_study(study, folder, "again")[0]


def without_what_is_found(document):
    """All that a projection has no say in."""
    kept = deepcopy(document)
    for question in kept["questions"]:
        for field in (*question["features"], question["response"]):
            del field["bounds"]
        for name in ("norm", "mechanism", "model"):
            question.pop(name, None)
    return {name: value for name, value in kept.items() if name not in ("id", "version")}


@pytest.mark.attack(8)
def test_second_study_keeps_words_units_and_languages(tmp_path):
    """Have people asked in a second round without the words, units and languages that they agreed to."""
    document = first_study().document
    for question in document["questions"]:
        question["text"] = {"en": "About your work", "de": "Zu Ihrer Arbeit"}
        for field in (*question["features"], question["response"]):
            field |= {"text": WORDS, "unit": UNIT}
    study = Study({**document, "languages": ["en", "de"], "purpose": {"en": "To know.", "de": "Zum Wissen."}})
    before = json.dumps(study.document)
    again = projected(study, tmp_path)
    assert json.dumps(study.document) == before
    assert without_what_is_found(again.document) == without_what_is_found(study.document)
    for language in ("en", "de"):
        fields = again.shown_in(language).questions[0].fields
        assert {(field.text, field.unit) for field in fields} == {(WORDS[language], UNIT[language])}
    assert set(again.document["questions"][0]["mechanism"]) == {"name", "epsilon", "delta"}


def test_second_study_keeps_sections_of_its_questions(tmp_path):
    questions = [*first_study().document["questions"], {"id": "ever", **QUESTIONS["ever"]}]
    health = {"title": "Health", "questions": ["spread"]}
    sections = [health, {"title": "Before", "questions": ["ever"]}]
    study = first_study(questions=questions, sections=sections)
    assert projected(study, tmp_path).document["sections"] == [health]
