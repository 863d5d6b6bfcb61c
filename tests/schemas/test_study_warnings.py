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


def test_choices_that_people_may_mistake_are_warned_of():
    labels = ["no", "yes", "yes ", "ma\u0301s", "m\u00e1s", "yes,\rsince", "north-east", "Not I", "not i"]
    public = [{"id": "region", "choices": ["west", "west\u00a0"]}]
    study = Study(studies.document({**studies.ONE_OF, "choices": labels}, public=public))
    told = [line for line in warnings_of(study) if "people may mistake it" in line]
    assert [line.split(":")[1].strip() for line in told] == [studies.ONE_OF["id"]] * 4 + ["region"]
    assert not any("north-east" in line for line in told)
