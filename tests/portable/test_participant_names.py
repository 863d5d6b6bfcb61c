"""Questions that are called as what a page or a form has already: elements, reset, constructor, viewport.

Defence: The device: the page reads fields by FormData, looks for them in its form alone, and asks objects
for what is their own.
"""

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
def test_question_id_does_not_break_the_form(meet, name, public_name):
    """The hidden form does not keep the true answers either."""
    public = [{"id": public_name, "choices": ["a", "b"]}]
    person = meet(studies.document({**studies.YES_NO, "id": name}, NUMBER, public=public))
    person.answer(**{name: "yes", "hours": "3.5", public_name: "b"})
    person.until("report")
    assert json.loads(person.body)["public"] == {public_name: "b"}
    assert person.browser.execute_script(KEPT) == [""]


# The generator mulberry32 in the place of the browser's, so that chance draws the second question.
SEEDED = """
let seed = 2;
crypto.getRandomValues = (bytes) => bytes.forEach((_, place) => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  bytes[place] = (mixed ^ (mixed >>> 14)) >>> 24;
}) ?? bytes;
"""


@pytest.fixture
def seeded(browser):
    """Pages that are opened from now on draw the same each time."""
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SEEDED})
    yield
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.mark.usefixtures("seeded")
def test_undrawn_question_called_constructor_is_not_reported(meet):
    """Otherwise the other question's report could be neither read nor sent."""
    person = meet(studies.document({**studies.YES_NO, "id": "constructor"}, NUMBER, sample_one_question=True))
    asked = person.browser.execute_script("return document.querySelector('#answers [name]').name")
    assert asked == "hours"
    person.answer(hours="3")
    person.until("report")
    assert list(json.loads(person.body)["payloads"]) == ["hours"]
    person.until_says("not in the report: chance drew another question")
    person.send()
    person.until_says("This was sent")
    assert [list(report.payloads) for report in person.stored()] == [["hours"]]
