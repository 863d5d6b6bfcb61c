"""The npm package as an app has it: installed from its tarball, used in node, TypeScript and browsers."""

import json
import shutil
import sqlite3
import subprocess

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests import studies
from tests.browser.visiting import visit
from tests.collector.conftest import Server
from tests.portable import npm, webkit
from tests.portable.folder_site import served
from tests.portable.platforms import JAVASCRIPT

STUDY = studies.document(studies.NUMBER)

# Also what a bundler is given.
ANSWER = """
import { openDevice, parseStudy } from "ldpkit";
%s

export async function take(collector, hours) {
  const response = await fetch(`${collector}/v1/studies/survey`);
  const study = await parseStudy(await response.text());
  const device = await openDevice({ maxEpsilon: "4", collector, %s });
  const { body } = await device.answer(study, { hours });
  await device.consent(study);
  await device.flush({ attempts: 1 });
  const { report } = await device.status(study);
  return { body, state: report.state, left: await device.epsilonLeft() };
}
"""
IN_NODE = """
import { take } from "./take.mjs";
const [collector] = process.argv.slice(2);
const first = await take(collector, 3.5);
const again = await take(collector, 9).catch(({ code }) => code);
console.log(JSON.stringify([first, again]));
"""
PAGE = """<!doctype html><html lang="en"><title>One question</title><main><h1>One question</h1>
<label>Hours <input id="hours"></label> <button id="take">Answer</button> <p id="said" hidden></p></main>
<script type="module" src="built/app.mjs"></script></html>"""
APP = """
import { take } from "./take.mjs";
const find = (id) => document.getElementById(id);
find("take").addEventListener("click", async () => {
  const { state } = await take("%s", Number(find("hours").value));
  find("said").textContent = state;
  find("said").hidden = false;
});
"""
TYPED = """
import { type Device, type Ledger, fetchStudy, oblivious, openDevice } from "ldpkit";
import { type ExpoDatabase, expoLedger } from "ldpkit/ledgers/expo";
import { memoryLedger } from "ldpkit/ledgers/memory";
import { nodeLedger } from "ldpkit/ledgers/node";
import type { StudyElement } from "ldpkit/element";

export async function devices(database: ExpoDatabase): Promise<Device[]> {
  const ledgers: Ledger[] = [memoryLedger(), await nodeLedger("kept.db"), expoLedger(database)];
  const collector = "https://collect.example.org";
  return Promise.all(ledgers.map((ledger) => openDevice({ maxEpsilon: "4", collector, ledger })));
}
export const bodies = (ledger: Ledger): Promise<string[]> =>
  ledger.read(({ reports }) => reports.map(({ body }) => body));
export const frame = (element: StudyElement): string => element.state;
void openDevice({ maxEpsilon: "4", ledger: nodeLedger("kept.db") });
const transport = oblivious({ relay: "https://relay.example.org", keys: "AQAg" });
void openDevice({ maxEpsilon: "4", transport }).then((device) => fetchStudy(device, "habits"));
void openDevice({ maxEpsilon: "4", transport: (url, options) => fetch(url, options) });
// @ts-expect-error a relay needs keys
void oblivious({ relay: "https://relay.example.org" });
// @ts-expect-error a path is none
void openDevice({ maxEpsilon: "4", ledger: "kept.db" });
// @ts-expect-error what is kept has an order of its own
void import("ldpkit/ledgers/sqlite");
"""


@pytest.fixture
def app(tmp_path):
    """An empty folder, and the package installed from its tarball."""
    return npm.installed_in(tmp_path, JAVASCRIPT)


def stored(server):
    with sqlite3.connect(server.database) as database:
        return database.execute("SELECT count(*) FROM reports").fetchone()[0]


@pytest.fixture
def collect(tmp_path):
    """Starts a collector that has the study; ended after the test."""
    started = []

    def collect(**environment):
        started.append(Server(tmp_path, environment=environment))
        started[0].request("POST", "/v1/studies", STUDY)
        return started[0]

    yield collect
    for server in started:
        server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("ledger", ["node", "memory"])
def test_package_in_node_answers_once_and_sends(ledger, app, collect):
    server = collect()
    make = {
        "node": (
            'import { nodeLedger } from "ldpkit/ledgers/node";\n'
            'const path = new URL("kept.db", import.meta.url).pathname;',
            "ledger: nodeLedger(path)",
        ),
        "memory": (
            'import { memoryLedger } from "ldpkit/ledgers/memory";\nconst ledger = memoryLedger();',
            "ledger",
        ),
    }[ledger]
    (app / "take.mjs").write_text(ANSWER % make)
    (app / "use.mjs").write_text(IN_NODE)
    program = npm.newer_node() if ledger == "node" else shutil.which("node")
    done = subprocess.run(
        [program, "use.mjs", server.url], cwd=app, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, again = json.loads(done.stdout)
    assert (first["state"], again) == ("sent", "answered")
    assert first["left"] < 4
    assert stored(server) == 1


@pytest.mark.slow
def test_missing_ledger_in_node_gives_a_clear_error(app):
    script = """
    import { openDevice } from "ldpkit";
    const said = (options) => openDevice({ maxEpsilon: "4", ...options }).catch(({ message }) => message);
    console.log([await said({}), await said({ collector: "https://collect.example.org" })].join());
    """
    (app / "use.mjs").write_text(script)
    assert (
        npm.node("use.mjs", cwd=app).strip()
        == "input: collector: must be an https URL,ledger: ReferenceError"
    )


@pytest.mark.slow
def test_types_work_after_installation(app):
    (app / "app.mts").write_text(TYPED)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"]
    npm.node(npm.TYPESCRIPT, *options, "app.mts", cwd=app)


def taken_in(browser, url):
    """Return the page's text after its button was pressed."""
    steps = [["fill", "#hours", "3.5"], ["click", "#take"], ["wait", "#said"], ["look", "end"]]
    return visit(browser, [{"url": url, "steps": steps}], "light", 390)["looks"]["end"]["text"]


def taken_in_webkit(url):
    """The same, in WebKit."""
    with webkit.started() as browser:
        browser.get(url)
        browser.find_element(By.ID, "hours").send_keys("3.5")
        browser.find_element(By.ID, "take").click()
        WebDriverWait(browser, 20).until(lambda _: browser.find_element(By.ID, "said").is_displayed())
        return browser.find_element(By.TAG_NAME, "main").text


@pytest.mark.slow
@pytest.mark.parametrize("browser", ["chrome", "firefox", "webkit"])
def test_browser_bundle_answers_and_sends(browser, app, collect):
    with served(app) as origin:
        server = collect(LDPKIT_CORS_ORIGINS=origin)
        (app / "take.mjs").write_text(ANSWER % ("", ""))
        (app / "app.mjs").write_text(APP % server.url)
        (app / "index.html").write_text(PAGE)
        bundle = ["app.mjs", "--bundle", "--splitting", "--format=esm", "--outdir=built", "--log-level=error"]
        subprocess.run([npm.ESBUILD, *bundle, "--out-extension:.js=.mjs"], cwd=app, check=True)
        said = taken_in_webkit(f"{origin}/") if browser == "webkit" else taken_in(browser, f"{origin}/")
    assert said.endswith("sent")
    assert stored(server) == 1
