"""The participant's page of a study with tokens and batches: what it says and asks, when reports leave."""

import re
import time
from urllib.request import urlopen

import pytest

from collector.languages import LANGUAGES, words_of
from tests import studies
from tests.portable.test_leaving_later import close_page, until
from tests.portable.token_issuer import TokenIssuer

ASKED = {**studies.YES_NO, "text": "Have you ever?"}
# A moment that the clock has not reached by then is one a test waits for.
# A busy browser loads a page within it.
SOON_MS = 12_000
SHIFTED = "const now = Date.now; Date.now = () => now() + {shift};"
MOVE_DUE = """
const [due, done] = arguments;
const request = indexedDB.open("ldpkit");
request.onsuccess = () => {
  const transaction = request.result.transaction("ledger", "readwrite");
  const store = transaction.objectStore("ledger");
  store.get(0).onsuccess = ({ target: { result } }) => {
    for (const report of result.reports) report.due = due;
    store.put(result, 0);
  };
  transaction.oncomplete = () => { request.result.close(); done(); };
};
"""


@pytest.fixture
def issuer():
    opened = TokenIssuer()
    opened.strata["CODE"] = 0
    yield opened
    opened.close()


@pytest.fixture
def invited(meet, issuer):
    """A person whose study has that issuer, with an invitation behind the address."""

    def invited(code="CODE", **more):
        document = studies.document(ASKED, channel=issuer.channel(), title="Habits", **more)
        return meet(document, code)

    return invited


@pytest.fixture
def later(browser):
    """Has pages believe that it is so many milliseconds later."""
    scripts = []

    def later(shift):
        source = SHIFTED.format(shift=shift)
        added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        scripts.append(added["identifier"])

    yield later
    for identifier in scripts:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": identifier})


def agreed(person):
    person.answer(ever="yes")
    person.until("report")
    person.send()


def report_of(person):
    return person.ledger()[1][0]


def asked_for(person, method):
    """The addresses that its reports were asked by that method at."""
    return [url for asked, url in person.requests() if asked == method and "/reports/" in url]


@pytest.mark.slow
def test_page_names_the_issuer_and_the_send_window(invited, issuer, later):
    person = invited()
    host = issuer.url.split("//")[1]
    assert f"Your invitation goes to {host} alone" in person.text
    assert "at a moment drawn by chance from a time span of 24 h" in person.text
    agreed(person)
    person.until_says("It leaves by itself at a moment drawn by chance between")
    assert [code for code, _ in issuer.asked] == ["CODE"]
    report = report_of(person)
    assert (report["state"], report["invitation"], len(report["token"])) == ("queued", "", 472)
    assert "Last time" not in person.text
    assert not person.find("#again").is_displayed()
    # Nothing of the report is anywhere before.
    assert asked_for(person, "PUT") == []
    assert person.stored() == []
    later(report["due"] - time.time() * 1000 + 60_000)
    person.browser.refresh()
    person.until_says("This was sent. Thank you.")
    assert [stored.to_json() for stored in person.stored()] == [person.body]
    assert len(issuer.asked) == 1


def test_page_shows_the_stratum_from_the_issuer(meet, issuer):
    """A wrong stratum would single out one person, and no one else could detect it."""
    channel = issuer.channel({"region": "north"}, {"region": "south"})
    region = {"id": "region", "choices": ["north", "south"], "source": "invitation"}
    issuer.strata["CODE"] = 1
    person = meet(studies.document(ASKED, channel=channel, public=[region], title="Habits"), "CODE")
    agreed(person)
    host = issuer.url.split("//")[1]
    person.until_says(f"{host} says that you are of region: south, and that is read beside your report")


@pytest.mark.slow
def test_open_page_sends_the_report_at_its_time(invited):
    person = invited()
    agreed(person)
    person.until_says("It leaves by itself")
    person.browser.execute_async_script(MOVE_DUE, int(time.time() * 1000) + SOON_MS)
    person.browser.refresh()
    person.until_says("It leaves by itself")
    assert person.stored() == []
    person.until_says("This was sent. Thank you.")
    assert len(person.stored()) == 1


def test_page_asks_for_another_invitation_if_unknown(invited, issuer):
    person = invited("WRONG")
    agreed(person)
    person.until_says("has given no token: there was no invitation, it is not known there, or it was used")
    person.find("#invite .invitation").send_keys("CODE")
    person.click("#invite button")
    person.until_says("It leaves by itself")
    assert [code for code, _ in issuer.asked] == ["WRONG", "CODE"]
    assert len({body for _, body in issuer.asked}) == 1


def test_page_retries_a_busy_or_unreachable_issuer(invited, issuer):
    issuer.told = [(503, "busy"), "lost"]
    person = invited()
    agreed(person)
    person.until_says("It leaves by itself")
    assert len(issuer.asked) == 3


