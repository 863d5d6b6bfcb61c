"""Reports that leave the participant's page later: in batches with tokens, and by its service worker."""

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
const [done] = arguments;
const tags = ({ sync }) => sync.getTags();
navigator.serviceWorker.getRegistrations().then((all) => Promise.all(all.map(tags))).then(done);
"""


def close_page(browser):
    """Close the tab; another one stays, as people's browsers have it."""
    page = browser.current_window_handle
    browser.switch_to.new_window("tab")
    other = browser.current_window_handle
    browser.switch_to.window(page)
    browser.close()
    browser.switch_to.window(other)


def workers(browser):
    """The tags that each worker is registered for."""
    return browser.execute_async_script(TAGS)


def only_for_the_code(body, headers):
    return (honest if headers["LDPKit-Ticket"] == "CODE" else refusing(401, "ticket-needed"))(body, headers)


ASK_FOR_A_TOKEN = """
const [address, done] = arguments;
const headers = { "Content-Type": "application/private-token-request" };
fetch(`${address}/v1/tokens`, { method: "POST", body: new Uint8Array(259), headers })
  .then(({ status }) => done(status), () => done("refused"));
"""


@pytest.mark.attack(9)
@pytest.mark.attack(12)
def test_report_with_a_token_leaves_at_its_moment(meet):
    """Issuer and collector compare moments, or a script in the page sends what it reads to another host.

    Nothing of the report is anywhere before its moment. The page's policy allows the study's issuer alone.
    """
    with Issuer() as issuer, Issuer() as other:
        person = meet(studies.document(ASKED, channel=channel_of(issuer.url)), "WRONG")
        browser, host = person.browser, issuer.url.split("//")[1]
        allowed = [browser.execute_async_script(ASK_FOR_A_TOKEN, place.url) for place in (issuer, other)]
        assert allowed == [200, "refused"]
        # The worker sends for all studies of this collector.
        with urlopen(f"{person.server.url}/assets/worker.js") as answer:
            sources = answer.headers["Content-Security-Policy"].split("connect-src ")[1].split()
        assert (sources[0], issuer.url in sources, other.url in sources) == ("'self'", True, False)
        assert f"Your ticket goes to {host} alone" in person.text
        # A browser itself may ask again where nothing came.
        issuer.requests.clear()
        issuer.answers = [refusing(503, "busy"), lost, *[only_for_the_code] * 20]
        person.answer(ever="yes")
        person.until("report")
        person.send()
        person.until_says("has given no token: there was no ticket, it is not known there, or it was used")
        person.find("#ticket .ticket").send_keys("CODE")
        person.click("#ticket button")
        person.until_says("It leaves by itself at a moment drawn by chance between")
        assert {headers["ldpkit-ticket"] for _, _, headers in issuer.requests} == {"WRONG", "CODE"}
        report = person.ledger()[1][0]
        assert (report["state"], report["ticket"], len(report["token"])) == ("queued", "", 472)
        puts = [url for method, url in person.requests() if method == "PUT" and "/reports/" in url]
        assert (puts, person.stored()) == ([], [])
        shift = {"source": SHIFTED.format(shift=report["due"] - time.time() * 1000 + 60_000)}
        script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", shift)
        browser.refresh()
        person.until_says("This was sent. Thank you.")
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        assert [stored.to_json() for stored in person.stored()] == [person.body]


@pytest.fixture
def cut_off(browser):
    """Keeps a page, not the browser's workers, from sending; it waits long until it tries again."""

    def cut_off():
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/reports/*"]})
        browser.execute_script("Math.random = () => 0.99")

    yield cut_off
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})


def test_worker_sends_report_and_deletion_after_the_page_is_closed(meet, cut_off):
    person = meet()
    person.answer(**ANSWERS)
    person.until("report")
    body, address = person.body, person.browser.current_url
    cut_off()
    person.send()
    person.wait_until(lambda: workers(person.browser) == [["ldpkit"]])
    assert person.stored() == []
    close_page(person.browser)
    person.wait_until(person.stored)
    assert [stored.to_json() for stored in person.stored()] == [body]
    person.browser.get(address)
    person.until("report")
    # The worker notes it once it has the collector's answer, and goes.
    person.wait_until(lambda: person.ledger()[1][0]["state"] == "sent")
    person.wait_until(lambda: workers(person.browser) == [])
    cut_off()
    person.withdraw()
    person.wait_until(lambda: workers(person.browser) == [["ldpkit"]])
    assert person.stored()
    close_page(person.browser)
    person.wait_until(lambda: not person.stored())
