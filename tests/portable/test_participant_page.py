"""The page on which people answer: a real collector, headless Chromium at a phone's width."""

import re
import urllib.request
from urllib.error import HTTPError

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from collector.port import modules_for
from collector.views.participant import CONTENT_SECURITY_POLICY
from ldp_client import mechanism_for
from ldp_client.cli import main
from ldp_client.wording import odds
from schemas import Report, Study
from tests import studies
from tests.collector.conftest import Server
from tests.portable import chromium
from tests.portable.participant import Participant

STATED = {"epsilon": "1", "delta": "1e-6"}
TOWN = {
    **studies.CHOICE,
    "id": "town",
    "text": "Which of the listed towns do you live in?",
    "choices": {"count": 200_000},
    "mechanism": {"name": "olh", "epsilon": "2"},
}
HEIGHT = {
    **studies.NUMBER,
    "id": "height",
    "text": "How tall are you, in cm?",
    "bounds": ["140", "200"],
    "mechanism": {"name": "gaussian", **STATED},
}
HABIT = {**studies.MEMOIZED, "text": "Did you ride a bicycle this week?"}
WAGE = {**studies.RECORD, "text": "About your work"}
TEXT = {"text": "How many hours did you work?"}
SMALL = studies.document(
    {**studies.NUMBER, **TEXT}, studies.YES_NO, title="Hours & <b>habits</b>", purpose="To <i>see</i>."
)
MENU = {**studies.CHOICE, "id": "month", "choices": [f"month {number}" for number in range(12)]}
EVERY_KIND = studies.document(*studies.ALL, MENU)
ANSWERS = {"hours": "3.5", "ever": "yes"}
LEAST_CONTRAST = 4.5
NAMED_ROLES = {"button", "combobox", "radio", "region", "spinbutton"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("collector"))
    yield started
    started.kill()


@pytest.fixture
def meet(browser, server, request):
    """Publish a study for this test, and open its page in a browser that has forgotten everything."""

    def meet(document=SMALL, invitation=""):
        name = re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")
        study = Study({**document, "id": name[:64]})
        server.request("POST", "/v1/studies", study.document)
        browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
        browser.get_log("performance")
        return Participant(browser, server, study, invitation)

    yield meet
    chromium.set_offline(browser, False)


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


def test_it_warns_of_sending_only_what_one_likes(meet):
    """That choice would not be bounded by epsilon; the warning stands where it is made."""
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


def test_offline_then_online(meet):
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


def test_a_double_tap_answers_once_and_without_alarm(meet):
    person = meet()
    person.find("[name=hours]").send_keys("3.5")
    person.click("[name=ever][value=no]")
    script = "const [form] = arguments; form.requestSubmit(); form.requestSubmit();"
    person.browser.execute_script(script, person.find("#answers"))
    person.until("report")
    # A second answer would wait for the ledger before these do.
    kept = [person.ledger() for _ in range(10)]
    assert not person.find("#problem").is_displayed()
    assert all(found == kept[0] for found in kept)
    spent, reports = kept[0]
    assert (sorted(spent), len(reports)) == (["ever", "hours"], 1)


def test_a_study_that_is_over_asks_nothing_and_lets_people_withdraw(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.server.request("POST", f"/v1/studies/{person.study.id}/close")
    person.browser.refresh()
    person.until("report")
    person.send()
    person.until_says("The collector did not take this report")
    person.click("#withdraw")
    person.until("gone")
    assert person.ledger() == (["ever", "hours"], [])
    forget = {"origin": person.server.url, "storageTypes": "all"}
    person.browser.execute_cdp_cmd("Storage.clearDataForOrigin", forget)
    person.browser.refresh()
    person.until_says("This study is over")
    assert not any(field.is_displayed() for field in person.browser.find_elements(By.TAG_NAME, "input"))


def test_a_study_beyond_the_budget_is_not_answered(meet):
    costly = studies.with_epsilon(studies.NUMBER, "10.001")
    person = meet(studies.document(costly))
    person.answer(hours="3")
    person.until_says("This browser has shared as much as it may")
    assert person.ledger() == ([], [])


def test_without_a_ledger_nothing_is_asked(meet):
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


def test_withdrawal_before_sending_leaves_nothing(meet):
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


def test_the_true_answers_are_nowhere(meet):
    """Neither in the form after a reload, nor in any storage, nor in a request."""
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
    numbers = {"hours": "1.25", "age": "30", "rating/age": "4", "rating/years": "4", "rating/rate": "4"}
    person.find("[name=month]").send_keys("month 7")
    person.answer(**choices, **numbers, **{"risk/age": "50", "risk/years": "-1"})
    person.until("report")
    person.send()
    person.until_says("This was sent")
    (report,) = person.stored()
    for question in person.study.questions:
        mechanism_for(question).check(report.payloads[question.id])


NEWER = {
    "olh": (TOWN, {"town": "123456"}, "which stands for many choices"),
    "gaussian": (HEIGHT, {"height": "171.5"}, "How tall are you, in cm?"),
    "gaussian_record": (
        WAGE,
        {"wage/age": "30", "wage/years": "4", "wage/rate": "4"},
        "a noisy number for each of age, years, rate",
    ),
    "memoized": (HABIT, {"habit": "yes"}, "Did you ride a bicycle this week?"),
}


@pytest.mark.parametrize("name", NEWER)
def test_answer_reload_offline_again_withdraw(meet, name):
    question, answers, words = NEWER[name]
    person = meet(studies.document(question))
    other = person.duplicate()
    person.answer(**answers)
    person.until("report")
    shown = person.body
    assert words in person.text
    person.browser.refresh()
    person.until("report")
    assert person.body == shown
    chromium.set_offline(person.browser, True)
    person.send()
    person.until_says("It will leave when the collector can be reached")
    chromium.set_offline(person.browser, False)
    person.until_says("This was sent")
    (report,) = person.stored()
    assert report == Report.from_json(shown)
    mechanism_for(person.study.questions[0]).check(report.payloads[question["id"]])
    person.enter(other)
    person.answer(**answers)
    person.until_says("This browser has answered already")
    assert person.body == shown
    person.leave()
    person.click("#withdraw")
    person.until("gone")
    assert person.stored() == []


def test_a_kept_answer_is_repeated_in_the_next_version(meet):
    person = meet(studies.document(HABIT))
    assert "repeat the noisy answer that is kept here" in person.text
    person.answer(habit="yes")
    person.until("report")
    person.send()
    person.until_says("This was sent")
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 2})
    person.browser.refresh()
    person.until("ask")
    person.answer(habit="no")
    person.until("report")
    assert Report.from_json(person.body).version == 2
    person.send()
    person.until_says("This was sent")
    assert sorted(report.version for report in person.stored()) == [1, 2]
    spent, reports = person.ledger()
    assert (spent, len(reports)) == (["habit"], 2)
    person.click("#withdraw")
    person.until("gone")
    assert person.stored() == []
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 3})
    person.browser.refresh()
    person.until("gone")


