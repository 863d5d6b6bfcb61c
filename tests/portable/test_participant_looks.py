"""The participant's page as people see, hear and touch it, and what it may load."""

import re
import urllib.request
from urllib.error import HTTPError

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from collector.views.participant import CONTENT_SECURITY_POLICY
from ldp_client import mechanism_for
from ldp_client.explain import in_words, odds
from tests import studies
from tests.portable.participant import EVERY_KIND, TEXT

LEAST_CONTRAST = 4.5
NAMED_ROLES = {"button", "combobox", "radio", "region", "textbox"}


def test_question_ids_equal_to_page_ids_work(meet):
    """A form finds its fields by name and by id: no question's name may be another field's id."""
    names = ["q2", "q1", "answers", "invitation"]
    person = meet(studies.document(*[{**studies.NUMBER, "id": name} for name in names]))
    script = "return [...document.forms.answers.elements].map(({ id, name }) => [id, name])"
    fields = person.browser.execute_script(script)
    assert {name for _, name in fields} >= set(names)
    assert not {name for _, name in fields} & ({identity for identity, _ in fields} - {""})


def test_page_explains_epsilon(meet):
    person = meet()
    for summary in person.browser.find_elements(By.CSS_SELECTOR, "#answers summary"):
        summary.click()
    said = person.text
    for question in person.study.questions:
        mechanism = mechanism_for(question)
        assert odds(float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)) in said
        assert in_words(mechanism) in said
    assert odds(float(person.study.epsilon)) in said
    assert TEXT["text"] in said


def test_study_texts_are_escaped(meet):
    person = meet()
    assert "Hours & <b>habits</b>" in person.text
    assert person.browser.find_elements(By.CSS_SELECTOR, "h1 b, main i") == []


def test_noise_can_be_tried_with_invented_answers(meet):
    person = meet(EVERY_KIND)
    tries = person.browser.find_elements(By.CSS_SELECTOR, ".try")
    assert len(tries) == len(person.study.questions)
    person.requests()
    for button in tries:
        button.find_element(By.XPATH, "../summary").click()
        button.click()
        told = button.find_element(By.XPATH, "following-sibling::div")
        assert "Ten reports of the invented answer" in told.text
        lines = [line.text for line in told.find_elements(By.TAG_NAME, "li")]
        assert len(lines) == 10
        assert all(lines)
        if button.get_attribute("value") == "hours":
            assert len(set(lines)) > 5
    assert person.ledger() == ([], [])
    assert person.requests() == []


def test_page_loads_only_its_own_files_without_errors(meet):
    person = meet(EVERY_KIND)
    person.browser.get_log("browser")
    person.browser.refresh()
    person.until("ask")
    urls = {url for _, url in person.requests() if not url.startswith("data:")}
    files = sorted(url.removeprefix(person.server.url).partition("?")[0] for url in urls)
    assert files == ["/assets/page.js", "/assets/participant.css", f"/s/{person.study.id}"]
    assert person.browser.get_log("browser") == []


def refused(url):
    """(status, headers, body) of an answer that is an error."""
    with pytest.raises(HTTPError) as caught:
        urllib.request.urlopen(url)
    with caught.value as error:
        return error.code, error.headers, error.read()


def test_the_policy_allows_only_its_own_files(server, meet):
    person = meet()
    # No other site shows it in a frame, unless the collector lists that.
    policy = CONTENT_SECURITY_POLICY.format(frame_ancestors="'none'", connected="'self'")
    with urllib.request.urlopen(person.browser.current_url) as page:
        assert page.headers["Content-Security-Policy"] == policy
    status, headers, body = refused(f"{server.url}/s/nothing")
    assert status == 404
    assert b"<h1>No such study</h1>" in body
    assert headers["Content-Security-Policy"] == policy
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("path", ["participant.html", "../app.py", "ldpkit/package.json", "ldpkit/../cli.py"])
def test_other_files_are_not_served(server, path):
    status, _, _ = refused(f"{server.url}/assets/{path}")
    assert status == 404


def test_page_works_with_the_keyboard_only(meet):
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
    person.until("check")
    assert keys.active_element.get_attribute("id") == "check"
    keys.active_element.send_keys(Keys.TAB)
    keys.active_element.send_keys(Keys.ENTER)
    person.until("report")
    assert keys.active_element.get_attribute("id") == "report"
    for expected in ("summary", "input"):
        keys.active_element.send_keys(Keys.TAB)
        assert keys.active_element.tag_name == expected
    keys.active_element.send_keys(Keys.SPACE, Keys.TAB)
    keys.active_element.send_keys(Keys.ENTER)
    person.until_says("This was sent")
    assert keys.active_element.get_attribute("id") == "report"


def test_controls_have_names_and_touch_size(meet):
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
def test_text_has_contrast_and_reduced_motion_is_respected(meet, scheme):
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
