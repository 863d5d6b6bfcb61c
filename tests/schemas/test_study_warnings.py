"""What `ldpkit check` warns the author of a study about."""

import pytest

from schemas import Study
from schemas.study_warnings import warnings_of
from tests import studies

NO_OR_YES = {"choices": ["no", "yes"]}
EVER = {**studies.YES_NO, "text": "Have you ever had an affair?"}
PILL = {**studies.YES_NO, "id": "asa", "text": "Aspirin"}
LIST = {"title": "Which of these do you take?", "questions": ["asa"], "any_of": True}


@pytest.mark.attack(8)
def test_question_that_is_asked_in_clear_and_behind_noise_warns():
    """A study asks the same in a public field, so that it reveals what the noise of the question hides."""
    cases = [
        (EVER, {}, {"id": "other", "text": "have you ever  had an AFFAIR"}),
        (PILL, {"sections": [LIST]}, {"id": "pills", "text": "Which of these do you take"}),
        ({**studies.YES_NO, "id": "debts"}, {}, {"id": "owed", "text": "Debts?"}),
    ]
    for question, more, field in cases:
        (line,) = warnings_of(Study(studies.document(question, public=[{**field, **NO_OR_YES}], **more)))
        assert field["id"] in line
    assert not warnings_of(Study(studies.document(EVER, public=[{"id": "region", **NO_OR_YES}])))


WEAK = studies.with_epsilon(studies.NUMBER, "64")
LOOSE = {**studies.NUMBER, "mechanism": {"name": "gaussian", "epsilon": "1", "delta": "0.99"}}
MANY = [{**studies.with_epsilon(studies.NUMBER, "8"), "id": f"q{place}"} for place in range(100)]


def warned(*questions, **fields):
    return warnings_of(Study(studies.document(*questions, **fields)))


@pytest.mark.attack(8)
@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([studies.with_epsilon(studies.NUMBER, "8")], []),
        ([studies.with_epsilon(studies.NUMBER, "9")], ["hours: epsilon 9 "]),
        ([LOOSE], ["hours: delta 0.99 "]),
        (MANY, ["all questions together: epsilon 800 "]),
        (
            [WEAK, studies.with_epsilon(studies.YES_NO, "8")],
            ["hours: epsilon 64 ", "all questions together: epsilon 72 "],
        ),
    ],
)
def test_noise_that_hides_hardly_anything_warns(questions, said):
    """Have people agree to an epsilon or delta that hides nothing, of one question or of many together."""
    lines = warned(*questions, **studies.ASKER)
    assert [line for line in lines if "hardly any privacy" in line] == lines
    assert len(lines) == len(said)
    assert all(text in line for text, line in zip(said, lines))


def stratum(name, most, **more):
    return {"id": name, "bounds": ["0", str(most)], "step": "1", "source": "ticket", **more}


@pytest.mark.attack(12)
def test_ticket_fields_that_identify_a_person_warn():
    """Have tickets carry a number of one person, in one field or in several, as a part of the sample."""
    (line,) = warned(studies.YES_NO, public=[stratum("part", 999_999)])
    assert "part has 1,000,000 values" in line
    (line,) = warned(studies.YES_NO, public=[stratum("stratum", 99), stratum("cluster", 10)])
    assert "stratum, cluster together have 1,100 combinations" in line
    asked = {key: value for key, value in stratum("part", 999_999).items() if key != "source"}
    for fields in ([stratum("part", 9)], [asked], [stratum("stratum", 99), stratum("cluster", 9)]):
        assert not warned(studies.YES_NO, public=fields)


def test_labels_that_look_alike_warn():
    labels = ["a", "\u0430", "\u2800", "\u3164 ", "b", "\u0392", "B"]
    assert len(warned(studies.YES_NO, public=[{"id": "r", "choices": labels}])) == 5


@pytest.mark.attack(8)
def test_question_that_is_also_asked_in_clear_warns_in_each_language():
    """Ask without noise what is asked with noise, in the words of one language only."""
    same = "Haben Sie je betrogen?"
    private = {**studies.YES_NO, "text": {"en": "Have you ever cheated?", "de": same}}
    clear = {"id": "asked", "text": {"en": "Did it happen?", "de": same}, "choices": ["no", "yes"]}
    lines = warned(private, public=[clear], languages=["en", "de"])
    assert [line for line in lines if "asks without noise what ever asks" in line]
