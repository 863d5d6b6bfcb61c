"""The page on which people answer, with a real collector and Chromium: what a browser alone shows.

What its modules read and say is tested by node, in tests/js.
"""

import json

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from ldp_client import mechanism_for
from ldp_client.explain import in_words, odds
from schemas import Report
from tests import studies
from tests.portable import chromium
from tests.portable.participant import ANSWERS, EVERY_KIND

pytestmark = pytest.mark.slow
HABIT = {**studies.MEMOIZED, "text": "Did you ride a bicycle this week?"}


def reported(person, **answers):
    person.answer(**(answers or ANSWERS))
    person.until("report")
    return person.body


def sent(person):
    person.send()
    person.until_says("This was sent")


TWICE = "const [form] = arguments; form.requestSubmit(); form.requestSubmit();"
# What stands in the form's fields.
ENTERED = """
return [...document.querySelectorAll("#answers :checked, #answers [type=text]")]
  .map(({ type, value }) => (type === "text" ? value : "ticked")).filter(Boolean);
"""


@pytest.mark.attack(8)
def test_report_is_shown_before_it_leaves_and_sent_as_shown(meet):
    """A report that its person did not see or agree to leaves the browser, or a true answer stays in it."""
    person = meet()
    # A study's texts are shown as text.
    assert "Hours & <b>habits</b>" in person.text
    assert person.browser.find_elements(By.CSS_SELECTOR, "h1 b, main i") == []
    person.fill(hours="11.987654", ever="yes")
    # A double tap answers once.
    for form, heading in (("#answers", "check"), ("#confirm", "report")):
        person.browser.execute_script(TWICE, person.find(form))
        person.until(heading)
    shown = person.body
    # A second answer would wait for the ledger before these do.
    (_, (kept,)), *others = [person.ledger() for _ in range(5)]
    assert (kept["state"], kept["body"]) == ("held", shown)
    assert others == [(["ever", "hours"], [kept])] * 4
    assert not person.find("#problem").is_displayed()
    assert person.find("#in-words .on-scale .answer").is_displayed()
    # A withdrawal is confirmed.
    assert not person.find("#withdraw").is_displayed()
    # Without the box ticked nothing leaves.
    person.click("#consent button")
    assert person.find("#agree").get_property("validity")["valueMissing"]
    assert "11.987654" not in person.find("main").get_property("innerHTML") + str(person.ledger())
    person.browser.refresh()
    person.until("report")
    assert person.body == shown
    assert person.find("[name=hours]").get_property("value") == ""
    stored = "return [Object.keys(localStorage), Object.keys(sessionStorage), document.cookie]"
    assert person.browser.execute_script(stored) == [[], [], ""]
    assert "not by what the report says" in person.find("#consent").text
    requests = person.requests()
    assert {method for method, _ in requests} == {"GET"}
    assert not [url for _, url in requests if "11.98" in url]
    # It waits offline and is sent online.
    chromium.set_offline(person.browser, True)
    person.send()
    person.until_says("It will leave when the collector can be reached")
    chromium.set_offline(person.browser, False)
    person.until_says("This was sent")
    assert person.stored() == [Report.from_json(shown)]
    address = f"{person.server.url}/v1/studies/{person.study.id}/reports/{kept['id']}"
    assert ("PUT", address) in person.requests()
    person.click("#so-far summary")
    assert "Hours & <b>habits</b>" in person.find("#so-far-list").text


@pytest.mark.attack(4)
def test_another_tab_gets_no_second_answer_and_shows_none(meet):
    """One tab answers what another tab has answered meanwhile, and shows a true answer after the report."""
    person = meet()
    # As of a tab that hears nothing of being looked at again.
    person.browser.execute_script("Object.defineProperty(document, 'visibilityState', { value: 'hidden' })")
    with person.another_tab() as other:
        shown = reported(other)
    person.answer(hours="9", ever="no")
    person.until_says("This browser has answered already")
    assert person.body == shown
    assert person.browser.execute_script(ENTERED) == []
    spent, reports = person.ledger()
    assert (sorted(spent), len(reports)) == (["ever", "hours"], 1)


