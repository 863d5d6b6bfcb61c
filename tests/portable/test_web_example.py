"""examples/web: a visitor of another site answers; the site's own server sees neither answer nor report."""

from __future__ import annotations

import importlib.util
import json
from threading import Thread

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from werkzeug.serving import WSGIRequestHandler, make_server

from schemas import Report, Study
from tests import studies
from tests.collector.conftest import Server
from tests.portable.platforms import REPOSITORY

STUDY = Study(studies.document({**studies.YES_NO, "text": "Have you ever?"}))
CHOICE = Study({**studies.document(studies.CHOICE), "id": "choice"})

AWAY = "window.tried = 0; window.fetch = async () => { tried += 1; throw new TypeError('away'); };"

# How often the page shows anew where it is: once for each click that is heeded.
COUNTING = """
window.shown = 0;
const find = document.getElementById;
document.getElementById = (name) => {
  if (name === "send") shown += 1;
  return find.call(document, name);
};
"""
SECOND = Study(studies.document({**studies.YES_NO, "id": "still", "text": "Do you still?"}, version=2))


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
        return apps[0](environ, start_response)

    server = make_server("127.0.0.1", 0, noting, request_handler=Quiet)
    thread = Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    yield (
        f"http://127.0.0.1:{server.server_port}",
        lambda url, study=STUDY, most="1": apps.append(module.create_app(url, study.id, most)),
        asked,
    )
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def collector(site, tmp_path):
    started = Server(tmp_path, environment={"LDPKIT_CORS_ORIGINS": site[0]})
    started.request("POST", "/v1/studies", STUDY.document)
    yield started
    started.kill()


@pytest.mark.slow
def test_visitor_answers_and_the_site_sees_no_answer(browser, site, collector):
    address, serve, asked = site
    serve(collector.url)
    browser.get(address)
    wait = WebDriverWait(browser, 20)
    wait.until(lambda _: browser.find_element(By.ID, "ask").is_displayed())
    assert "73.2 % sure" in browser.find_element(By.ID, "odds").text
    assert browser.find_element(By.ID, "text").text == "Have you ever?"
    browser.find_element(By.CSS_SELECTOR, "input[value=yes]").click()
    browser.find_element(By.CSS_SELECTOR, "#ask button").click()
    wait.until(lambda _: browser.find_element(By.ID, "send").is_displayed())
    shown = browser.find_element(By.ID, "report").text
    browser.get(address)
    wait.until(lambda _: browser.find_element(By.ID, "send").is_displayed())
    assert browser.find_element(By.ID, "report").text == shown
    browser.find_element(By.CSS_SELECTOR, "#send button").click()
    wait.until(lambda _: "It was sent" in browser.find_element(By.ID, "said").text)
    lines = collector.read(f"/v1/studies/{STUDY.id}/export").splitlines()
    (stored,) = [line for line in lines if "payloads" in json.loads(line)]
    assert Report.from_json(stored) == Report.from_json(shown)
    assert not browser.find_element(By.ID, "ask").is_displayed()
    # Of the visitor's only the page and the library's files, by their names.
    assert {method for method, _, _ in asked} == {"GET"}
    assert not [query for _, _, query in asked if query]
    files = {path for _, path, _ in asked} - {"/", "/question.js"}
    assert files
    assert all((REPOSITORY / "js" / path.removeprefix("/ldpkit/")).is_file() for path in files)


@pytest.mark.slow
def test_form_disables_autocomplete(browser, site, collector):
    """Firefox restores the choice after a reload unless the form forbids it."""
    address, serve, _ = site
    serve(collector.url)
    browser.get(address)
    assert browser.find_element(By.ID, "ask").get_attribute("autocomplete") == "off"


@pytest.mark.slow
def test_a_double_click_on_consent_sends_once(browser, site, collector):
    address, serve, _ = site
    serve(collector.url)
    answer(browser, address, "yes")
    browser.execute_script(COUNTING)
    ActionChains(browser).double_click(browser.find_element(By.CSS_SELECTOR, "#send button")).perform()
    said = browser.find_element(By.ID, "said")
    WebDriverWait(browser, 20).until(lambda _: "It was sent" in said.text)
    assert browser.execute_script("return shown") == 1


