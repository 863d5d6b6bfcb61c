"""examples/web and examples/react: neither the site nor the app ever holds the answer."""

import importlib.util
import shutil
import subprocess

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from schemas import Report, Study
from tests import studies
from tests.kit.collectors import Server
from tests.kit.serving import served
from tests.portable import npm
from tests.portable.chromium import Site, forget
from tests.portable.npm import JAVASCRIPT, REPOSITORY
from tests.portable.participant import Participant

pytestmark = pytest.mark.slow
EVER = Study(studies.document({**studies.YES_NO, "text": "Have you ever?"}))
SECOND = Study(studies.document({**studies.YES_NO, "id": "still", "text": "Do you still?"}, version=2))
AWAY = "window.tried = 0; window.fetch = async () => { tried += 1; throw new TypeError('away'); };"


@pytest.mark.attack(8)
def test_flask_site_shows_a_study_and_sees_no_answer(browser, tmp_path):
    """A site that asks reads the answer, or learns more than that its page was opened."""
    spec = importlib.util.spec_from_file_location("web_app", REPOSITORY / "examples" / "web" / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    asked, apps = [], []

    def noting(environ, start_response):
        asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING")))
        return apps[0](environ, start_response)

    with (
        served(noting) as address,
        Server(tmp_path, environment={"LDPKIT_FRAME_ANCESTORS": address}) as collector,
    ):
        collector.request("POST", "/v1/studies", EVER.document)
        apps.append(module.create_app(collector.url, EVER.id))
        browser.get(address)
        person = Participant(browser, collector, EVER)
        state = "return document.querySelector('ldp-study').state"
        person.wait_until(lambda: browser.execute_script(state) == "ready")
        # The app's Content-Security-Policy lets the element be as high as it says.
        assert person.find("ldp-study").size["height"] == 42 * 16
        frame = person.find("ldp-study").shadow_root.find_element(By.CSS_SELECTOR, "iframe")
        browser.switch_to.frame(frame)
        person.answer(ever="yes")
        person.until("report")
        person.send()
        browser.switch_to.default_content()
        person.wait_until(lambda: browser.execute_script(state) == "done")
        assert len(person.stored()) == 1
        assert set(asked) == {("GET", "/", "")}


EXAMPLE = REPOSITORY / "examples" / "react"
HOURS = Study(
    studies.document({**studies.NUMBER, "text": "How many hours?", "bounds": ["-20", "80"]}, id="hours")
)
BITS = Study(studies.document(studies.MEMOIZED_BITS, id="bits"))
ENTERED = "37.0625"
# All strings and numbers that the app's own objects lead to, and the page's text; not what stands in inputs.
REACHABLE = """
const container = document.getElementById("app");
const root = container[Object.keys(container).find((key) => key.startsWith("__reactContainer$"))];
const seen = new Set();
const found = [document.documentElement.outerHTML, JSON.stringify({ ...localStorage, ...sessionStorage })];
const left = [root.stateNode];
while (left.length) {
  const one = left.pop();
  if (typeof one === "string" || typeof one === "number") found.push(String(one));
  if (Object(one) !== one || one instanceof Node || one === window || seen.has(one)) continue;
  seen.add(one);
  left.push(...(one instanceof Map || one instanceof Set ? one.values() : Object.values(one)));
}
return [seen.size, found.sort()];
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    npm.install()
    folder = tmp_path_factory.mktemp("react") / "app"
    shutil.copytree(EXAMPLE, folder)
    (folder / "node_modules").mkdir()
    for name in ("react", "react-dom", "scheduler"):
        (folder / "node_modules" / name).symlink_to(npm.PACKAGES / name)
    (folder / "node_modules" / "ldpkit").symlink_to(JAVASCRIPT)
    options = (folder / "main.jsx").read_text().splitlines()[0].split("npx esbuild main.jsx ")[1].split()
    more = ["--log-level=error", "--define:process.env.NODE_ENV='production'", "--preserve-symlinks"]
    subprocess.run([npm.ESBUILD, "main.jsx", *options, *more], cwd=folder, check=True)
    with Site(folder) as site, Server(folder.parent, environment={"LDPKIT_CORS_ORIGINS": site.url}) as server:
        yield site, server, folder / "index.html"


@pytest.fixture
def react(browser, built):
    """A function that publishes a study and opens the example for it. It returns a person there."""
    site, server, page = built

    def opened(study):
        server.request("POST", "/v1/studies", study.document)
        text = (EXAMPLE / "index.html").read_text().replace("http://127.0.0.1:8000", server.url)
        text = text.replace('"affairs"', f'"{study.id}"').replace('max-epsilon="1"', 'max-epsilon="4"')
        page.write_text(text)
        forget(browser, site.url)
        browser.get(f"{site.url}/index.html")
        return Participant(browser, server, study)

    return opened


def until_shown(person, selector, words=""):
    find = person.browser.find_elements
    person.wait_until(lambda: any(words in part.text for part in find(By.CSS_SELECTOR, selector)))


def reachable(browser):
    size, found = browser.execute_script(REACHABLE)
    # The form's parts, at least.
    assert size > 50
    return [text for text in found if ENTERED in text]


@pytest.mark.attack(8)
def test_app_state_never_holds_the_typed_number(react, browser):
    """A library of an app, or its error reports, read the answer from the app's state."""
    person = react(BITS)
    until_shown(person, "[role=alert]", "asks numbers and choices, once")
    person = react(HOURS)
    until_shown(person, "fieldset")
    field = person.find("#app input")
    for typed in ("1.234,5", "1,234", "1.234", "7,5,5", "seven", "1e3", "."):
        field.clear()
        field.send_keys(typed)
        assert browser.execute_script("return arguments[0].validity.patternMismatch", field), typed
    field.clear()
    # The comma of a phone's keypad is one before a fraction.
    field.send_keys(ENTERED.replace(".", ","))
    assert not browser.execute_script("return arguments[0].validity.patternMismatch", field)
    field.clear()
    field.send_keys(ENTERED)
    looks = reachable(browser)
    ActionChains(browser).double_click(person.find("#app button")).perform()
    until_shown(person, "pre", "ldpkit.report/1")
    body = person.find("pre").text
    looks += reachable(browser)
    ActionChains(browser).double_click(person.find("#app button")).perform()
    until_shown(person, "[role=status]", "It was sent")
    assert not browser.find_elements(By.CSS_SELECTOR, "[role=alert]")
    assert looks + reachable(browser) == []
    assert person.stored() == [Report.from_json(body)]


def answer(person, given):
    """Answer a yes/no question. Return the report that is shown."""
    until_shown(person, "fieldset")
    person.find(f"input[value={given}]").click()
    person.find("#app button").click()
    until_shown(person, "pre", "ldpkit.report/1")
    return person.find("pre").text


@pytest.mark.attack(8)
def test_report_that_the_person_saw_is_sent_after_two_tabs_and_a_lost_network(react, browser):
    """An app sends a report that its user did not see, or sends two."""
    person = react(EVER)
    address, first = browser.current_url, browser.current_window_handle
    shown = answer(person, "yes")
    # In another tab the next version is answered meanwhile: its report is shown before it is sent.
    assert person.server.request("POST", "/v1/studies", SECOND.document) == 201
    browser.switch_to.new_window("tab")
    browser.get(address)
    other = answer(person, "no")
    browser.close()
    browser.switch_to.window(first)
    assert person.find("pre").text == shown != other
    person.find("#app button").click()
    until_shown(person, "pre", other)
    assert person.stored() == []
    # What could not be sent is sent at the next visit.
    browser.execute_script(AWAY)
    ActionChains(browser).double_click(person.find("#app button")).perform()
    person.wait_until(lambda: browser.execute_script("return tried > 0"))
    until_shown(person, "[role=status]", "could not leave")
    browser.get(address)
    until_shown(person, "[role=status]", "It was sent")
    assert person.stored() == [Report.from_json(other)]