def test_page_that_was_left_shows_no_entries(meet):
    """The next person at a shared browser finds an empty form, from the browser's cache or loaded again."""
    person = meet()
    for is_from_cache in (True, False):
        person.fill(**ANSWERS)
        person.click("#answers button[type=submit]")
        person.until("check")
        if is_from_cache:
            person.browser.execute_script("document.querySelector('a[hreflang=de]').click()")
            person.until_says("Ihre")
            person.browser.back()
        else:
            person.browser.refresh()
        person.until("ask")
        assert person.browser.execute_script(ENTERED) == []
        assert person.find("#entered").get_property("textContent") == ""
        assert person.ledger() == ([], [])


def test_closed_study_draws_no_noise(meet):
    person = meet()
    person.fill(**ANSWERS)
    person.server.request("POST", f"/v1/studies/{person.study.id}/close")
    person.ask_for_report()
    person.until_says("This study is not open today. Nothing was sent.")
    assert person.ledger() == ([], [])
    person.browser.refresh()
    person.until_says("This study is over")
    assert not any(field.is_displayed() for field in person.browser.find_elements(By.TAG_NAME, "input"))


HEIGHTS = """
return [...document.querySelectorAll("button, select, input, summary, label.choice")]
  .filter((part) => part.offsetParent && part.type !== "radio" && part.type !== "checkbox")
  .map((part) => part.getBoundingClientRect().height);
"""


def test_every_kind_of_question_is_explained_tried_and_answered(meet):
    """On a page that loads its own files alone, and whose controls can be touched."""
    person = meet(EVERY_KIND)
    urls = {url for _, url in person.requests() if url.startswith("http")}
    files = sorted(url.removeprefix(person.server.url).partition("?")[0] for url in urls)
    assert files == ["/assets/page.js", "/assets/participant.css", f"/s/{person.study.id}"]
    heights = person.browser.execute_script(HEIGHTS)
    assert len(heights) > 20
    assert min(heights) >= 44
    for details in person.browser.find_elements(By.CSS_SELECTOR, "#answers summary"):
        details.click()
    tries = person.browser.find_elements(By.CSS_SELECTOR, ".try")
    assert len(tries) == len(person.study.questions)
    for button in tries:
        button.click()
        assert len(button.find_elements(By.XPATH, "following-sibling::div//li")) == 10
    said = person.text
    for question in person.study.questions:
        mechanism = mechanism_for(question)
        assert in_words(mechanism) in said
        assert odds(float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)) in said
    # What is tried is neither kept nor sent.
    assert (person.ledger(), person.requests()) == (([], []), [])
    choices = {"occupation": "worker", "colour": "teacher", "ever": "no", "risk/affair": "yes"}
    numbers = {"hours": "1.25", "age": "30", "rating/age": "40", "rating/years": "4", "rating/rate": "4"}
    person.find("[name=month]").send_keys("month 7")
    reported(person, **choices, **numbers, **{"risk/age": "42", "risk/years": "0"})
    sent(person)
    (report,) = person.stored()
    for question in person.study.questions:
        mechanism_for(question).check(report.payloads[question.id])
    assert person.browser.get_log("browser") == []


def test_kept_answer_is_repeated_and_consent_is_to_the_report_that_is_shown(meet):
    """While one report was shown another tab answered the next round: that report was not agreed to."""
    person = meet(studies.document(HABIT))
    shown = reported(person, habit="yes")
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 2})
    with person.another_tab() as other:
        other.answer(habit="no")
        other.wait_until(lambda: '"version":2' in other.body)
        later = other.body
    assert person.body == shown != later
    person.send()
    person.wait_until(lambda: person.body == later)
    assert person.stored() == []
    sent(person)
    assert person.stored() == [Report.from_json(later)]


