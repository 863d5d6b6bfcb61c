"""The report page in a real browser, at phone and desktop width."""

import re

import numpy as np
import pytest

from inference.results.diagnostics import diagnose
from inference.results.page import render_page
from inference.results.posterior import Posterior
from inference.results.prior_notes import knowledge
from schemas import Study
from tests import studies
from tests.portable import chromium

LABELS = ["student", "worker", "teacher, nurse, artist, technician or skilled work"]
STUDY = Study(studies.document(studies.YES_NO, {**studies.CHOICE, "choices": LABELS}, studies.LINEAR))
PARAMETERS = {
    "ever": ("bernoulli", ["p"]),
    "occupation": ("multinomial", [f"p[{label}]" for label in LABELS]),
    "rating": ("linear_regression", ["intercept", "coefficient[age]", "coefficient[years]", "sd"]),
}


def posterior_of(question, prior_sd):
    model, names = PARAMETERS[question]
    random = np.random.default_rng(4)
    draws = {name: random.normal(0.3, 0.1, (4, 1000)) for name in names}
    prior = dict.fromkeys(names, prior_sd)
    prior_draws = {name: random.normal(0.3, prior_sd, 1000) for name in names}
    found = diagnose(draws, np.zeros((4, 1000), bool), knowledge=knowledge(draws, prior_draws))
    return Posterior(question, model, 500, draws, prior, found, STUDY.digest, 0)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    posteriors = {name: posterior_of(name, 0.11 if name == "rating" else 1.0) for name in PARAMETERS}
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(STUDY, posteriors, {name: p.draws for name, p in posteriors.items()}))
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = chromium.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def set_width(browser, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 900])
def test_the_page_fits_its_width_and_loads_nothing(browser, page, width):
    set_width(browser, width)
    browser.get(page)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert browser.get_log("browser") == []


def test_on_a_phone_medians_and_intervals_show_beside_long_names(browser, page):
    set_width(browser, 360)
    browser.get(page)
    cells = browser.find_elements("css selector", "section > .scroll td:nth-child(3)")
    assert len(cells) == 8
    assert all(cell.rect["x"] + cell.rect["width"] <= 360 for cell in cells)


def test_every_question_shows_verdict_interval_noise_and_devices(browser, page):
    set_width(browser, 360)
    browser.get(page)
    for question in PARAMETERS:
        section = browser.find_element("id", question)
        assert "Do the draws represent the posterior? good" in section.text
        assert "nobody collected" not in section.text
        assert "any report is at most 2.72 times as likely" in section.text
        assert "90 % interval" in section.text
        for figure in section.find_elements("css selector", "figure > svg"):
            if figure.is_displayed():
                assert figure.size["width"] <= 360
    rating = browser.find_element("id", "rating").text
    assert "Do not use these numbers as they stand: nothing was learnt" in rating
    assert "The noise drowns the signal" in rating
    cells = [cell.text for cell in browser.find_elements("css selector", "#ever tbody td")]
    assert re.fullmatch(r"p, [\d.]+ %, [\d.]+ to [\d.]+ %", ", ".join(cells[:3]))
    assert cells[5] == "2,100"


def test_details_open(browser, page):
    set_width(browser, 360)
    browser.get(page)
    diagnostics, chains = browser.find_elements("css selector", "#ever details")
    picture = chains.find_element("tag name", "img")
    assert not picture.is_displayed()
    for details in (diagnostics, chains):
        details.find_element("tag name", "summary").click()
    assert "bulk ESS" in diagnostics.text
    assert "Every parameter, the worst mixing first" in chains.text
    assert picture.is_displayed()
    assert picture.size["width"] <= 360
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
