"""Find a true answer on the screen after its report was made: by the Back button, or in another tab.

Defence: The participant's page: erases entries when it is shown or focused again. Known limit: a second
window that stays in sight shows them until it gets the focus.
"""

import pytest

from tests.portable.participant import ANSWERS, Participant

ENTERED = """
return [...document.querySelectorAll("#answers :checked, #answers [type=text]")]
  .map(({ type, value }) => (type === "text" ? value : "ticked")).filter(Boolean);
"""
CHECKED = "return document.getElementById('entered').textContent"


def shows_nothing(person):
    person.until("report", "sent")
    assert person.browser.execute_script(ENTERED) == []
    assert person.browser.execute_script(CHECKED) == ""
    assert "3.5" not in person.find("main").get_property("innerHTML")


def in_german(person):
    """Take the menu's way to the same page in another language."""
    person.browser.execute_script("document.querySelector('a[hreflang=de]').click()")
    person.until_says("Ihre")
    person.until("ask")


def test_back_button_shows_no_answer_after_the_report(meet):
    person = meet()
    person.fill(**ANSWERS)
    in_german(person)
    person.answer(**ANSWERS)
    person.until("report")
    person.browser.back()
    shows_nothing(person)


def test_back_button_keeps_entries_before_the_report(meet):
    person = meet()
    person.fill(**ANSWERS)
    in_german(person)
    person.browser.back()
    person.until("ask")
    assert sorted(person.browser.execute_script(ENTERED)) == ["3.5", "ticked"]


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("kind", ["tab", "window"])
def test_another_tab_shows_no_answer_after_the_report(meet, looked, kind):
    person = meet()
    person.fill(**ANSWERS)
    if looked:
        person.click("#answers button[type=submit]")
        person.until("check")
    first = person.browser.current_window_handle
    person.browser.switch_to.new_window(kind)
    other = Participant(person.browser, person.server, person.study)
    other.answer(**ANSWERS)
    other.until("report")
    other.browser.close()
    person.browser.switch_to.window(first)
    if kind == "window":
        # It was in sight all the time; a browser without a screen leaves the focus where it is.
        person.browser.execute_script("dispatchEvent(new Event('focus'))")
    shows_nothing(person)
