"""Read answers, or block reports, as a browser's page translator or spelling checker.

Defence: The participant's page: marks repeated answers and the report as not translatable until consent,
turns spelling checks off, and sends the report as first shown. Known limit: a program that ignores such
marks, like any other browser extension.
"""

import pytest

from tests.portable.participant import ANSWERS

# Takes each text that shows, now or later, and puts another in its place. arguments[0]: what it leaves alone.
TRANSLATOR = """
window.taken = [];
const left = `script, style, font, ${arguments[0]}`;
const translate = () => {
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (const text of texts) {
    const parent = text.parentElement;
    if (!text.data.trim() || !parent.checkVisibility() || parent.closest(left)) continue;
    taken.push(text.data.trim());
    const font = document.createElement("font");
    font.textContent = `« ${text.data} »`;
    text.replaceWith(font);
  }
};
translate();
new MutationObserver(translate).observe(document.body, {
  subtree: true, childList: true, characterData: true, attributes: true
});
"""
# What is marked so is left alone; a program that people installed may not keep to it.
POLITE = "[translate=no]"
RUDE = "#none"
TYPED = "return [...document.querySelectorAll('#answers [type=text], #answers')].map((one) => one.spellcheck)"


def taken(person):
    """Return the texts translated since the last call."""
    return person.browser.execute_script("return taken.splice(0)")


def said_of(person, place):
    return person.browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", f"{place} dd"
    )


def test_answers_and_report_are_marked_as_not_translatable(meet):
    person = meet()
    person.browser.execute_script(TRANSLATOR, POLITE)
    assert any("How many hours" in text for text in taken(person))
    person.fill(hours="98765", ever="yes")
    person.click("#answers button[type=submit]")
    person.until_says("98765")
    assert person.find(".wrong").is_displayed()
    person.find("[name=hours]").clear()
    person.fill(hours=ANSWERS["hours"])
    person.click("#answers button[type=submit]")
    person.until("check")
    assert said_of(person, "#entered") == ["3.5", "yes"]
    person.click("#confirm button")
    person.until("report")
    person.click("#report ~ details summary")
    reported = said_of(person, "#in-words")
    texts = taken(person)
    assert texts
    assert not {"yes", "no", *reported, person.body} & {*texts}
    assert not [text for text in texts if "3.5" in text or "98765" in text]


@pytest.mark.parametrize("left", [POLITE, RUDE])
def test_translated_page_sends_the_report_as_shown(meet, left):
    person = meet()
    person.browser.execute_script(TRANSLATOR, left)
    person.answer(**ANSWERS)
    person.until("report")
    person.click("#report ~ details summary")
    if left == RUDE:
        assert "«" in person.body
    person.send()
    person.until_says("This was sent")
    person._until(lambda: len(person.stored()) == 1)


def test_fields_have_spell_checking_off(meet):
    person = meet()
    assert set(person.browser.execute_script(TYPED)) == {False}