@pytest.mark.parametrize(
    ("told", "why"),
    [((422, "token-key-unknown"), "HTTP status 422, token-key-unknown"), ("forged", "HTTP status 200, –")],
)
def test_page_states_why_the_token_is_missing(told, why, invited, issuer):
    issuer.told = [told]
    person = invited()
    host = issuer.url.split("//")[1]
    agreed(person)
    person.until_says(f"Last time: {host} gave no token: {why}")
    person.until_says(f"First this browser asks {host} for a token.")
    person.click("#again button")
    person.until_says("It leaves by itself")


def test_report_is_withdrawn_before_it_is_sent(invited):
    person = invited()
    agreed(person)
    person.until_says("It leaves by itself")
    person.requests()
    person.click("#withdraw")
    person.until("gone")
    assert asked_for(person, "DELETE") == []
    assert person.ledger()[1] == []


def policy_of(person, path):
    with urlopen(person.server.url + path) as answer:
        return answer.headers["Content-Security-Policy"]


def test_content_policy_allows_only_this_issuer(invited, issuer):
    person = invited()
    other = TokenIssuer()
    try:
        policy = policy_of(person, f"/s/{person.study.id}")
        connected = re.search(r"; connect-src ([^;]*);", policy)[1].split()
        assert connected[0] == "'self'"
        assert issuer.url in connected
        assert other.url not in connected
        script = """
        const [address, done] = arguments;
        const body = new Uint8Array(259);
        fetch(`${address}/v1/tokens`, { method: "POST", body,
          headers: { "Content-Type": "application/private-token-request" } })
          .then(({ status }) => done(status), () => done("refused"));
        """
        asked = [person.browser.execute_async_script(script, one.url) for one in (issuer, other)]
        assert asked == [422, "refused"]
        # Both send for all studies of this collector, and for each of their versions.
        worker = policy_of(person, "/assets/worker.js").split("connect-src ")[1].split()
        assert worker[0] == "'self'"
        assert issuer.url in worker
        assert other.url not in worker
    finally:
        other.close()


def test_content_policy_without_a_channel_allows_no_issuer(meet):
    person = meet(studies.document(ASKED))
    before = policy_of(person, f"/s/{person.study.id}")
    another = meet(studies.document(ASKED))
    assert policy_of(another, f"/s/{another.study.id}").count("http") == before.count("http")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_states_the_channel_with_the_same_fields(language):
    """No language falls back to English or omits a field."""
    english, words = words_of("en"), words_of(language)
    prefixes = ("page.promise.batches", "page.promise.tokens", "page.promise.address")
    prefixes += ("page.queued.channel", "page.uninvited.tokens", "script.leaves.", "script.reason.issuer")
    for prefix in prefixes:
        for key, sentence in english.sentences(prefix).items():
            own = words.sentences(prefix)[key]
            assert sorted(re.findall(r"{\w+}", own)) == sorted(re.findall(r"{\w+}", sentence)), key
            assert language == "en" or own != sentence


def test_periodic_sync_sends_the_report_of_a_closed_page(invited, browser):
    """Browsers wake workers of installed sites; other browsers register no worker."""
    person = invited()
    server = person.server
    allowed = {"origin": server.url, "permissions": ["periodicBackgroundSync"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", allowed)
    try:
        agreed(person)
        person.until_says("It leaves by itself")
        until(lambda: browser.execute_async_script(WOKEN) == [["ldpkit"]])
        browser.execute_async_script(MOVE_DUE, int(time.time() * 1000) - SOON_MS)
        close_page(browser)
        assert person.stored() == []
        browser.execute_cdp_cmd("ServiceWorker.enable", {})
        for number in range(100):
            woken = {"origin": server.url, "registrationId": str(number), "tag": "ldpkit"}
            browser.execute_cdp_cmd("ServiceWorker.dispatchPeriodicSyncEvent", woken)
        until(lambda: len(person.stored()) == 1)
    finally:
        browser.execute_cdp_cmd("Browser.resetPermissions", {})


WOKEN = """
const done = arguments[0];
const tags = ({ periodicSync }) => periodicSync.getTags();
navigator.serviceWorker.getRegistrations().then((all) => Promise.all(all.map(tags))).then(done);
"""


GONE = """
const done = arguments[0];
const end = (all) => Promise.all(all.map((one) => one.unregister()));
navigator.serviceWorker.getRegistrations().then(end).then(() => done());
"""


def test_waiting_report_has_no_worker_without_periodic_sync(invited, browser):
    person = invited()
    agreed(person)
    person.until_says("It leaves by itself")
    # Where its token took as long as that, there is one for the token.
    browser.execute_async_script(GONE)
    browser.refresh()
    person.until_says("It leaves by itself")
    # After this long what waits would be left to one.
    time.sleep(2.5)
    assert browser.execute_async_script(WOKEN) == []
