"""A report that could not leave while its page was open leaves later, by the page's service worker."""

import time

import pytest

from tests.portable.participant import ANSWERS

WAIT_SECONDS = 20
WORKERS = """
const done = arguments[0];
const tags = ({ sync }) => sync.getTags();
navigator.serviceWorker.getRegistrations().then((all) => Promise.all(all.map(tags))).then(done);
"""


@pytest.fixture
def cut_off(browser):
    """Keeps a page, not the browser's workers, from these addresses; from none at the end."""

    def cut(*addresses):
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(addresses)})

    yield cut
    cut()


def until(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def close_page(browser):
    """Close the tab; another one stays, as people's browsers have it."""
    page = browser.current_window_handle
    browser.switch_to.new_window("tab")
    other = browser.current_window_handle
    browser.switch_to.window(page)
    browser.close()
    browser.switch_to.window(other)


def workers(browser):
    """Return the tags that each worker was registered for."""
    return browser.execute_async_script(WORKERS)


def test_worker_sends_the_report_after_its_page_is_closed(meet, cut_off):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    body = person.body
    cut_off("*/reports/*")
    address = person.browser.current_url
    person.hold_on()
    person.send()
    until(lambda: workers(person.browser) == [["ldpkit"]])
    assert person.stored() == []
    close_page(person.browser)
    until(lambda: person.stored())
    (stored,) = person.stored()
    assert stored.to_json() == body
    person.browser.get(address)
    person.until("report")
    # The worker notes it once it has the collector's answer, a moment after the report is stored.
    until(lambda: person.ledger()[1][0]["state"] == "sent")
    # Nothing is left to do for it.
    until(lambda: workers(person.browser) == [])


def test_worker_sends_the_deletion_after_its_page_is_closed(meet, cut_off):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    until(lambda: person.stored())
    cut_off("*/reports/*")
    person.hold_on()
    person.click("#withdraw")
    until(lambda: workers(person.browser) == [["ldpkit"]])
    assert person.stored()
    close_page(person.browser)
    until(lambda: not person.stored())


def test_page_registers_the_worker_again_for_a_deletion(meet, cut_off):
    """One page leaves first a report and then its deletion to the worker."""
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    cut_off("*/v1/*")
    person.send()
    until(lambda: workers(person.browser) == [["ldpkit"]])
    # The worker has sent it, and goes; then the page asks for the deletion.
    until(lambda: person.stored())
    until(lambda: workers(person.browser) == [])
    person.click("#withdraw")
    until(lambda: workers(person.browser) == [["ldpkit"]])
    close_page(person.browser)
    until(lambda: not person.stored())


def test_no_worker_is_registered_if_nothing_waits(meet):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    until(lambda: person.stored())
    time.sleep(2.5)
    assert workers(person.browser) == []


def test_page_left_while_sending_does_not_block_another(meet, cut_off):
    """The worker waited for the page's lock, which Chromium then never granted."""
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    cut_off("*/reports/*")
    # It still sends when it is left.
    person.hold_on()
    person.send()
    until(lambda: workers(person.browser) == [["ldpkit"]])
    # The worker has woken, and finds that the page sends.
    time.sleep(3)
    links = "return [...document.querySelectorAll('[hreflang]')].map((link) => link.href)"
    here = person.browser.current_url
    person.browser.get(next(one for one in person.browser.execute_script(links) if one != here))
    cut_off()
    until(lambda: person.stored())
