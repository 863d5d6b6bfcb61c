"""The README's picture, of a study that is run: `python -m website.pictures` writes it."""

import io
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inference.demo.run import try_study
from ldpkit import ask, study

README_PICTURE = Path(__file__).parents[1] / "docs" / "images" / "participant-and-report.png"
GAP = 24
PHONE, DESK = (390, 844), (1280, 900)
# How long a page may take to show something.
SECONDS = 120
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
ASKED = study(
    "affairs",
    "Affairs",
    [
        ask.yes_no("ever", epsilon=1, text="Have you ever had an affair?"),
        ask.number(
            "hours", 0, 24, epsilon=1, model="normal", text="How long did you sleep last night?", unit="hours"
        ),
    ],
    purpose="To learn how common it is, and how it goes with sleep.",
)
# Of the other people three in ten did, and who did sleeps less.
OTHERS = [
    {"ever": person % 10 < 3, "hours": 6 + person % 5 / 2 + (person % 10 >= 3)} for person in range(1000)
]


def shown() -> tuple[bytes, bytes]:
    """Return pictures of a participant's noisy report, and of the analyst's page."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    pictures: list[bytes] = []
    try:
        with TemporaryDirectory() as folder:
            try_study(
                ASKED, OTHERS, Path(folder), lambda page: pictures.append(participate(browser, page)), print
            )
            resize(browser, DESK)
            browser.get(Path(folder, "report.html").as_uri())
            return pictures[0], browser.get_screenshot_as_png()
    finally:
        browser.quit()


def resize(browser: Any, size: tuple[int, int]) -> None:
    """Make the window that of a phone or of a desk."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def participate(browser: Any, page: str) -> bytes:
    """Answer and send as a participant, and return a picture of the report."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def click(selector: str, then: str) -> None:
        browser.find_element(By.CSS_SELECTOR, selector).click()
        wait_for(then)

    def wait_for(selector: str) -> None:
        element = browser.find_element(By.CSS_SELECTOR, selector)
        WebDriverWait(browser, SECONDS).until(lambda _: element.is_displayed())

    resize(browser, PHONE)
    browser.get(page)
    wait_for("#ask")
    browser.find_element(By.CSS_SELECTOR, "[name=ever][value=no]").click()
    browser.find_element(By.NAME, "hours").send_keys("7.5")
    click("#answers button[type=submit]", "#check")
    click("#confirm button", "#report")
    picture: bytes = browser.get_screenshot_as_png()
    browser.find_element(By.ID, "agree").click()
    click("#consent button", "[data-when=sent]")
    return picture


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
