"""Headless browsers: Chromium by Selenium, Chromium and Firefox by visit.mjs; and a site that they open."""

import json
from http.server import SimpleHTTPRequestHandler
from typing import ClassVar

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.kit.programs import need, output_of, which
from tests.kit.serving import LocalServer
from tests.portable.npm import FOLDER, JAVASCRIPT

# A name that never leads anywhere (RFC 2606): here to this machine, which to a browser is another one.
ELSEWHERE = "collect.example"
FLAGS = (
    f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE = (390, 844)
SCRIPT_SECONDS = 30
PROGRAMS = {"chrome": ("chromium", "google-chrome"), "firefox": ("firefox-esr", "firefox")}

# Resolves to {value} or {error, field}, so that a test can look at either.
WRAPPER = """
const done = arguments[arguments.length - 1];
const work = async (...args) => {
  const { openDevice, parseStudy } = await import("/js/index.js");
  %s
};
work(...arguments).then(
  (value) => done({ value }),
  (error) => done({ error: error.code ?? String(error), field: error.field }),
);
"""


def start(profile):
    """A browser with a fresh profile; the caller quits it."""
    need("chromium")
    options = Options()
    options.binary_location = which("chromium") or which("google-chrome")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, Service(which("chromedriver")))
    browser.set_script_timeout(SCRIPT_SECONDS)
    width, height = PHONE
    metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return browser


def attempt(browser, script, *arguments):
    """Run the body of an async function (openDevice, parseStudy at hand): {value} or {error, field}."""
    return browser.execute_async_script(WRAPPER % script, *arguments)


def run(browser, script, *arguments):
    """Like attempt, for what must not fail."""
    found = attempt(browser, script, *arguments)
    assert "error" not in found, found
    return found.get("value")


def set_offline(browser, offline):
    conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)


def forget(browser, origin):
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})


def visit(browser, visits, scheme, width):
    """What each look found, by its name, and the errors that the browser told."""
    need("npm", "chromium" if browser == "chrome" else browser)
    programs = [found for name in PROGRAMS[browser] if (found := which(name))]
    asked = {"browser": browser, "executable": programs[0], "scheme": scheme, "width": width}
    words = json.dumps({**asked, "visits": visits})
    return json.loads(output_of("node", str(FOLDER / "visit.mjs"), input=words, timeout=180))


class Site(LocalServer):
    """A folder of pages, with the library, on an origin of its own. url: where it listens.

    requests: (method, path) of uploads and deletions, in order; none is taken.
    """

    def __init__(self, folder=FOLDER):
        requests = []

        class Handler(SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            extensions_map: ClassVar = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

            def translate_path(self, path):
                _, first, *rest = path.split("?")[0].split("/")
                return str(JAVASCRIPT.joinpath(*rest) if first == "js" else folder.joinpath(first, *rest))

            def send_head(self):
                # The base says "not modified" of what changed within a second.
                del self.headers["If-Modified-Since"]
                return super().send_head()

            def end_headers(self):
                self.send_header("Cache-Control", "no-store")
                super().end_headers()

            def refuse(self):
                requests.append((self.command, self.path))
                self.send_error(404)

            do_PUT = do_DELETE = refuse  # noqa: N815

            def log_message(self, *_arguments):
                pass

        super().__init__(Handler)
        self.requests, self.url = requests, f"http://{self.address}"
