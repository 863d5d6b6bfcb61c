"""The report page in a real browser, at phone and desktop width."""

import pytest

from tests.browser.pages import PARAMETERS, report_page
from tests.portable import chromium

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = chromium.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def fits(browser, width):
    return browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 900])
def test_page_fits_its_width_and_loads_nothing(browser, tmp_path, width):
    """Medians and intervals are in sight on a phone, and details open on a click."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(report_page(tmp_path))
    assert fits(browser, width)
    cells = browser.find_elements("css selector", "section > .scroll td:nth-child(3)")
    assert len(cells) == 6
    assert all(cell.rect["x"] + cell.rect["width"] <= width for cell in cells)
    for question in PARAMETERS:
        section = browser.find_element("id", question)
        details = section.find_elements("tag name", "details")[-1]
        details.find_element("tag name", "summary").click()
        assert "any report is at most 2.72 times as likely" in details.text
    assert "Not usable" in browser.find_element("id", "rating").text
    (details,) = browser.find_elements("css selector", "#ever details")
    picture = details.find_element("tag name", "img")
    assert "bulk ESS" in details.text
    assert picture.is_displayed()
    assert fits(browser, width)
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert browser.get_log("browser") == []