def test_page_draws_one_question_and_reloads_change_nothing(meet):
    """Questions are called as what forms and pages have already."""
    questions = [{**studies.NUMBER, "id": "elements"}, {**studies.YES_NO, "id": "constructor"}]
    public = [{"id": "reset", "choices": ["a", "b"]}]
    person = meet(studies.document(*questions, public=public, sample_one_question=True))
    assert "has drawn one of the 2 questions by chance" in person.text
    drawn = "return [...document.querySelectorAll('#answers .card')].map((one) => one.dataset.place).join('')"
    place = person.browser.execute_script(drawn)
    person.browser.refresh()
    person.until("ask")
    assert person.browser.execute_script(drawn) == place
    entry = [{"elements": "3"}, {"constructor": "yes"}][int(place)]
    reported(person, **entry, reset="b")
    person.until_says("chance drew another question")
    sent(person)
    (report,) = person.stored()
    assert (set(report.payloads), report.public) == (set(entry), {"reset": "b"})


def test_ticket_is_taken_from_the_address_or_typed(meet):
    """Browsers never send what stands behind the #."""
    person = meet()
    first, second = person.server.tickets(person.study.id, 2)
    person.open(first)
    assert first not in reported(person)
    person.send()
    assert not [url for _, url in person.requests() if first in url]
    person.until_says("This was sent")
    chromium.forget(person.browser, person.server.url)
    person.open(first)
    shown = reported(person)
    person.send()
    person.until_says("takes reports from invited people only")
    person.find("#ticket .ticket").send_keys(f" \u201c{second}\u200b\u201d ")
    person.click("#ticket button")
    person.until_says("This was sent")
    assert Report.from_json(shown) in person.stored()


def test_sections_are_shown_one_at_a_time_and_sent_together(meet):
    sections = [{"title": "Work", "questions": ["hours"]}, {"title": "Life", "questions": ["ever"]}]
    region = {"id": "region", "choices": ["north", "south"]}
    person = meet(studies.document(studies.NUMBER, studies.YES_NO, sections=sections, public=[region]))
    person.browser.execute_script("location.hash = 'ticket=abc'")
    address, focused = person.browser.current_url, person.browser.switch_to

    def shown():
        found = person.browser.find_elements(By.CSS_SELECTOR, "#answers h3, #answers button:not(.try)")
        return [one.text for one in found if one.is_displayed()]

    assert shown() == ["Work", "Next"]
    assert person.find("#progress").text == "Part 1 of 2 · answered: 0 of 3"
    person.click("#next")
    person.until("problem")
    box, scrolled = person.find("#problem").rect, person.browser.execute_script("return scrollY")
    assert scrolled <= box["y"] < box["y"] + box["height"] <= scrolled + chromium.PHONE[1]
    person.find("#problem button").click()
    assert focused.active_element.get_attribute("name") == "hours"
    assert person.browser.current_url == address
    focused.active_element.send_keys("3.5", Keys.ENTER)
    person.until_says("Part 2 of 2 · answered: 1 of 3")
    assert shown() == ["Life", "Sent as it is", "Check my answers", "Back"]
    assert focused.active_element.text == "Life"
    person.click("#back")
    person.until_says("Part 1 of 2")
    assert person.find("[name=hours]").get_property("value") == "3.5"
    person.click("#next")
    reported(person, ever="yes", region="south")
    sent(person)
    (report,) = person.stored()
    assert (sorted(report.payloads), report.public) == (["ever", "hours"], {"region": "south"})


