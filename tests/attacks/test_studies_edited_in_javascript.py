"""A page of one's own sorts the choices, in place, to show them: each answer is stored as another choice."""

from __future__ import annotations

import json

import pytest

from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

# What a question with a refusal is read by is a module, which nothing freezes.
ASKED = {**studies.YES_NO, "refusal": True}
SALARY = {**studies.NUMBER, "id": "salary", "refusal": {"share": "0.5"}}
STUDY = Study(studies.document(studies.CHOICE, studies.NUMBER, ASKED, SALARY))
CHOICES = studies.CHOICE["choices"]
SCRIPT = """
const { openDevice, parseStudy } = await import("{folder}/index.js");
const { memoryLedger } = await import("{folder}/ledgers/memory.js");
const device = await openDevice({ maxEpsilon: "64", collector: "https://c.example", ledger: memoryLedger() });
const study = await parseStudy(process.argv[1]);
const left = await device.epsilonLeft();
let said = "answered";
try {
  let answered = study;
  EDIT;
  await device.answer(answered, ANSWERS);
} catch ({ name, message }) {
  said = `${name} ${message}`;
}
console.log(JSON.stringify([said, left - (await device.epsilonLeft())]));
"""
EDITS = {
    "study.questions[0].choices.reverse()": "TypeError",
    "study.questions[0].choices.sort(() => -1)": "TypeError",
    "study.questions[0].choices.push('other')": "TypeError",
    "study.questions.reverse()": "TypeError",
    "study.questions[1].bounds = [[0n, 1n], [99n, 1n]]": "TypeError",
    "study.questions[0].mechanism.epsilon[0] = 20n": "TypeError",
    "answered = { ...study }": "a copy",
    "answered = structuredClone(study)": "a copy",
    "answered = { ...study, questions: study.questions.toReversed() }": "a copy",
}


def tried(edit: str) -> tuple[str, float]:
    answers = json.dumps({"occupation": CHOICES[0], "hours": 3, "ever": "yes", "salary": None})
    script = SCRIPT.replace("{folder}", JAVASCRIPT.as_uri()).replace("EDIT", edit).replace("ANSWERS", answers)
    said, spent = json.loads(npm.node("--input-type=module", "-e", script, STUDY.canonical().decode()))
    return said, spent


@pytest.mark.parametrize("edit", EDITS)
def test_edited_study_is_not_answered(edit):
    said, spent = tried(edit)
    assert EDITS[edit] in said
    assert spent == 0


def test_study_with_sorted_copies_is_answered():
    said, spent = tried("study.questions[0].choices.toSorted?.(); [...study.questions[0].choices].reverse()")
    assert said == "answered"
    assert spent > 0