@pytest.mark.slow
def test_consent_is_to_the_report_that_is_shown(browser, site, collector):
    """In another tab the next version was answered meanwhile: its report is shown before it is sent."""
    address, serve, _ = site
    serve(collector.url, most="2")
    answer(browser, address, "yes")
    first, shown = browser.current_window_handle, browser.find_element(By.ID, "report").text
    assert collector.request("POST", "/v1/studies", SECOND.document) == 201
    browser.switch_to.new_window("tab")
    answer(browser, address, "no")
    other = browser.find_element(By.ID, "report").text
    browser.close()
    browser.switch_to.window(first)
    report = browser.find_element(By.ID, "report")
    assert report.text == shown != other
    browser.find_element(By.CSS_SELECTOR, "#send button").click()
    wait = WebDriverWait(browser, 20)
    wait.until(lambda _: report.text == other)
    assert browser.find_element(By.ID, "send").is_displayed()
    assert "payloads" not in collector.read(f"/v1/studies/{STUDY.id}/export")
    browser.find_element(By.CSS_SELECTOR, "#send button").click()
    wait.until(lambda _: "It was sent" in browser.find_element(By.ID, "said").text)


def answer(browser, address, given):
    """Until the report of it is shown."""
    browser.get(address)
    wait = WebDriverWait(browser, 20)
    wait.until(lambda _: browser.find_element(By.ID, "ask").is_displayed())
    browser.find_element(By.CSS_SELECTOR, f"input[value={given}]").click()
    browser.find_element(By.CSS_SELECTOR, "#ask button").click()
    # The report of an earlier version is shown beside the question.
    wait.until(lambda _: not browser.find_element(By.ID, "ask").is_displayed())
    assert browser.find_element(By.ID, "send").is_displayed()


@pytest.mark.slow
def test_waiting_report_is_sent_at_the_next_visit(browser, site, collector):
    address, serve, _ = site
    serve(collector.url)
    browser.get(address)
    wait = WebDriverWait(browser, 20)
    wait.until(lambda _: browser.find_element(By.ID, "ask").is_displayed())
    browser.find_element(By.CSS_SELECTOR, "input[value=yes]").click()
    browser.find_element(By.CSS_SELECTOR, "#ask button").click()
    wait.until(lambda _: browser.find_element(By.ID, "send").is_displayed())
    browser.execute_script(AWAY)
    browser.find_element(By.CSS_SELECTOR, "#send button").click()
    wait.until(lambda _: browser.execute_script("return tried > 0"))
    browser.get(address)
    wait.until(lambda _: "It was sent" in browser.find_element(By.ID, "said").text)


@pytest.mark.slow
def test_closed_study_is_not_asked_or_answered(browser, site, collector):
    """This includes a page that was opened before the close."""
    address, serve, _ = site
    serve(collector.url)
    browser.get(address)
    wait = WebDriverWait(browser, 20)
    wait.until(lambda _: browser.find_element(By.ID, "ask").is_displayed())
    collector.request("POST", f"/v1/studies/{STUDY.id}/close")
    browser.find_element(By.CSS_SELECTOR, "input[value=yes]").click()
    browser.find_element(By.CSS_SELECTOR, "#ask button").click()
    said = browser.find_element(By.ID, "said")
    wait.until(lambda _: said.text == "closed: takes no reports")
    assert not browser.find_element(By.ID, "send").is_displayed()
    browser.get(address)
    wait.until(lambda _: browser.find_element(By.ID, "said").text == "closed: takes no reports")
    assert not browser.find_element(By.ID, "ask").is_displayed()


@pytest.mark.slow
def test_unlisted_site_shows_an_error(browser, site, collector):
    address, serve, _ = site
    serve(collector.url)
    other = address.replace("127.0.0.1", "localhost")
    browser.get(other)
    said = browser.find_element(By.ID, "said")
    WebDriverWait(browser, 20).until(lambda _: said.text)
    assert said.text == "Failed to fetch"
    assert not browser.find_element(By.ID, "ask").is_displayed()


@pytest.mark.slow
def test_unsupported_study_is_not_asked(browser, site, collector):
    address, serve, _ = site
    assert collector.request("POST", "/v1/studies", CHOICE.document) == 201
    serve(collector.url, CHOICE)
    browser.get(address)
    said = browser.find_element(By.ID, "said")
    WebDriverWait(browser, 20).until(lambda _: said.text)
    assert "one yes/no question" in said.text
    assert not browser.find_element(By.ID, "ask").is_displayed()
