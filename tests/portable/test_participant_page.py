"""The page on which people answer: what it shows, sends and keeps, with a real collector and Chromium."""

from selenium.webdriver.common.by import By

from ldp_client import mechanism_for
from schemas import Report
from tests import studies
from tests.portable import chromium
from tests.portable.participant import ANSWERS, EVERY_KIND, Participant

TODAY = """new Date().toLocaleDateString("en", { dateStyle: "long" })"""
NO_ISOLATES = dict.fromkeys((0x2068, 0x2069))


DEAF = "Object.defineProperty(document, 'visibilityState', { value: 'hidden' })"


def test_the_report_is_shown_before_it_leaves_and_sent_as_shown(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    shown = person.body
    _, (kept,) = person.ledger()
    assert (kept["state"], kept["body"]) == ("held", shown)
    assert person.stored() == []
    assert not [method for method, _ in person.requests() if method != "GET"]
    person.send()
    person.until_says("This was sent")
    assert person.stored() == [Report.from_json(shown)]
    assert (
        "PUT",
        f"{person.server.url}/v1/studies/{person.study.id}/reports/{kept['id']}",
    ) in person.requests()
    person.click("#so-far summary")
    day = person.browser.execute_script(f"return {TODAY}")
    told = [*person.find("#so-far-list").text.splitlines(), person.find("#so-far-total").text]
    assert [line.translate(NO_ISOLATES) for line in told[:6]] == [
        "Hours & <b>habits</b>",
        f"told to: {person.server.url.removeprefix('http://')}",
        f"answered on: {day}",
        "asked: How many hours did you work?; ever",
        "cost: ε = 2",
        "the report was sent",
    ]
    assert told[6].startswith("In all: ε = 2 of the 10 that this browser may tell")
    assert "at most 88.1% sure" in told[6]
    assert [method for method, _ in person.requests() if method != "GET"] == []


def test_page_warns_against_selective_sending(meet):
    """Epsilon does not bound that choice; the warning is next to the consent."""
    person = meet()
    assert "not by what the report says" not in person.text
    person.answer(**ANSWERS)
    person.until("report")
    assert "not by what the report says" in person.find("#consent").text
    person.send()
    person.until_says("This was sent")
    assert "not by what the report says" not in person.text


def test_a_reload_shows_the_same_report(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    shown = person.body
    person.browser.refresh()
    person.until("report")
    assert person.body == shown
    person.send()
    person.until_says("This was sent")
    person.browser.refresh()
    person.until_says("This was sent")
    assert person.body == shown
    assert person.stored() == [Report.from_json(shown)]


def test_nothing_is_sent_without_consent(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.click("#consent button")
    assert person.find("#agree").get_property("validity")["valueMissing"]
    person.browser.refresh()
    person.until("report")
    assert person.stored() == []
    _, (kept,) = person.ledger()
    assert kept["state"] == "held"


def test_report_waits_offline_and_is_sent_online(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    shown = person.body
    chromium.set_offline(person.browser, True)
    person.send()
    person.until_says("It will leave when the collector can be reached")
    assert person.stored() == []
    chromium.set_offline(person.browser, False)
    person.until_says("This was sent")
    assert person.stored() == [Report.from_json(shown)]


def test_a_second_answer_from_another_tab_is_refused(meet):
    person = meet()
    # As of a tab that hears nothing of being looked at again.
    person.browser.execute_script(DEAF)
    first = person.browser.current_window_handle
    person.browser.switch_to.new_window("tab")
    other = Participant(person.browser, person.server, person.study)
    other.answer(**ANSWERS)
    other.until("report")
    shown = other.body
    other.browser.close()
    other.browser.switch_to.window(first)
    person.answer(hours="9", ever="no")
    person.until_says("This browser has answered already")
    assert person.body == shown
    spent, reports = person.ledger()
    assert (sorted(spent), len(reports)) == (["ever", "hours"], 1)


def test_double_tap_answers_once_without_an_error(meet):
    person = meet()
    person.find("[name=hours]").send_keys("3.5")
    person.click("[name=ever][value=no]")
    script = "const [form] = arguments; form.requestSubmit(); form.requestSubmit();"
    person.browser.execute_script(script, person.find("#answers"))
    person.until("check")
    person.browser.execute_script(script, person.find("#confirm"))
    person.until("report")
    # A second answer would wait for the ledger before these do.
    kept = [person.ledger() for _ in range(10)]
    assert not person.find("#problem").is_displayed()
    assert all(found == kept[0] for found in kept)
    spent, reports = kept[0]
    assert (sorted(spent), len(reports)) == (["ever", "hours"], 1)


def test_ended_study_asks_nothing_and_allows_withdrawal(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.server.request("POST", f"/v1/studies/{person.study.id}/close")
    person.browser.refresh()
    person.until("report")
    person.send()
    # It may have been closed by mistake: the report waits.
    person.until_says("HTTP status 410, study-closed")
    person.click("#withdraw")
    person.until("gone")
    assert person.ledger() == (["ever", "hours"], [])
    forget = {"origin": person.server.url, "storageTypes": "all"}
    person.browser.execute_cdp_cmd("Storage.clearDataForOrigin", forget)
    person.browser.refresh()
    person.until_says("This study is over")
    assert not any(field.is_displayed() for field in person.browser.find_elements(By.TAG_NAME, "input"))


def test_study_closed_after_loading_draws_no_noise(meet):
    person = meet()
    person.server.request("POST", f"/v1/studies/{person.study.id}/close")
    person.answer(**ANSWERS)
    person.until_says("This study is not open today. Nothing was sent.")
    assert person.ledger() == ([], [])


def test_a_study_beyond_the_budget_is_not_answered(meet):
    costly = studies.with_epsilon(studies.NUMBER, "10.001")
    person = meet(studies.document(costly))
    person.answer(hours="3")
    person.until_says("This browser has shared as much as it may")
    assert person.ledger() == ([], [])


def test_phone_scrolls_to_the_problem_on_a_long_page(meet):
    many = [{**studies.with_epsilon(studies.NUMBER, "2"), "id": f"hours{number}"} for number in range(9)]
    person = meet(studies.document(*many))
    size = {"width": chromium.PHONE[0], "height": chromium.PHONE[1], "deviceScaleFactor": 1, "mobile": True}
    person.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        person.answer(**{question["id"]: "3" for question in many})
        person.until_says("This browser has shared as much as it may")
        box = person.find("#problem").rect
        scrolled = person.browser.execute_script("return scrollY")
        assert scrolled <= box["y"] < box["y"] + box["height"] <= scrolled + chromium.PHONE[1]
        assert person.browser.switch_to.active_element.get_attribute("id") == "problem"
    finally:
        person.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_page_without_a_ledger_asks_no_questions(meet):
    person = meet()
    script = """
    const done = arguments[0];
    indexedDB.deleteDatabase("ldpkit").onsuccess = () => {
      const request = indexedDB.open("ldpkit", 99);
      request.onsuccess = () => { request.result.close(); done(); };
    };
    """
    person.browser.execute_async_script(script)
    person.browser.refresh()
    person.until_says("This browser cannot store the report safely")
    assert not person.find("#answers").is_displayed()


def test_withdrawal_before_sending_erases_the_report(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.click("#withdraw")
    person.until("gone")
    assert person.ledger() == (["ever", "hours"], [])
    assert not [method for method, _ in person.requests() if method != "GET"]
    person.browser.refresh()
    person.until("gone")


def test_withdrawal_wipes_the_report_and_asks_for_its_deletion(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    person.until_says("This was sent")
    _, (sent,) = person.ledger()
    person.click("#withdraw")
    person.until("withdrawn", "gone")
    spent, reports = person.ledger()
    assert spent == ["ever", "hours"]
    assert [report["body"] for report in reports] in ([], [""])
    person.until_asked("DELETE", person.address(sent["id"]))
    person.browser.refresh()
    person.until("withdrawn", "gone")


def test_true_answers_are_not_stored_or_sent(meet):
    """Not in the form after a reload, not in any storage, and not in a request."""
    person = meet()
    person.answer(hours="11.987654", ever="yes")
    person.until("report")
    assert person.find("[name=hours]").get_property("value") == ""
    assert "11.987654" not in str(person.ledger())
    person.browser.refresh()
    person.until("report")
    assert person.find("[name=hours]").get_property("value") == ""
    script = "return [Object.keys(localStorage), Object.keys(sessionStorage), document.cookie]"
    assert person.browser.execute_script(script) == [[], [], ""]
    assert not [url for _, url in person.requests() if "11.98" in url]


def test_every_kind_of_question_can_be_answered(meet):
    person = meet(EVERY_KIND)
    choices = {"occupation": "worker", "colour": "teacher", "ever": "no", "risk/affair": "yes"}
    numbers = {"hours": "1.25", "age": "30", "rating/age": "40", "rating/years": "4", "rating/rate": "4"}
    person.find("[name=month]").send_keys("month 7")
    person.answer(**choices, **numbers, **{"risk/age": "42", "risk/years": "0"})
    person.until("report")
    person.send()
    person.until_says("This was sent")
    (report,) = person.stored()
    for question in person.study.questions:
        mechanism_for(question).check(report.payloads[question.id])


def test_report_stored_despite_a_proxy_error_is_deleted(meet):
    """The collector stores it, the answer is lost, and a proxy refuses the second attempt."""
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.browser.execute_script(LOST_ANSWER)
    person.send()
    person.until_says("HTTP status 404, not of the collector")
    assert len(person.stored()) == 1
    person.click("#withdraw")
    person.until("gone")
    assert person.stored() == []


LOST_ANSWER = """
const { fetch, setTimeout } = window;
window.setTimeout = (work) => setTimeout(work, 0);
// Its worker would send the report without this page's faults.
delete window.SyncManager;
let attempts = 0;
window.fetch = async (url, options) => {
  if (options.method !== "PUT") return fetch(url, options);
  if (attempts++) return new Response("", { status: 404 });
  await fetch(url, options);
  throw new TypeError("the answer is lost");
};
"""
