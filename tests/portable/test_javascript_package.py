"""The JavaScript library as a package: small, typed, alone, and used in each engine."""

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from selenium.webdriver.webkitgtk.options import Options
from selenium.webdriver.webkitgtk.service import Service

from conformance.run import stream
from tests import studies
from tests.kit.collectors import Server
from tests.kit.programs import need, output_of, which
from tests.portable import npm
from tests.portable.chromium import Site, visit
from tests.portable.npm import JAVASCRIPT
from tests.portable.participant import stored_at
from tests.portable.vectors import FILES, load

MECHANISMS = [name for name in FILES if (JAVASCRIPT / "mechanisms" / f"{name}.js").exists()]
# Most bytes, minified, of what a page loads to answer a study with one mechanism, and of the whole library.
MOST_BYTES, MOST_BYTES_EVER = 15_000, 46_000
LATER = "changing languages levels oblivious sending study_parts tickets upload"
ON_DEMAND = [*MECHANISMS, *LATER.split()]
BUNDLES = {
    "page.js": "collector/pages/assets/participant.js",
    "worker.js": "collector/pages/assets/sender.js",
    "ldpkit.js": "js/index.js",
    "element.js": "js/element.js",
}


@pytest.fixture(scope="module", autouse=True)
def packages():
    npm.install()


def bundle_size(modules):
    command = [npm.ESBUILD, JAVASCRIPT / "index.js", "--bundle", "--minify", "--format=esm"]
    left_out = [f"--external:*/{name}.js" for name in ON_DEMAND if name not in modules]
    return len(subprocess.run([*command, *left_out], check=True, capture_output=True).stdout)


@pytest.mark.slow
def test_bundles_are_small():
    for mechanism in ("memoized", "sampled_products"):
        assert 8_000 < bundle_size([mechanism]) <= MOST_BYTES
    assert bundle_size(ON_DEMAND) <= MOST_BYTES_EVER


@pytest.mark.processes
def test_collector_serves_bundles_of_the_modules_as_they_are():
    """`make page` writes the bundles."""
    assets = JAVASCRIPT.parent / "collector" / "pages" / "assets"
    for served_name, source in BUNDLES.items():
        command = ["npm", "run", "--silent", "bundle", "--", f"../../{source}"]
        bundled = subprocess.run(command, cwd=npm.FOLDER, check=True, capture_output=True)
        assert bundled.stdout == (assets / served_name).read_bytes(), served_name
    assert b"message/ohttp-req" not in (assets / "page.js").read_bytes()


PAGE = """<!doctype html><html lang="en"><title>One question</title><main><h1>One question</h1>
<label>Hours <input id="hours"></label> <button id="take" disabled>Answer</button>
<p id="said" hidden></p></main>
<script type="module" src="built/app.mjs"></script></html>"""
APP = """
import { mechanismFor, openDevice, parseStudy } from "ldpkit";
const collector = "%s";
const find = (id) => document.getElementById(id);

async function take(hours) {
  const response = await fetch(`${collector}/v1/studies/survey`);
  const study = await parseStudy(await response.text());
  const device = await openDevice({ maxEpsilon: "4", collector });
  await device.answer(study, { hours });
  await device.consent(study);
  await device.flush({ attempts: 1 });
  return (await device.status(study)).report.state;
}

/** Whether each payload of a vector comes of its bytes. */
async function isSame({ studies, draws }) {
  let rest;
  const random = Object.assign((size) => Uint8Array.from(rest.splice(0, size)), { forTests: true });
  for (const { study, answer, bytes, payload } of draws) {
    rest = bytes;
    const { questions } = await parseStudy(JSON.stringify(studies[study]));
    const found = mechanismFor(questions[0]).perturb(answer, random);
    if (Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("") !== payload) return false;
  }
  return true;
}

find("take").addEventListener("click", async () => {
  const vectors = await (await fetch("vectors.json")).json();
  const same = (await Promise.all(vectors.map(isSame))).every(Boolean) ? "same" : "another";
  const state = await take(Number(find("hours").value));
  const again = await take(9).catch(({ code }) => code);
  find("said").textContent = `${same} ${state} ${again}`;
  find("said").hidden = false;
});
// WebKit's driver does not wait for modules.
find("take").disabled = false;
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An app's folder with the package, as it is installed from its tarball."""
    folder = tmp_path_factory.mktemp("installed")
    packed = output_of("npm", "pack", "--silent", "--pack-destination", str(folder), cwd=JAVASCRIPT)
    app = folder / "app"
    app.mkdir()
    (app / "package.json").write_text('{"private": true, "type": "module"}')
    command = ["npm", "install", "--offline", "--silent", "--no-audit", "--no-fund"]
    subprocess.run([*command, f"../{packed.strip()}"], cwd=app, check=True, capture_output=True)
    return app


