"""Answers on the participant's page are read, repeated and corrected before any noise is drawn.

Defence: The participant's page: rejects an entry with two readings, even if one is outside the bounds, or
outside the bounds itself, and shows what it understood before noise is drawn.
"""

import json

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests import studies
from tests.portable import chromium
from tests.portable.participant import MENU, TEXT, WAIT_SECONDS

HOURS = {**studies.NUMBER, **TEXT, "bounds": ["-10", "5000"]}
TWO_READINGS = "is {} the number {}, or one with a fraction?"
NOT_DIGITS = "write a number in digits"
# What is typed, and what the page takes it for.
UNDERSTOOD = {
    "55,5": "55.5",
    "55.5": "55.5",
    " +7 ": "7",
    "\N{MINUS SIGN}3": "-3",
    ",5": "0.5",
    "0,125": "0.125",
    "\N{ARABIC-INDIC DIGIT FOUR}\N{ARABIC DECIMAL SEPARATOR}\N{ARABIC-INDIC DIGIT TWO}": "4.2",
    "\N{DEVANAGARI DIGIT NINE}\N{DEVANAGARI DIGIT ZERO}": "90",
    "1234": "1234",
    "1,2340": "1.234",
}
REFUSED = {
    "": "please answer this",
    "1,234": TWO_READINGS.format("1,234", 1234),
    "1.234": TWO_READINGS.format("1.234", 1234),
    # Also where a reading is out of bounds.
    "9,876": TWO_READINGS.format("9,876", 9876),
    "1.234,5": NOT_DIGITS,
    "1 234": NOT_DIGITS,
    "1e3": NOT_DIGITS,
    "twelve": NOT_DIGITS,
    ".": NOT_DIGITS,
    "5001": "5001 is above 5000, the largest number that counts here; if it is right, write 5000",
    "-10,5": "-10,5 is below -10, the smallest number that counts here; if it is right, write -10",
}


def test_numbers_are_read_as_people_write_them_or_not_at_all(meet):
    person = meet(studies.document(HOURS))
    box = person.find("[name=hours]")

    def check(typed):
        box.clear()
        box.send_keys(typed)
        person.click("#answers button[type=submit]")

    # Where it is typed, before any button.
    box.send_keys("twelve", Keys.TAB)
    assert NOT_DIGITS in person.find(".wrong").text
    for typed, words in REFUSED.items():
        check(typed)
        person.until("problem")
        assert words in person.find("#problem").text, typed
        assert words in person.find(".wrong").text, typed
        assert box.get_attribute("aria-invalid") is not None
        assert not person.find("#check").is_displayed()
    for typed, words in UNDERSTOOD.items():
        check(typed)
        person.until("check")
        assert person.find("#entered").text.splitlines() == [TEXT["text"], words], typed
        person.click("#change")
        person.until("ask")
        assert box.get_property("value") == typed
        assert box.get_attribute("aria-invalid") is None
    assert person.ledger() == ([], [])


def test_thousands_separator_is_read_unambiguously(meet):
    """A whole number has no fraction."""
    numbered = {**studies.CHOICE, "choices": {"count": 2000}}
    person = meet(studies.document(numbered))
    box = person.find("[name=occupation]")
    for typed, said in {"1,000": "1000", "1.999": "1999", "3,000": ""}.items():
        box.clear()
        box.send_keys(typed)
        person.click("#answers button[type=submit]")
        if not said:
            person.until("problem")
            assert "3000 is above 1999" in person.find("#problem").text
            break
        person.until("check")
        assert person.find("#entered").text.splitlines()[-1].replace(",", "") == said
        person.click("#change")
        person.until("ask")


def test_entries_can_be_changed_before_noise_and_are_then_erased(meet):
    person = meet()
    person.fill(hours="11.987654", ever="yes")
    person.click("#answers button[type=submit]")
    person.until("check")
    assert person.find("#entered").text.splitlines() == [TEXT["text"], "11.987654", "ever", "yes"]
    assert person.ledger() == ([], [])
    person.click("#change")
    person.until("ask")
    person.click("[name=ever][value=no]")
    person.click("#answers button[type=submit]")
    person.until("check")
    assert person.find("#entered").text.splitlines()[-1] == "no"
    person.click("#confirm button")
    person.until("report")
    assert person.find("#entered").get_property("textContent") == ""
    assert "11.987654" not in person.find("main").get_property("innerHTML")
    assert person.find("[name=hours]").get_property("value") == ""


