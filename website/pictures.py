"""The README's picture, of a study that is run: `python -m website.pictures` writes it."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldpkit import ask, study

ROOT = Path(__file__).parents[1]
README_PICTURE = ROOT / "docs" / "images" / "participant-and-report.png"
GAP = 24
PEOPLE = 2000
PHONE, DESK = (390, 844), (1280, 900)
# In which the server starts, or something shows.
SECONDS = 120
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-background-networking",
)
ASKED = study(
    "affairs",
    "Affairs",
    [
        ask.yes_no("ever", epsilon=1, text="Have you ever had an affair?"),
        ask.number(
            "hours",
            0,
            24,
            epsilon=1,
            model="normal",
            text="How long did you sleep last night?",
            unit="hours",
        ),
    ],
    purpose="To learn how common it is, and how it goes with sleep.",
)


def shown() -> tuple[bytes, bytes]:
    """A participant's noisy report, and the analyst's page."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.json").write_text(ASKED.to_json(), encoding="utf-8")
        with collector(folder) as (url, token), browser() as eye:
            send(f"{url}/v1/studies", ASKED.document, token)
            report = person(eye, url)
            answer_for_others(folder, url)
            at = ("--collector", url)
            ldpkit(folder, "export", "affairs", "--out", "reports.ndjson", *at, token=token)
            asked = ("--question", "ever", "--out", "posterior")
            ldpkit(folder, "fit", "study.json", "reports.ndjson", *asked)
            resize(eye, DESK)
            eye.get((folder / "posterior" / "report.html").as_uri())
            return report, eye.get_screenshot_as_png()


def ldpkit(folder: Path, *words: str, token: str = "") -> str:
    """What the command prints in that folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"LDPKIT_TOKEN": token} if token else {})}
    command = [sys.executable, "-m", "ldpkit", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    # 4: written, and not all of it is to be trusted yet.
    if done.returncode not in (0, 4):
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


@contextmanager
def collector(folder: Path) -> Iterator[tuple[str, str]]:
    """A collector's address and its operator's token, for as long as the block lasts."""
    ldpkit(folder, "init", "place")
    token = ldpkit(folder / "place", "token").strip()
    ready = folder / "ready"
    command = [sys.executable, "-m", "ldpkit", "serve", "--port", "0", "--ready-file", str(ready)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LDPKIT_TOKEN": token}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder / "place", env=environment, stdout=log, stderr=log)
        try:
            wait(lambda: ready.exists() or server.poll() is not None)
            yield ready.read_text().strip(), token
        finally:
            server.terminate()
            server.wait(SECONDS)


def wait(happened: Any) -> None:
    """Wait until it is true."""
    until = time.monotonic() + SECONDS
    while not happened():
        if time.monotonic() > until:
            raise TimeoutError("a picture's page never showed what was waited for")
        time.sleep(0.05)


def send(url: str, document: Any, token: str = "") -> None:
    """POST a document."""
    fields = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, json.dumps(document).encode(), fields, method="POST")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        answer.read()


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    eye = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield eye
    finally:
        eye.quit()


def resize(eye: Any, size: tuple[int, int]) -> None:
    """Make the window that of a phone or of a desk."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    eye.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def person(eye: Any, url: str) -> bytes:
    """A picture of the report of somebody who answers, and sends."""
    from selenium.webdriver.common.by import By

    def click(selector: str, then: str) -> None:
        eye.find_element(By.CSS_SELECTOR, selector).click()
        shows(then)

    def shows(selector: str) -> None:
        wait(lambda: eye.find_element(By.CSS_SELECTOR, selector).is_displayed())

    resize(eye, PHONE)
    eye.get(f"{url}/s/affairs")
    shows("#ask")
    eye.find_element(By.CSS_SELECTOR, "[name=ever][value=no]").click()
    eye.find_element(By.NAME, "hours").send_keys("7.5")
    click("#answers button[type=submit]", "#check")
    click("#confirm button", "#report")
    picture: bytes = eye.get_screenshot_as_png()
    eye.find_element(By.ID, "agree").click()
    click("#consent button", "[data-when=sent]")
    return picture


def answer_for_others(folder: Path, url: str) -> None:
    """All the other people: three in ten did, and who did sleeps less."""
    rows = [f"{'yes' if one % 10 < 3 else 'no'},{6 + one % 5 / 2 + (one % 10 >= 3)}" for one in range(PEOPLE)]
    (folder / "answers.csv").write_text("\n".join(["ever,hours", *rows, ""]))
    ldpkit(folder, "perturb", "study.json", "answers.csv", "--out", "others.ndjson")
    lines = (folder / "others.ndjson").read_text().splitlines()
    send(f"{url}/v1/studies/affairs/reports", {"reports": [json.loads(line) for line in lines]})


def write_readme_picture() -> None:
    """Write docs/images/participant-and-report.png: a participant's noisy report, and the analyst's page."""
    from PIL import Image

    left, right = (Image.open(io.BytesIO(picture)).convert("RGB") for picture in shown())
    whole = Image.new("RGB", (left.width + GAP + right.width, max(left.height, right.height)), "white")
    whole.paste(left, (0, 0))
    whole.paste(right, (left.width + GAP, 0))
    README_PICTURE.parent.mkdir(exist_ok=True)
    whole.quantize(64).save(README_PICTURE, optimize=True)


if __name__ == "__main__":
    write_readme_picture()
