"""examples/react: an app's state, page and requests never hold the true answer."""

import json
import shutil
import subprocess

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from schemas import Study
from tests import studies
from tests.collector.conftest import Server
from tests.portable import npm
from tests.portable.folder_site import served
from tests.portable.platforms import JAVASCRIPT, REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "react"
HOURS = Study(
    studies.document({**studies.NUMBER, "text": "How many hours?", "bounds": ["0", "80"]}, id="hours")
)
COLD = Study(
    studies.document({**studies.NUMBER, "bounds": ["-20", "40"], "model": {"name": "normal"}}, id="cold")
)
EVER = Study(studies.document({**studies.YES_NO, "text": "Have you ever?"}, id="ever"))
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
THANKED = 'document.body.classList.add("done")'
CONTROLLED = '<input name="answer" inputMode={keys} pattern={NUMBER} title={FORM} spellCheck={false} required'
KEPT = CONTROLLED + " value={kept} onChange={({ target }) => keep(target.value)}"


@pytest.fixture
def app(tmp_path):
    """(folder, origin, build): the example; build(change) bundles what `change` makes of its source."""
    npm.install()
    folder = tmp_path / "app"
    shutil.copytree(EXAMPLE, folder)
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "ldpkit").symlink_to(JAVASCRIPT)
    for name in ("react", "react-dom", "scheduler"):
        (modules / name).symlink_to(npm.PACKAGES / name)

    def build(change=str):
        source = folder / "StudyQuestion.jsx"
        source.write_text(change(source.read_text()))
        said = (folder / "main.jsx").read_text().splitlines()[0]
        options = said.split("npx esbuild main.jsx ")[1].split()
        command = [
            npm.ESBUILD,
            "main.jsx",
            *options,
            "--log-level=error",
            "--define:process.env.NODE_ENV='production'",
        ]
        subprocess.run(command, cwd=folder, check=True)

    with served(folder) as origin:
        yield folder, origin, build


@pytest.fixture
def visit(app, browser, tmp_path):
    """Opens the page for a study, until what it first shows."""
    folder, origin, _ = app
    server = Server(tmp_path, environment={"LDPKIT_CORS_ORIGINS": origin})
    for study in (HOURS, COLD, EVER, BITS):
        server.request("POST", "/v1/studies", study.document)

    def visit(study, first="fieldset"):
        page = (EXAMPLE / "index.html").read_text()
        page = page.replace("http://127.0.0.1:8000", server.url).replace('"affairs"', f'"{study.id}"')
        (folder / "index.html").write_text(page.replace('max-epsilon="1"', 'max-epsilon="4"'))
        browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        browser.get(origin)
        until(browser, first)
        browser.get_log("performance")
        return server

    yield visit
    server.kill()


def until(browser, selector, words=""):
    # A component replaces its parts as it goes on: one that is gone is looked for again.
    WebDriverWait(browser, 20, 0.02, ignored_exceptions=[StaleElementReferenceException]).until(
        lambda _: any(words in part.text for part in browser.find_elements(By.CSS_SELECTOR, selector))
    )


def press(browser):
    browser.find_element(By.CSS_SELECTOR, "#app button").click()


def press_twice(browser):
    ActionChains(browser).double_click(browser.find_element(By.CSS_SELECTOR, "#app button")).perform()


def reachable(browser):
    size, found = browser.execute_script(REACHABLE)
    # The form's parts, at least.
    assert size > 50
    return found


def requests(browser):
    messages = [entry["message"] for entry in browser.get_log("performance")]
    sent = [text for text in messages if "Network.requestWillBeSent" in text]
    return [json.loads(text)["message"]["params"]["request"] for text in sent if '"request":' in text]


