"""The report page in a real browser, at phone and desktop width."""

import re

import pytest

from tests.browser.pages import PARAMETERS, report_page
from tests.portable import chromium


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = chromium.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def set_width(browser, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 900])
def test_the_page_fits_its_width_and_loads_nothing(browser, page, width):
    set_width(browser, width)
    browser.get(page)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert browser.get_log("browser") == []


def test_phone_width_shows_medians_and_intervals(browser, page):
    set_width(browser, 360)
    browser.get(page)
    cells = browser.find_elements("css selector", "section > .scroll td:nth-child(3)")
    assert len(cells) == 8
    assert all(cell.rect["x"] + cell.rect["width"] <= 360 for cell in cells)


def test_every_question_shows_verdict_interval_noise_and_devices(browser, page):
    set_width(browser, 360)
    browser.get(page)
    for question in PARAMETERS:
        section = browser.find_element("id", question)
        assert "Do the draws represent the posterior? good" in section.text
        assert "nobody collected" not in section.text
        assert "any report is at most 2.72 times as likely" in section.text
        assert "90 % interval" in section.text
        for figure in section.find_elements("css selector", "figure > svg"):
            if figure.is_displayed():
                assert figure.size["width"] <= 360
    rating = browser.find_element("id", "rating").text
    assert "Do not use these numbers as they stand: nothing was learnt" in rating
    assert "The noise drowns the signal" in rating
    cells = [cell.text for cell in browser.find_elements("css selector", "#ever tbody td")]
    assert re.fullmatch(r"p, [\d.]+ %, [\d.]+ to [\d.]+ %", ", ".join(cells[:3]))
    assert cells[5] == "2,100"


def test_details_open_on_click(browser, page):
    set_width(browser, 360)
    browser.get(page)
    diagnostics, chains = browser.find_elements("css selector", "#ever details")
    picture = chains.find_element("tag name", "img")
    assert not picture.is_displayed()
    for details in (diagnostics, chains):
        details.find_element("tag name", "summary").click()
    assert "bulk ESS" in diagnostics.text
    assert "Every parameter, the worst mixing first" in chains.text
    assert picture.is_displayed()
    assert picture.size["width"] <= 360
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
