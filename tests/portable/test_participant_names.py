"""Questions that are called as what a page or a form has already: elements, reset, constructor, viewport."""

import json

import pytest

from tests import studies

NUMBER = {**studies.NUMBER, "text": "How many hours did you work?"}
KEPT = """
return [...document.querySelectorAll("#answers input")]
  .filter((one) => one.checked || one.type === "text")
  .map((one) => one.value);
"""


@pytest.mark.parametrize(
    ("name", "public_name"), [("elements", "action"), ("reset", "submit"), ("robots", "viewport")]
)
def test_a_questions_name_does_not_break_the_form(meet, name, public_name):
    """Nor keeps the true answers in it, behind what is shown."""
    public = [{"id": public_name, "choices": ["a", "b"]}]
    person = meet(studies.document({**studies.YES_NO, "id": name}, NUMBER, public=public))
    person.answer(**{name: "yes", "hours": "3.5", public_name: "b"})
    person.until("report")
    assert json.loads(person.body)["public"] == {public_name: "b"}
    assert person.browser.execute_script(KEPT) == [""]


def test_a_question_that_was_not_drawn_is_no_property_that_all_objects_have(meet):
    """A report of the other question could be neither read nor sent."""
    person = meet(studies.document({**studies.YES_NO, "id": "constructor"}, NUMBER, ask_one=True))
    for _ in range(12):
        asked = person.browser.execute_script("return document.querySelector('#answers [name]').name")
        person.answer(**{asked: {"constructor": "yes", "hours": "3"}[asked]})
        person.until("report")
        drawn = list(json.loads(person.body)["payloads"])
        person.until_says("not in the report: chance drew another question")
        if drawn == ["hours"]:
            break
        person = meet(person.study.document)
    else:
        pytest.skip("chance drew the same question 12 times")
    person.send()
    person.until_says("This was sent")
    assert [list(report.payloads) for report in person.stored()][-1] == ["hours"]
