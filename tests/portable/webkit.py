"""WebKit, the engine of Safari, in WebKitGTK's small browser on a screen that nobody sees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.webkitgtk.options import Options
from selenium.webdriver.webkitgtk.service import Service

from tests.kit.programs import need, which

BROWSERS = "*-linux-gnu*/webkit2gtk-4.*/MiniBrowser"
SCREEN = ["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]
SCRIPT_SECONDS = 30


@contextmanager
def started() -> Iterator[webdriver.WebKitGTK]:
    need("webkit")
    screen = subprocess.Popen(["Xvfb", *SCREEN], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert screen.stdout is not None
        display = {"DISPLAY": f":{screen.stdout.readline().strip()}", "LIBGL_ALWAYS_SOFTWARE": "1"}
        options = Options()
        options.binary_location = str(next(Path("/usr/lib").glob(BROWSERS)))
        options.add_argument("--automation")
        service = Service(which("WebKitWebDriver"), env={**os.environ, **display})
        browser = webdriver.WebKitGTK(options, service)
        try:
            browser.set_script_timeout(SCRIPT_SECONDS)
            yield browser
        finally:
            browser.quit()
    finally:
        screen.kill()
        screen.wait()
