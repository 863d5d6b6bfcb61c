"""The participant's page, opened over http at a network name, asks for https."""

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from schemas import Study
from tests.collector.conftest import Server
from tests.portable import chromium
from tests.portable.participant import SMALL

# Names that never lead anywhere (RFC 2606): here to this machine, which to a browser is another one.
NAME = "collect.example"
WORDS = Path(__file__).parents[2] / "collector" / "words"
LANGUAGES = ("en", "de", "zh")
WAIT_SECONDS = 20


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A browser for which that name is this machine."""
    rule = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    browser = chromium.start(tmp_path_factory.mktemp("elsewhere"), rule)
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("plain"))
    started.request("POST", "/v1/studies", Study(SMALL).document)
    yield started
    started.kill()


def hint(language):
    return json.loads((WORDS / f"{language}.json").read_text("utf-8"))["script.https"]


def opened(browser, address, language):
    """Return the page's text once it has one, and whether it asks."""
    browser.get("about:blank")
    browser.get(f"{address}/s/{SMALL['id']}?lang={language}")
    WebDriverWait(browser, WAIT_SECONDS).until(
        lambda _: (
            browser.execute_script("return document.readyState") == "complete"
            and text_of(browser).strip()
            and (hint(language) in text_of(browser) or asked(browser))
        )
    )
    return text_of(browser), asked(browser)


def text_of(browser):
    return browser.find_element(By.TAG_NAME, "body").text


def asked(browser):
    return [one for one in browser.find_elements(By.TAG_NAME, "input") if one.is_displayed()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_over_http_shows_the_https_hint_and_no_questions(elsewhere, collector, language):
    address = collector.url.replace("127.0.0.1", NAME)
    text, inputs = opened(elsewhere, address, language)
    assert not elsewhere.execute_script("return isSecureContext")
    assert hint(language) in text
    assert inputs == []
    assert len({hint(one) for one in LANGUAGES}) == len(LANGUAGES)


def test_page_on_localhost_over_http_asks_questions(elsewhere, collector):
    text, inputs = opened(elsewhere, collector.url, "en")
    assert elsewhere.execute_script("return isSecureContext")
    assert hint("en") not in text
    assert inputs