SLEEP = {**HOURS, "bounds": ["0", "24"], "unit": {"en": "hours", "fr": "heures"}}
PRESSURE = {
    **studies.PRODUCTS,
    "text": {"en": "Your pressure", "fr": "Votre tension"},
    "features": [
        {
            "id": "bp",
            "text": {"en": "In the morning", "fr": "Le matin"},
            "bounds": ["40", "250"],
            "unit": "mmHg",
        },
        {"id": "ill", "ask": "yes_no", "text": {"en": "Were you ill?", "fr": "Malade ?"}},
    ],
}


def test_units_and_fields_are_shown_in_the_pages_language(meet):
    person = meet(studies.document(SLEEP, PRESSURE, languages=["en", "fr"]))
    assert person.find("[name='salary/bp']").accessible_name == "In the morning"
    assert "hours\nfrom 0 to 24" in person.text
    assert "mmHg\nfrom 40 to 250" in person.text
    person.fill(**{"hours": "7.5", "salary/bp": "120", "salary/ill": "no", "salary/rate": "3"})
    person.click("#answers button[type=submit]")
    person.until("check")
    said = person.find("#entered").text.splitlines()
    assert said[1] == "7.5 hours"
    assert said[2:6] == ["Your pressure: In the morning", "120 mmHg", "Your pressure: Were you ill?", "no"]
    person.click("#confirm button")
    person.until("report")
    assert set(json.loads(person.body)["payloads"]) == {"hours", "salary"}


def test_phone_lists_missing_answers_with_links_at_the_top(meet):
    """The links keep the invitation in the address's fragment."""
    many = [{**studies.YES_NO, "id": f"q{number}", "text": f"Question {number}?"} for number in range(11)]
    person = meet(studies.document(*many))
    address = person.browser.current_url
    person.browser.execute_script("location.hash = 'invitation=abc'")
    size = {"width": chromium.PHONE[0], "height": chromium.PHONE[1], "deviceScaleFactor": 1, "mobile": True}
    person.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        person.fill(**{question["id"]: "no" for question in many[:9]})
        assert person.find("#progress").text == "answered: 9 of 11"
        person.click("#answers button[type=submit]")
        person.until_says("2 answers need another look:")
        box = person.find("#problem").rect
        scrolled = person.browser.execute_script("return scrollY")
        assert scrolled <= box["y"] < box["y"] + box["height"] <= scrolled + chromium.PHONE[1]
        links = person.find("#problem").find_elements(By.TAG_NAME, "button")
        assert [link.text for link in links] == [f"Question {n}? – please answer this" for n in (9, 10)]
        links[1].click()
        assert person.browser.switch_to.active_element.get_attribute("name") == "q10"
        assert person.browser.current_url == f"{address}#invitation=abc"
        # What was mended is no longer called wrong.
        person.click("[name=q10][value=no]")
        assert len(person.browser.find_elements(By.CSS_SELECTOR, ".wrong")) == 1
        assert person.find("#progress").text == "answered: 10 of 11"
    finally:
        person.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_sections_are_shown_one_at_a_time_and_sent_together(meet):
    """Works by keyboard too; entries stay, and each error is shown at its field."""
    titles = {"Work": ["hours"], "Life": ["occupation"], "More": ["ever"]}
    sections = [{"title": title, "questions": ids} for title, ids in titles.items()]
    asked = studies.document(studies.NUMBER, studies.YES_NO, studies.CHOICE, sections=sections)
    person = meet({**asked, "public": [{"id": "region", "choices": ["north", "south"]}]})
    focused = person.browser.switch_to

    def shown():
        found = person.browser.find_elements(By.CSS_SELECTOR, "#answers h3, #answers button:not(.try)")
        return [one.text for one in found if one.is_displayed()]

    assert shown() == ["Work", "Next"]
    assert person.find("#progress").text == "Part 1 of 3 · answered: 0 of 4"
    person.click("#next")
    person.until("problem")
    assert person.find("#problem").text.splitlines()[1:] == ["hours – please answer this"]
    assert len(person.browser.find_elements(By.CSS_SELECTOR, ".wrong")) == 1
    person.find("[name=hours]").send_keys("3.5", Keys.ENTER)
    person.until_says("Part 2 of 3 · answered: 1 of 4")
    assert shown() == ["Life", "Next", "Back"]
    assert focused.active_element.text == "Life"
    assert not person.find("#problem").is_displayed()
    person.click("#back")
    person.until_says("Part 1 of 3")
    assert focused.active_element.text == "Work"
    assert person.find("[name=hours]").get_property("value") == "3.5"
    person.click("#next")
    person.until_says("Part 2 of 3")
    person.fill(occupation="worker")
    person.click("#next")
    person.until_says("Part 3 of 3 · answered: 2 of 4")
    assert shown() == ["More", "Sent as it is", "Check my answers", "Back"]
    person.answer(ever="yes", region="south")
    person.until("report")
    person.send()
    person.until_says("This was sent")
    (report,) = person.stored()
    assert (sorted(report.payloads), report.public) == (["ever", "hours", "occupation"], {"region": "south"})