# Takes each text that shows, now or later, and puts another in its place; leaves alone what asks for it.
TRANSLATOR = """
window.taken = [];
const left = "script, style, font, [translate=no]";
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
TYPED = "return [...document.querySelectorAll('#answers [type=text], #answers')].map((one) => one.spellcheck)"


@pytest.mark.attack(8)
def test_page_translators_read_no_answer(meet):
    """A browser's translator sends texts to its servers."""
    person = meet()
    assert set(person.browser.execute_script(TYPED)) == {False}
    person.browser.execute_script(TRANSLATOR)
    taken = "return taken.splice(0)"
    assert any("How many hours" in text for text in person.browser.execute_script(taken))
    person.fill(hours="98765", ever="yes")
    person.click("#answers button[type=submit]")
    person.until("problem")
    person.find("[name=hours]").clear()
    shown = reported(person, hours="3.5")
    person.click("#report ~ details summary")
    texts = person.browser.execute_script(taken)
    assert texts
    assert not {"yes", "no", shown} & {*texts}
    assert not [text for text in texts if "3.5" in text or "98765" in text]
    person.send()
    person.wait_until(lambda: len(person.stored()) == 1)


def test_translated_study_is_read_and_answered_in_a_language(meet):
    """Counts and public values use the study's own labels; Arabic is mirrored."""
    person = meet(studies.TRANSLATED)
    person.browser.get(f"{person.server.url}/s/{person.study.id}?lang=ar#ticket=abc")
    person.until("ask")
    assert person.find("html").get_attribute("dir") == "rtl"
    style = "return getComputedStyle(arguments[0]).textAlign"
    assert person.browser.execute_script(style, person.find("h1")) == "right"
    # The menu keeps what the address carries behind its #.
    person.click(".languages summary")
    german = person.find(".languages a[hreflang=de]")
    assert german.get_attribute("href").endswith("?lang=de#ticket=abc")
    german.click()
    person.wait_until(lambda: person.find("h1").text == "Gewohnheiten")
    person.until("ask")
    answers = {"region": "Norden", "occupation": "Arbeiter", "ever": "yes", "hours": "7,5", "age": "42"}
    assert json.loads(reported(person, **answers))["public"] == {"age": "42", "region": "north"}


def test_page_asks_for_https(meet):
    person = meet()
    elsewhere = person.server.url.replace("127.0.0.1", chromium.ELSEWHERE)
    person.browser.get(f"{elsewhere}/s/{person.study.id}")
    person.until_says("this page has to be opened over https")
    shown = [field for field in person.browser.find_elements(By.TAG_NAME, "input") if field.is_displayed()]
    assert (person.browser.execute_script("return isSecureContext"), shown) == (False, [])


@pytest.mark.attack(7)
def test_page_beyond_its_budget_answers_nothing(meet):
    """The page gives its device a lifetime budget of 10."""
    person = meet(studies.document(studies.with_epsilon(studies.NUMBER, "10.001")))
    person.answer(hours="3")
    person.until_says("This browser has shared as much as it may")
    assert person.ledger() == ([], [])


HELD = """
const ask = fetch;
const held = new Promise((resolve) => (window.answerNow = resolve));
fetch = async (url, options) => {
  if (!String(url).endsWith(arguments[0])) return ask(url, options);
  window.isAsked = true;
  await held;
  return ask(url, options).finally(() => setTimeout(() => (window.isAnswered = true), 200));
};
"""


def test_changed_entries_need_a_second_confirmation(meet):
    """The first press confirmed answers that differ from those shown when the collector answers."""
    person = meet()
    person.browser.execute_script(HELD, f"/v1/studies/{person.study.id}")
    person.fill(hours="3.5", ever="yes")
    person.click("#answers button[type=submit]")
    person.until("check")
    person.click("#confirm button")
    person.wait_until(lambda: person.browser.execute_script("return window.isAsked"))
    person.click("#change")
    person.until("ask")
    person.fill(hours="9")
    person.click("#answers button[type=submit]")
    person.until("check")
    person.browser.execute_script("answerNow()")
    person.wait_until(lambda: person.browser.execute_script("return window.isAnswered"))
    assert person.ledger() == ([], [])
    assert person.find("#entered").text.splitlines()[1] == "3.59"
    person.click("#confirm button")
    person.until("report")