def test_consent_is_to_the_report_that_is_shown(meet):
    """While it was shown another tab answered the next round: that report was not agreed to."""
    person = meet(studies.document(HABIT))
    person.answer(habit="yes")
    person.until("report")
    shown = person.body
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 2})
    person.enter(person.duplicate())
    person.answer(habit="yes")
    person.until("report")
    later = person.body
    person.leave()
    assert person.body == shown != later
    person.send()
    person._until(lambda: person.body == later)
    assert person.stored() == []
    assert [report["state"] for report in person.ledger()[1]] == ["held", "held"]
    person.send()
    person.until_says("This was sent")
    assert person.stored() == [Report.from_json(later)]


def test_of_several_questions_one_is_drawn_and_the_page_says_so(meet):
    person = meet(studies.document(TOWN, HEIGHT, studies.YES_NO, ask_one=True))
    assert "draws one of the 3 questions by chance" in person.text
    assert odds(2.0) in person.text
    person.answer(town="5", height="171", ever="yes")
    person.until("report")
    assert person.text.count("chance drew another question") == 2
    shown = person.body
    person.send()
    person.until_says("This was sent")
    (report,) = person.stored()
    assert report == Report.from_json(shown)
    assert len(report.payloads) == 1
    assert len(person.ledger()[0]) == 3


@pytest.fixture
def invitations(server, capsys):
    """A function study id, count → so many new invitations, without which it takes no more reports."""

    def invite(study_id, count):
        database = f"sqlite:///{server.database}"
        capsys.readouterr()
        assert main(["admin", "invite", study_id, "--count", str(count), "--database", database]) == 0
        return capsys.readouterr().out.split()

    return invite


def test_an_invitation_in_the_address_lets_one_report_in(meet, invitations):
    person = meet()
    first, second = invitations(person.study.id, 2)
    person = Participant(person.browser, person.server, person.study, first)
    person.answer(**ANSWERS)
    person.until("report")
    assert first not in person.body
    person.send()
    person.until_says("This was sent")
    assert len(person.stored()) == 1
    forget = {"origin": person.server.url, "storageTypes": "all"}
    person.browser.execute_cdp_cmd("Storage.clearDataForOrigin", forget)
    person = Participant(person.browser, person.server, person.study, first)
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    person.until_says("takes reports from invited people only")
    person.find("#invite input").send_keys(f" \u201c{second}\u200b\u201d ")
    person.click("#invite button")
    person.until_says("This was sent")
    assert len(person.stored()) == 2


def test_an_invitation_can_be_typed_with_the_answers(meet, invitations):
    person = meet()
    (code,) = invitations(person.study.id, 1)
    person.browser.refresh()
    person.until("ask")
    person.find("#answers .invitation").send_keys(code)
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    person.until_says("This was sent")
    assert len(person.stored()) == 1


def test_ids_that_look_like_the_pages_own_are_read_right(meet):
    """A form finds its fields by name and by id: no question's name may be another field's id."""
    names = ["q2", "q1", "answers", "invitation"]
    person = meet(studies.document(*[{**studies.NUMBER, "id": name} for name in names]))
    script = "return [...document.forms.answers.elements].map(({ id, name }) => [id, name])"
    fields = person.browser.execute_script(script)
    assert {name for _, name in fields} >= set(names)
    assert not {name for _, name in fields} & ({identity for identity, _ in fields} - {""})


