"""The device in a third engine of browsers, WebKit: the core, its ledger, and the page that asks."""

import pytest
from selenium.webdriver.common.by import By

from schemas import Report, Study
from tests.collector.conftest import Server
from tests.portable import webkit
from tests.portable.browser_device import ANSWERS, CANONICAL, DOCUMENT, OPEN, reports_of_vectors
from tests.portable.chromium import attempt, run
from tests.portable.participant import SMALL, Participant
from tests.portable.site import Site


@pytest.fixture(scope="module")
def browser():
    with webkit.started() as browser:
        yield browser


@pytest.fixture
def page(browser):
    """The browser on a blank page of an origin that it has not seen."""
    site = Site()
    site.study = CANONICAL
    browser.get(f"{site.url}/pages/blank.html")
    yield browser
    site.close()


def test_webkit_makes_the_vectors_reports(page):
    for wanted, made in reports_of_vectors(page):
        assert made == wanted


def test_reload_keeps_the_report_and_rejects_a_second_answer(page):
    answer = OPEN + "return device.answer(study, { hours: 3.5, ever: 'yes' });"
    first = run(page, OPEN + "return device.answer(study, args[1]);", DOCUMENT, ANSWERS)
    page.refresh()
    status = OPEN + "const { answered, report } = await device.status(study); return { answered, report };"
    assert run(page, status, DOCUMENT) == {"answered": True, "report": first}
    assert attempt(page, answer, DOCUMENT)["error"] == "answered"


@pytest.fixture
def server(tmp_path):
    started = Server(tmp_path)
    yield started
    started.kill()


def test_a_person_answers_on_the_page(browser, server):
    study = Study({**SMALL, "id": "small"})
    server.request("POST", "/v1/studies", study.document)
    person = Participant(browser, server, study)
    person.answer(hours="3.5", ever="yes")
    person.until("report")
    body = Report.from_json(person.body)
    person.send()
    person.until_says("This was sent")
    assert person.stored() == [body]
    browser.refresh()
    person.until_says("This was sent")
    assert not browser.find_element(By.ID, "ask").is_displayed()