@pytest.mark.slow
def test_types_accept_the_documented_usage(app):
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"]
    (app / "usage.mts").write_text((npm.FOLDER / "usage.ts").read_text())
    # An app that uses React has its types.
    for name in ("@types", "csstype"):
        (app / "node_modules" / name).symlink_to(npm.PACKAGES / name)
    npm.node(npm.TYPESCRIPT, *options, "usage.mts", cwd=app)


def vectors():
    """A few draws of each mechanism, with the bytes that they read."""
    found = []
    for name in MECHANISMS:
        entry = load(name)
        good = [draw for draw in entry["draws"] if "payload" in draw and draw["bytes"] < 3000][-3:]
        assert good
        read = [stream(draw.get("head", ""), draw["seed"], draw["bytes"]) for draw in good]
        draws = [{**draw, "bytes": [*taken]} for draw, taken in zip(good, read)]
        asked = {draw["study"]: entry["studies"][draw["study"]]["study"] for draw in draws}
        found.append({"studies": asked, "draws": draws})
    return found


@pytest.fixture(scope="module")
def asking(app, tmp_path_factory):
    """The address of an app's page, bundled, and a collector to which it may send."""
    with (
        Site(app) as site,
        Server(tmp_path_factory.mktemp("at"), environment={"LDPKIT_CORS_ORIGINS": site.url}) as server,
    ):
        server.request("POST", "/v1/studies", studies.document(studies.NUMBER))
        (app / "app.mjs").write_text(APP % server.url)
        (app / "index.html").write_text(PAGE)
        (app / "vectors.json").write_text(json.dumps(vectors()))
        bundle = ["app.mjs", "--bundle", "--splitting", "--format=esm", "--outdir=built", "--log-level=error"]
        subprocess.run([npm.ESBUILD, *bundle, "--out-extension:.js=.mjs"], cwd=app, check=True)
        yield f"{site.url}/index.html", server


BROWSERS = "*-linux-gnu*/webkit2gtk-4.*/MiniBrowser"
SCREEN = ["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]


@contextmanager
def webkit():
    """WebKit, the engine of Safari, in WebKitGTK's small browser on a screen that nobody sees."""
    need("webkit")
    screen = subprocess.Popen(["Xvfb", *SCREEN], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        display = {"DISPLAY": f":{screen.stdout.readline().strip()}", "LIBGL_ALWAYS_SOFTWARE": "1"}
        options = Options()
        options.binary_location = str(next(Path("/usr/lib").glob(BROWSERS)))
        options.add_argument("--automation")
        service = Service(which("WebKitWebDriver"), env={**os.environ, **display})
        with webdriver.WebKitGTK(options, service) as browser:
            yield browser
    finally:
        screen.kill()
        screen.wait()


def said_in(browser, url):
    """What the page says after its button was pressed."""
    if browser != "webkit":
        steps = [["fill", "#hours", "3.5"], ["click", "#take"], ["wait", "#said"], ["look", "end"]]
        return visit(browser, [{"url": url, "steps": steps}], "light", 390)["looks"]["end"]["text"]
    with webkit() as started:
        started.get(url)
        started.find_element(By.ID, "hours").send_keys("3.5")
        wait = WebDriverWait(started, 60)
        wait.until(lambda _: started.find_element(By.ID, "take").is_enabled())
        started.find_element(By.ID, "take").click()
        wait.until(lambda _: started.find_element(By.ID, "said").is_displayed())
        return started.find_element(By.TAG_NAME, "main").text


@pytest.mark.slow
@pytest.mark.parametrize("browser", ["chrome", "firefox", "webkit"])
def test_three_engines_make_the_vectors_payloads_and_answer_once(browser, asking):
    """Of the bundle of an app: V8, SpiderMonkey and JavaScriptCore."""
    page, server = asking
    before = len(stored_at(server, "survey"))
    assert said_in(browser, page).endswith("same sent answered")
    assert len(stored_at(server, "survey")) == before + 1