def test_it_says_what_epsilon_means(meet):
    person = meet()
    for summary in person.browser.find_elements(By.CSS_SELECTOR, "#answers summary"):
        summary.click()
    said = person.text
    for question in person.study.questions:
        mechanism = mechanism_for(question)
        assert odds(float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)) in said
        assert mechanism.in_words() in said
    assert odds(float(person.study.epsilon)) in said
    assert TEXT["text"] in said


def test_what_the_study_says_is_text_and_not_markup(meet):
    person = meet()
    assert "Hours & <b>habits</b>" in person.text
    assert person.browser.find_elements(By.CSS_SELECTOR, "h1 b, main i") == []


def test_it_loads_nothing_from_elsewhere_and_reports_no_fault(meet):
    person = meet(EVERY_KIND)
    person.browser.get_log("browser")
    person.browser.refresh()
    person.until("ask")
    urls = {url for _, url in person.requests() if not url.startswith("data:")}
    modules = {url.partition("/assets/ldpkit/")[2] for url in urls} - {""}
    assert modules == set(modules_for(person.study))
    assert "mechanisms/olh.js" not in modules
    assert "priors.js" not in modules
    assert all(url.startswith(person.server.url + "/") for url in urls)
    assert person.browser.get_log("browser") == []


def refused(url):
    """(status, headers, body) of an answer that is an error."""
    with pytest.raises(HTTPError) as caught:
        urllib.request.urlopen(url)
    with caught.value as error:
        return error.code, error.headers, error.read()


def test_the_policy_allows_only_its_own_files(server, meet):
    person = meet()
    with urllib.request.urlopen(person.browser.current_url) as page:
        assert page.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    status, headers, body = refused(f"{server.url}/s/nothing")
    assert status == 404
    assert b"<h1>No such study</h1>" in body
    assert headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("path", ["participant.html", "../app.py", "ldpkit/package.json", "ldpkit/../cli.py"])
def test_other_files_are_not_served(server, path):
    status, _, _ = refused(f"{server.url}/assets/{path}")
    assert status == 404


def test_the_keyboard_is_enough(meet):
    person = meet()
    keys = person.browser.switch_to
    person.find("h2#ask").click()
    keys.active_element.send_keys(Keys.TAB, "3.5")
    assert keys.active_element.get_attribute("name") == "hours"
    keys.active_element.send_keys(Keys.TAB)
    assert keys.active_element.tag_name == "summary"
    keys.active_element.send_keys(Keys.TAB)
    assert keys.active_element.get_attribute("name") == "ever"
    keys.active_element.send_keys(Keys.SPACE, Keys.ENTER)
    person.until("report")
    assert keys.active_element.get_attribute("id") == "report"
    for expected in ("summary", "input"):
        keys.active_element.send_keys(Keys.TAB)
        assert keys.active_element.tag_name == expected
    keys.active_element.send_keys(Keys.SPACE, Keys.TAB)
    keys.active_element.send_keys(Keys.ENTER)
    person.until_says("This was sent")
    assert keys.active_element.get_attribute("id") == "report"


def test_everything_has_a_name_and_is_large_enough_to_touch(meet):
    person = meet(EVERY_KIND)
    nodes = person.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = [(node["role"]["value"], node["name"]["value"]) for node in nodes if "name" in node]
    assert {role for role, _ in named} >= NAMED_ROLES
    assert [role for role, name in named if role in NAMED_ROLES and not name] == []
    script = """
    return [...document.querySelectorAll("button, select, input, summary, label.choice")]
      .filter((part) => part.offsetParent && part.type !== "radio" && part.type !== "checkbox")
      .map((part) => part.getBoundingClientRect().height);
    """
    heights = person.browser.execute_script(script)
    assert len(heights) > 20
    assert min(heights) >= 44
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert person.browser.execute_script(wide) == 0


def luminance(colour):
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(pair):
    low, high = sorted(luminance(colour) for colour in pair)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_nothing_moves_when_asked(meet, scheme):
    person = meet(EVERY_KIND)
    features = [("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")]
    media = {"features": [{"name": name, "value": value} for name, value in features]}
    person.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    script = """
    const painted = (part) => {
      const colour = getComputedStyle(part).backgroundColor;
      return colour === "rgba(0, 0, 0, 0)" && part.parentElement ? painted(part.parentElement) : colour;
    };
    document.getElementById("problem").hidden = false;
    return ["h1", "p", ".hint", "label", "legend", "input", "button", "summary", "#problem"]
      .map((selector) => document.querySelector(selector))
      .map((part) => [part, getComputedStyle(part)])
      .map(([part, style]) => [style.color, painted(part), style.transitionDuration]);
    """
    found = person.browser.execute_script(script)
    person.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert min(contrast(pair) for *pair, _ in found) >= LEAST_CONTRAST
    assert {duration for *_, duration in found} == {"0s"}
    dark_paper = luminance(found[0][1]) < 0.2
    assert dark_paper == (scheme == "dark")
