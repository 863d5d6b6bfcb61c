"""Headless Chromium, driven by Selenium."""

from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.kit.programs import need, which

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


def start(profile: Path) -> webdriver.Chrome:
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


def attempt(browser: webdriver.Chrome, script: str, *arguments: Any) -> dict[str, Any]:
    """Run the body of an async function (openDevice, parseStudy at hand): {value} or {error, field}."""
    found: dict[str, Any] = browser.execute_async_script(WRAPPER % script, *arguments)
    return found


def run(browser: webdriver.Chrome, script: str, *arguments: Any) -> Any:
    """Like attempt, for what must not fail."""
    found = attempt(browser, script, *arguments)
    assert "error" not in found, found
    return found.get("value")


def set_offline(browser: webdriver.Chrome, offline: bool) -> None:
    conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)


def forget(browser: webdriver.Chrome, origin: str) -> None:
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
