"""examples/web and examples/react: neither the site nor the app ever holds the answer."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from threading import Thread

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from werkzeug.serving import WSGIRequestHandler, make_server

from schemas import Report, Study
from tests import studies
from tests.kit.collectors import Server
from tests.portable import npm
from tests.portable.folder_site import served
from tests.portable.platforms import JAVASCRIPT, REPOSITORY

pytestmark = pytest.mark.slow
EVER = Study(studies.document({**studies.YES_NO, "text": "Have you ever?"}))
SECOND = Study(studies.document({**studies.YES_NO, "id": "still", "text": "Do you still?"}, version=2))
CHOICE = Study({**studies.document(studies.CHOICE), "id": "choice"})
AWAY = "window.tried = 0; window.fetch = async () => { tried += 1; throw new TypeError('away'); };"


class Quiet(WSGIRequestHandler):
    def log(self, *_):
        """Say nothing."""


@pytest.fixture
def site():
    """(the app's address, a function that names its collector, what was asked of the app)."""
    spec = importlib.util.spec_from_file_location("web_app", REPOSITORY / "examples" / "web" / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    asked, apps = [], []

    def noting(environ, start_response):
        asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING")))
        return apps[-1](environ, start_response)

    server = make_server("127.0.0.1", 0, noting, request_handler=Quiet)
    thread = Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    yield (
        f"http://127.0.0.1:{server.server_port}",
        lambda url, study=EVER: apps.append(module.create_app(url, study.id, "2")),
        asked,
    )
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def collector(site, tmp_path):
    started = Server(tmp_path, environment={"LDPKIT_CORS_ORIGINS": site[0]})
    for study in (EVER, CHOICE):
        started.request("POST", "/v1/studies", study.document)
    yield started
    started.kill()


def until(browser, condition):
    # A component replaces its parts as it goes on: one that is gone is looked for again.
    wait = WebDriverWait(browser, 20, 0.02, ignored_exceptions=[StaleElementReferenceException])
    wait.until(lambda _: condition())


def find(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def answer(browser, address, given):
    """Until the report of it is shown, which is returned."""
    browser.get(address)
    until(browser, find(browser, "#ask").is_displayed)
    find(browser, f"input[value={given}]").click()
    find(browser, "#ask button").click()
    until(browser, lambda: not find(browser, "#ask").is_displayed())
    assert find(browser, "#send").is_displayed()
    return find(browser, "#report").text


@pytest.mark.attack(8)
def test_visitor_of_a_site_answers_and_the_site_sees_no_answer(browser, site, collector):
    """A site that asks reads the answer, or has a report sent that its visitor did not see."""
    address, serve, asked = site
    serve(collector.url)
    shown = answer(browser, address, "yes")
    assert find(browser, "#ask").get_attribute("autocomplete") == "off"
    first = browser.current_window_handle
    # In another tab the next version is answered meanwhile: its report is shown before it is sent.
    assert collector.request("POST", "/v1/studies", SECOND.document) == 201
    browser.switch_to.new_window("tab")
    other = answer(browser, address, "no")
    browser.close()
    browser.switch_to.window(first)
    assert find(browser, "#report").text == shown != other
    find(browser, "#send button").click()
    until(browser, lambda: find(browser, "#report").text == other)
    assert "payloads" not in collector.read(f"/v1/studies/{EVER.id}/export")
    # What could not be sent is sent at the next visit.
    browser.execute_script(AWAY)
    ActionChains(browser).double_click(find(browser, "#send button")).perform()
    until(browser, lambda: browser.execute_script("return tried > 0"))
    browser.get(address)
    until(browser, lambda: "It was sent" in find(browser, "#said").text)
    lines = collector.read(f"/v1/studies/{EVER.id}/export").splitlines()
    (stored,) = [line for line in lines if "payloads" in json.loads(line)]
    assert Report.from_json(stored) == Report.from_json(other)
    # Of the visitor's only the page and the library's files, by their names.
    assert {(method, query) for method, _, query in asked} == {("GET", "")}
    files = {path for _, path, _ in asked} - {"/", "/question.js"}
    assert all((REPOSITORY / "js" / path.removeprefix("/ldpkit/")).is_file() for path in files)


def test_closed_unlisted_and_other_studies_are_not_asked(browser, site, collector):
    address, serve, _ = site
    serve(collector.url, CHOICE)
    browser.get(address)
    until(browser, lambda: "one yes/no question" in find(browser, "#said").text)
    serve(collector.url)
    browser.get(address)
    until(browser, find(browser, "#ask").is_displayed)
    # Also on a page that was opened before the study was closed.
    collector.request("POST", f"/v1/studies/{EVER.id}/close")
    find(browser, "input[value=yes]").click()
    find(browser, "#ask button").click()
    until(browser, lambda: find(browser, "#said").text == "closed: takes no reports")
    assert not find(browser, "#send").is_displayed()
    browser.get(address.replace("127.0.0.1", "localhost"))
    until(browser, lambda: find(browser, "#said").text == "Failed to fetch")
    assert not find(browser, "#ask").is_displayed()


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
CONTROLLED = '<input name="answer" inputMode={keys} pattern={NUMBER} title={FORM} spellCheck={false} required'
KEPT = CONTROLLED + " value={kept} onChange={({ target }) => keep(target.value)}"
STATE = "const [low, high] ="


@pytest.fixture
def react(browser, tmp_path):
    """A function that bundles what `change` makes of the example, and opens it for a study."""
    npm.install()
    folder = tmp_path / "app"
    shutil.copytree(EXAMPLE, folder)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "ldpkit").symlink_to(JAVASCRIPT)
    for name in ("react", "react-dom", "scheduler"):
        (folder / "node_modules" / name).symlink_to(npm.PACKAGES / name)
    options = (folder / "main.jsx").read_text().splitlines()[0].split("npx esbuild main.jsx ")[1].split()
    production = ["--log-level=error", "--define:process.env.NODE_ENV='production'"]
    with served(folder) as origin:
        server = Server(tmp_path, environment={"LDPKIT_CORS_ORIGINS": origin})
        for study in (HOURS, BITS):
            server.request("POST", "/v1/studies", study.document)

        def opened(study, change=str):
            (folder / "StudyQuestion.jsx").write_text(change((EXAMPLE / "StudyQuestion.jsx").read_text()))
            subprocess.run([npm.ESBUILD, "main.jsx", *options, *production], cwd=folder, check=True)
            page = (EXAMPLE / "index.html").read_text().replace("http://127.0.0.1:8000", server.url)
            page = page.replace('"affairs"', f'"{study.id}"').replace('max-epsilon="1"', 'max-epsilon="4"')
            (folder / "index.html").write_text(page)
            browser.get(origin)
            return server

        yield opened
        server.kill()


def shows(browser, selector, words=""):
    parts = browser.find_elements(By.CSS_SELECTOR, selector)
    return any(words in part.text for part in parts)


def reachable(browser):
    size, found = browser.execute_script(REACHABLE)
    # The form's parts, at least.
    assert size > 50
    return [text for text in found if ENTERED in text]


@pytest.mark.attack(8)
def test_app_state_never_holds_the_typed_number(react, browser):
    """A library of an app, or its error reports, read the answer from the app's state."""
    server = react(HOURS)
    until(browser, lambda: shows(browser, "fieldset"))
    field = find(browser, "#app input")
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
    ActionChains(browser).double_click(find(browser, "#app button")).perform()
    until(browser, lambda: shows(browser, "pre", "ldpkit.report/1"))
    body = find(browser, "pre").text
    looks += reachable(browser)
    ActionChains(browser).double_click(find(browser, "#app button")).perform()
    until(browser, lambda: shows(browser, "[role=status]", "It was sent"))
    assert not browser.find_elements(By.CSS_SELECTOR, "[role=alert]")
    assert looks + reachable(browser) == []
    lines = server.read("/v1/studies/hours/export").splitlines()
    (stored,) = [line for line in lines if "payloads" in json.loads(line)]
    assert Report.from_json(stored) == Report.from_json(body)


def test_input_that_react_controls_is_found_to_leak(react, browser):
    """The fault that the example avoids. A study that it does not support shows an alert."""

    def control(source):
        assert CONTROLLED in source
        kept = f'const [kept, keep] = useState("");\n  {STATE}'
        return source.replace(CONTROLLED, KEPT).replace(STATE, kept, 1)

    react(HOURS, control)
    until(browser, lambda: shows(browser, "fieldset"))
    find(browser, "#app input").send_keys(ENTERED)
    assert reachable(browser) != []
    react(BITS)
    until(browser, lambda: shows(browser, "[role=alert]", "asks one number or choice, once"))
