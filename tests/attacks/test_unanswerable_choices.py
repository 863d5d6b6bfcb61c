"""Publishes choices that a browser's form cannot hold, so that who would choose them can only keep silent.

Defence: The participant's page: sends a choice's place, never its label.
"""

import pytest

from schemas import Report, Study
from schemas.study_warnings import warnings_of
from tests import studies
from tests.portable.conftest import browser, meet, server

__all__ = ["browser", "meet", "server"]

# HTML turns a carriage return into a line feed; the last two look alike.
LABELS = ["no", "yes, \rsince", "yes, \r\nsince", "yes\x7f", "perhaps", "perhaps "]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], [f"month {number}" for number in range(12)]], ids=["buttons", "menu"])
@pytest.mark.parametrize("place", range(1, len(LABELS)))
def test_every_choice_can_be_answered(meet, more, place):
    labels = [*LABELS, *more]
    public = [{"id": "region", "choices": labels}]
    person = meet(studies.document({**studies.ONE_OF, "choices": labels}, public=public))
    pick = """
    for (const name of arguments[0]) {
      const found = document.getElementsByName(name);
      if (found[0].tagName === "SELECT") found[0].selectedIndex = arguments[1] + 1;
      else found[arguments[1]].click();
    }"""
    person.browser.execute_script(pick, [studies.ONE_OF["id"], "region"], place)
    person.ask_for_report()
    person.until("report")
    assert Report.from_json(person.body).public == {"region": labels[place]}


def test_easily_mistaken_choices_warn_author():
    labels = ["no", "yes", "yes ", "ma\u0301s", "m\u00e1s", "yes,\rsince", "north-east", "Not I", "not i"]
    public = [{"id": "region", "choices": ["west", "west\u00a0"]}]
    study = Study(studies.document({**studies.ONE_OF, "choices": labels}, public=public))
    told = [line for line in warnings_of(study) if "people may mistake it" in line]
    assert [line.split(":")[1].strip() for line in told] == [studies.ONE_OF["id"]] * 4 + ["region"]
    assert not any("north-east" in line for line in told)
