"""Reports that leave the participant's page later: in batches with tokens, and by its service worker."""

from __future__ import annotations

import time
from urllib.request import urlopen

import pytest

from tests import studies
from tests.ldp_client.issuers import Issuer, channel_of, honest, lost, refusing
from tests.portable.participant import ANSWERS

pytestmark = pytest.mark.slow
ASKED = {**studies.YES_NO, "text": "Have you ever?"}
SHIFTED = "const now = Date.now; Date.now = () => now() + {shift};"
TAGS = """
const [kind, done] = arguments;
const tags = (registration) => registration[kind].getTags();
navigator.serviceWorker.getRegistrations().then((all) => Promise.all(all.map(tags))).then(done);
"""


@pytest.fixture(scope="module")
def issuer():
    """One for the module's collector, which takes no second issuer with the same key."""
    with Issuer() as opened:
        yield opened


@pytest.fixture
def invited(meet, issuer):
    """A person whose study has that issuer, with a ticket behind the address."""
    return lambda code="CODE": meet(studies.document(ASKED, channel=channel_of(issuer.url)), code)


@pytest.fixture
def later(browser):
    """Has pages believe that it is so many milliseconds later."""
    scripts = []

    def later(shift):
        source = SHIFTED.format(shift=shift)
        scripts.append(browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source}))

    yield later
    for script in scripts:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.fixture
def cut_off(browser):
    """Keeps a page, not the browser's workers, from these addresses; from none at the end."""

    def cut(*addresses):
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(addresses)})

    yield cut
    cut()


def close_page(browser):
    """Close the tab; another one stays, as people's browsers have it."""
    page = browser.current_window_handle
    browser.switch_to.new_window("tab")
    other = browser.current_window_handle
    browser.switch_to.window(page)
    browser.close()
    browser.switch_to.window(other)


def workers(browser, kind="sync"):
    """The tags that each worker is registered for."""
    return browser.execute_async_script(TAGS, kind)


def agreed(person):
    person.answer(ever="yes")
    person.until("report")
    person.send()


def sent_to(person, method):
    return [url for asked, url in person.requests() if asked == method and "/reports/" in url]


def only_for_the_code(body, headers):
    return (honest if headers["LDPKit-Ticket"] == "CODE" else refusing(401, "ticket-needed"))(body, headers)


@pytest.mark.attack(12)
def test_report_with_a_token_leaves_at_its_moment(invited, issuer, later):
    """Issuer and collector compare moments: nothing of the report is anywhere before its own."""
    person = invited("WRONG")
    host = issuer.url.split("//")[1]
    assert f"Your ticket goes to {host} alone" in person.text
    # A browser itself may ask again where nothing came.
    issuer.answers = [refusing(503, "busy"), lost, *[only_for_the_code] * 20]
    agreed(person)
    person.until_says("has given no token: there was no ticket, it is not known there, or it was used")
    person.find("#ticket .ticket").send_keys("CODE")
    person.click("#ticket button")
    person.until_says("It leaves by itself at a moment drawn by chance between")
    assert {headers["ldpkit-ticket"] for _, _, headers in issuer.requests} == {"WRONG", "CODE"}
    report = person.ledger()[1][0]
    assert (report["state"], report["ticket"], len(report["token"])) == ("queued", "", 472)
    assert (sent_to(person, "PUT"), person.stored()) == ([], [])
    later(report["due"] - time.time() * 1000 + 60_000)
    person.browser.refresh()
    person.until_says("This was sent. Thank you.")
    assert [stored.to_json() for stored in person.stored()] == [person.body]


@pytest.mark.attack(9)
def test_content_policy_allows_only_the_studys_issuer(invited, issuer):
    """A script in the page sends what it reads to another host."""
    person = invited()
    with Issuer() as other:
        script = """
        const [address, done] = arguments;
        const headers = { "Content-Type": "application/private-token-request" };
        fetch(`${address}/v1/tokens`, { method: "POST", body: new Uint8Array(259), headers })
          .then(({ status }) => done(status), () => done("refused"));
        """
        asked = [person.browser.execute_async_script(script, one.url) for one in (issuer, other)]
        assert asked == [200, "refused"]
        # The worker sends for all studies of this collector.
        with urlopen(f"{person.server.url}/assets/worker.js") as answer:
            allowed = answer.headers["Content-Security-Policy"].split("connect-src ")[1].split()
        assert (allowed[0], issuer.url in allowed, other.url in allowed) == ("'self'", True, False)


def test_worker_sends_report_and_deletion_after_the_page_is_closed(meet, cut_off):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    body, address = person.body, person.browser.current_url
    cut_off("*/reports/*")
    person.hold_on()
    person.send()
    person._until(lambda: workers(person.browser) == [["ldpkit"]])
    assert person.stored() == []
    close_page(person.browser)
    person._until(person.stored)
    assert [stored.to_json() for stored in person.stored()] == [body]
    person.browser.get(address)
    person.until("report")
    # The worker notes it once it has the collector's answer, and goes.
    person._until(lambda: person.ledger()[1][0]["state"] == "sent")
    person._until(lambda: workers(person.browser) == [])
    cut_off("*/reports/*")
    person.hold_on()
    person.withdraw()
    person._until(lambda: workers(person.browser) == [["ldpkit"]])
    assert person.stored()
    close_page(person.browser)
    person._until(lambda: not person.stored())


def test_worker_of_an_installed_site_is_registered_for_reports_that_leave_later(invited, browser):
    """Promise 9 wakes it: it sends what is due to the collector alone."""
    person = invited()
    allowed = {"origin": person.server.url, "permissions": ["periodicBackgroundSync"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", allowed)
    try:
        agreed(person)
        person.until_says("It leaves by itself")
        person._until(lambda: workers(browser, "periodicSync") == [["ldpkit"]])
    finally:
        browser.execute_cdp_cmd("Browser.resetPermissions", {})
