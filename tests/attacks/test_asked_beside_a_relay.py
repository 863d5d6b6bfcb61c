"""A browser fetches something in the clear at the moment at which a report goes through the relay.

It may be a part of the library, another version of the study, or a newer service worker. The collector
then sees the address together with the report.

Defence: The library: all parts are loaded before it decides what to send, and fetching them counts as a
visit; the page: keeps each version that it fetched when it was opened, and requests no other version and
no worker once it relays; the worker: checks for a newer one itself, before the browser does, and counts
that as a visit. Known limit: what an app's own page fetches without `visited`, and a worker that is woken
once a day or less: it checks each time, and sends nothing until the page is open.
"""

import json
import subprocess
import time

import pytest

from tests.portable import npm
from tests.portable.conftest import browser
from tests.portable.participant import Participant
from tests.portable.platforms import REPOSITORY
from tests.portable.test_leaving_later import until
from tests.portable.test_oblivious_in_javascript import (
    HOUR_MS,
    SHIFTED,
    collector,
    keys,
    origin,
    passed,
    study,
)
from tests.portable.test_participant_channel import MOVE_DUE

__all__ = ["browser", "collector", "keys", "origin", "passed", "study"]
WORKER = REPOSITORY / "collector" / "assets" / "worker.js"
PAGE = """<!doctype html><html lang="en"><title>Relayed</title><p id="said"></p>
<script type="module" src="page.js"></script></html>"""
SCRIPT = """
const {{ openDevice }} = await import("{collector}/assets/ldpkit/index.js");
const {{ fetchStudy }} = await import("{collector}/assets/ldpkit/fetching.js");
const device = await openDevice({{ maxEpsilon: "4", collector: "{collector}" }});
const another = await openDevice({{ maxEpsilon: "4", collector: "{collector}", name: "another" }});
const study = await fetchStudy("{collector}", "{study}", device);
await another.visited();
for (const one of [device, another]) {{
  if ((await one.status(study)).answered) continue;
  await one.answer(study, {{ ever: "yes" }});
  await one.consent(study);
  await one.flush({{ attempts: 1 }});
}}
window.again = async () => {{
  const states = [];
  for (const one of [device, another]) {{
    await one.flush({{ attempts: 1 }});
    states.push((await one.status(study)).report.state);
  }}
  await device.told();
  return states;
}};
document.querySelector("#said").textContent = "ready";
"""
SENT = "Network.requestWillBeSent"
AGAIN = "const done = arguments[0]; window.again().then(done, (error) => done(String(error)));"


@pytest.fixture
def later(browser):
    """Has the pages that are opened from now on believe that it is so much later."""
    added = []

    def later(shift):
        script = {"source": SHIFTED.format(shift=shift)}
        added.append(browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)["identifier"])

    yield later
    for identifier in added:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": identifier})


def asked(browser):
    """Whom it asked since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"]["request"]["url"] for one in messages if one["method"] == SENT]
    return [url for url in sent if url.startswith("http")]


def test_library_parts_are_not_fetched_while_relaying(study, collector, browser, origin, passed, later):
    """The page was opened hours ago, has two ledgers, and has never sent anything."""
    folder, site = origin
    (folder / "index.html").write_text(PAGE)
    (folder / "page.js").write_text(SCRIPT.format(collector=collector.url, study=study.id))
    ready = lambda: browser.find_element("id", "said").text == "ready"  # noqa: E731
    browser.get(f"{site}/index.html")
    until(ready)
    later(3 * HOUR_MS)
    browser.refresh()
    until(ready)
    asked(browser)
    browser.execute_script(SHIFTED.format(shift=2 * HOUR_MS))
    # So late that neither waits for its moment.
    for name in ("ldpkit", "another"):
        moved = MOVE_DUE.replace('"ldpkit"', json.dumps(name))
        browser.execute_async_script(moved, time.time() * 1000 + 4 * HOUR_MS)
    assert browser.execute_async_script(AGAIN) == ["queued"] * 2
    # Now it has what it takes, and the collector saw that.
    assert [url for url in asked(browser) if url.endswith("/oblivious.js")]
    assert passed == []
    browser.execute_script(SHIFTED.format(shift=2 * HOUR_MS))
    assert browser.execute_async_script(AGAIN) == ["sent"] * 2
    assert {*asked(browser)} == {study.channel.oblivious.relay}


def test_page_fetches_no_study_version_after_relaying(study, collector, browser, passed, later):
    """The report belongs to an earlier version of the study."""
    person = Participant(browser, collector, study)
    person.answer(ever="yes")
    person.until("report")
    person.send()
    until(lambda: person.ledger()[1][0].get("due"))
    second = {**study.document, "version": 2, "title": "Habits, put right"}
    assert collector.request("POST", "/v1/studies", second) == 201
    later(3 * HOUR_MS)
    browser.refresh()
    person.until_says("another version of this study")
    in_words = person.find("#in-words").text
    # Until it has asked for its worker, where it does.
    time.sleep(3)
    version = f"{collector.url}/v1/studies/{study.id}?version=1"
    assert version in asked(browser)
    # What the browser itself keeps is not to help.
    browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    browser.execute_script(SHIFTED.format(shift=2 * HOUR_MS))
    browser.execute_script("dispatchEvent(new Event('online'));")
    person.until_says("This was sent. Thank you.")
    time.sleep(3)
    assert {*asked(browser)} == {study.channel.oblivious.relay}
    # Who published the study, and the report.
    assert len(passed) == 2
    assert person.find("#in-words").text == in_words != ""
    browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})


def woken(*events, **ledger):
    ledger = {"hours": 30, "isPlainToo": False, "looked": None, **ledger}
    said = npm.newer_node(), "worker_wakes.mjs", WORKER, json.dumps(ledger), json.dumps(events)
    done = subprocess.run([*map(str, said)], cwd=npm.FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_worker_does_not_relay_when_browser_checks_for_update():
    """The browser checks a day after its last check, whatever was sent in the clear since then."""
    plain, *others = woken(["sync", 20], ["periodicsync", 31], ["periodicsync", 45], isPlainToo=True)
    assert plain == ["worker", "PUT"]
    assert others == [["relay"], ["worker"]]
    assert woken(["periodicsync", 31], ["periodicsync", 33]) == [["worker"], ["relay"]]
    assert woken(["periodicsync", 31], looked=-12) == [["relay"]]
    # Its clock was moved back.
    assert woken(["periodicsync", 31], looked=-40) == [["worker"]]


def test_newly_installed_worker_skips_the_update_check():
    assert woken(["install", 12], ["periodicsync", 31]) == [[], ["relay"]]


def test_report_without_relay_triggers_no_update_check():
    assert woken(["sync", 50], hours=None, isPlainToo=True) == [["PUT"]]
