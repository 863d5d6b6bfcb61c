"""One browser for each test module, and a site of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.portable import chromium
from tests.portable.site import Site


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    started = chromium.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


@pytest.fixture
def site() -> Iterator[Site]:
    """A new origin each time, so that no test finds another one's ledger."""
    opened = Site()
    yield opened
    opened.close()


@pytest.fixture
def page(browser: webdriver.Chrome, site: Site) -> webdriver.Chrome:
    """The browser on a blank page of the site."""
    browser.get(f"{site.url}/pages/blank.html")
    return browser