@pytest.mark.slow
def test_typed_number_is_only_in_its_input(app, visit, browser):
    app[2]()
    server = visit(HOURS)
    browser.find_element(By.CSS_SELECTOR, "#app input").send_keys(ENTERED)
    looks = [reachable(browser)]
    press(browser)
    until(browser, "pre", "ldpkit.report/1")
    body = browser.find_element(By.CSS_SELECTOR, "pre").text
    looks.append(reachable(browser))
    press(browser)
    until(browser, "[role=status]", "It was sent")
    looks.append(reachable(browser))
    assert not [text for look in looks for text in look if ENTERED in text]
    asked = requests(browser)
    assert [one.get("postData") for one in asked if one["method"] == "PUT"] == [body]
    assert not [one for one in asked if ENTERED in json.dumps(one)]
    assert [line for line in server.read("/v1/studies/hours/export").splitlines() if "payloads" in line]
    browser.refresh()
    until(browser, "[role=status]", "It was sent")


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["7,5", "7.5"])
def test_decimal_comma_of_a_phone_is_accepted(app, visit, browser, typed):
    """A decimal keypad offers only a comma in some languages."""
    app[2]()
    visit(HOURS)
    field = browser.find_element(By.CSS_SELECTOR, "#app input")
    assert field.get_attribute("inputmode") == "decimal"
    field.send_keys(typed)
    press(browser)
    until(browser, "pre", "ldpkit.report/1")


@pytest.mark.slow
def test_a_number_below_0_is_typed_with_a_minus(app, visit, browser):
    app[2]()
    visit(COLD)
    field = browser.find_element(By.CSS_SELECTOR, "#app input")
    assert field.get_attribute("inputmode") == "text"
    field.send_keys("-7,5")
    press(browser)
    until(browser, "pre", "ldpkit.report/1")


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["1.234,5", "1,234", "1.234", "-12,345", "7,5,5", "seven", "1e3", ".", ","])
def test_invalid_number_is_not_read_as_another_number(app, visit, browser, typed):
    """A number field in an English browser drops the comma: 7,5 becomes 75."""
    app[2]()
    visit(HOURS)
    field = browser.find_element(By.CSS_SELECTOR, "#app input")
    field.send_keys(typed)
    assert field.get_property("value") == typed
    assert browser.execute_script("return arguments[0].validity.patternMismatch", field)


@pytest.mark.slow
def test_double_click_answers_and_sends_once_without_an_error(app, visit, browser):
    main = app[0] / "main.jsx"
    source = main.read_text()
    assert THANKED in source
    main.write_text(source.replace(THANKED, "(window.thanked = (window.thanked ?? 0) + 1)"))
    app[2]()
    visit(HOURS)
    browser.find_element(By.CSS_SELECTOR, "#app input").send_keys(ENTERED)
    press_twice(browser)
    until(browser, "pre", "ldpkit.report/1")
    assert not browser.find_elements(By.CSS_SELECTOR, "[role=alert]")
    press_twice(browser)
    until(browser, "[role=status]", "It was sent")
    assert not browser.find_elements(By.CSS_SELECTOR, "[role=alert]")
    assert browser.execute_script("return window.thanked") == 1


@pytest.mark.slow
def test_form_disables_autocomplete(app, visit, browser):
    """Firefox restores the choice after a reload unless the form forbids it."""
    app[2]()
    visit(EVER)
    assert browser.find_element(By.CSS_SELECTOR, "#app form").get_attribute("autocomplete") == "off"


@pytest.mark.slow
def test_controlled_input_is_detected_as_a_leak(app, visit, browser):
    """Shows that `test_typed_number_is_only_in_its_input` detects the fault that the example avoids."""

    def control(source):
        assert CONTROLLED in source
        state = "const [low, high] ="
        return source.replace(CONTROLLED, KEPT).replace(
            state, f'const [kept, keep] = useState("");\n  {state}', 1
        )

    app[2](control)
    visit(HOURS)
    browser.find_element(By.CSS_SELECTOR, "#app input").send_keys(ENTERED)
    assert [text for text in reachable(browser) if ENTERED in text]


@pytest.mark.slow
def test_picked_choice_leaves_no_trace(app, visit, browser):
    app[2]()
    looks = []
    for answer in EVER.questions[0].choices:
        visit(EVER)
        browser.find_element(By.CSS_SELECTOR, f"input[value={answer}]").click()
        looks.append([text for text in reachable(browser) if not is_time(text)])
    assert looks[0] == looks[1]


def is_time(text):
    """React counts milliseconds."""
    return text.replace(".", "", 1).isdigit()


@pytest.mark.slow
def test_unsupported_study_shows_an_alert(app, visit, browser):
    app[2]()
    visit(BITS, "[role=alert]")
    assert "asks one number or choice, once" in browser.find_element(By.CSS_SELECTOR, "#app").text