PILLS = [
    {**studies.YES_NO, "id": name, "text": text} for name, text in (("asa", "Aspirin"), ("ibu", "Ibuprofen"))
]


def test_checkbox_list_needs_a_tick_or_none_of_these(meet):
    """An untouched list is unanswered: an empty box does not count as a no."""
    sections = [
        {"title": "Work", "questions": ["hours"]},
        {"title": "Which of these do you take?", "questions": ["asa", "ibu"], "any_of": True},
    ]
    asa, ibu = "Which of these do you take? Aspirin", "Which of these do you take? Ibuprofen"
    person = meet(studies.document(HOURS, *PILLS, sections=sections))

    def go_on():
        person.click("#answers button:not([hidden])[type=submit]")

    person.fill(hours="8")
    go_on()
    assert person.find("#progress").text.endswith("answered: 1 of 3")
    go_on()
    person.until_says("1 answer needs another look:")
    assert "Which of these do you take? – please answer this" in person.find("#problem").text
    assert len(person.browser.find_elements(By.CSS_SELECTOR, ".wrong")) == 1
    person.click("[name=ibu]")
    assert person.browser.find_elements(By.CSS_SELECTOR, ".wrong") == []
    person.click("[name='none:asa']")
    go_on()
    person.until_says("ticked boxes, and “none of these”: leave one of them")
    person.click("[name='none:asa']")
    go_on()
    person.until("check")
    assert person.find("#entered").text.splitlines()[2:] == [asa, "no", ibu, "yes"]
    person.click("#change")
    person.until("ask")
    go_on()
    person.click("[name=ibu]")
    person.click("[name='none:asa']")
    go_on()
    person.until("check")
    assert person.find("#entered").text.splitlines()[2:] == [asa, "no", ibu, "no"]
    person.click("#confirm button")
    person.until("report")
    assert set(json.loads(person.body)["payloads"]) == {"hours", "asa", "ibu"}


def test_refusal_is_offered_like_any_other_choice(meet):
    """It is a button or menu item like the others, works by keyboard, is shown again and is sent."""
    menu = {**MENU, "refusal": True, "mechanism": {"name": "randomized_response", "epsilon": "4"}}
    ever = {**studies.YES_NO, "refusal": True, "mechanism": menu["mechanism"]}
    hours = {**studies.NUMBER, "refusal": {"share": "0.5"}}
    person = meet(studies.document(ever, menu, hours))
    box, refuses = person.browser.find_elements(By.NAME, "hours")
    refuses.send_keys(Keys.SPACE)
    box.send_keys("3")
    first, *_, last = person.browser.find_elements(By.NAME, "ever")
    first.send_keys(Keys.ARROW_LEFT)
    assert last.get_attribute("value") == "refused"
    assert last.is_selected()
    person.answer(month="prefer not to say")
    person.until("problem")
    assert "leave one of them" in person.find("#problem").text
    box.clear()
    person.ask_for_report()
    person.until("report")
    assert person.text.count("prefer not to say") >= 1
    payloads = json.loads(person.body)["payloads"]
    assert {name: len(payload) for name, payload in payloads.items()} == {
        "ever": 4,
        "month": 4,
        "hours": 8,
    }


HELD = """
const ask = fetch;
const held = new Promise((resolve) => (window.answerNow = resolve));
fetch = async (url, options) => {
  if (!String(url).endsWith(arguments[0])) return ask(url, options);
  window.isAsked = true;
  await held;
  return ask(url, options).finally(() => setTimeout(() => (window.isAnswered = true), 500));
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
    wait = WebDriverWait(person.browser, WAIT_SECONDS)
    wait.until(lambda browser: browser.execute_script("return window.isAsked"))
    person.click("#change")
    person.until("ask")
    person.fill(hours="9")
    person.click("#answers button[type=submit]")
    person.until("check")
    person.browser.execute_script("answerNow()")
    wait.until(lambda browser: browser.execute_script("return window.isAnswered"))
    assert person.ledger() == ([], [])
    assert person.find("#entered").text.splitlines()[1] == "3.59"
    person.click("#confirm button")
    person.until("report")
