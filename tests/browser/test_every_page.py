"""Every page that people see, in Chromium and Firefox: what axe, the console and narrow screens object to."""

from itertools import pairwise
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from ldpkit import ask
from schemas import Report, Study
from tests import studies
from tests.inference.posteriors import learnt, page_of
from tests.kit.collectors import TOKEN, Server, build_report, build_study, wait_for
from tests.portable import chromium
from tests.portable.participant import EVERY_KIND, SMALL

SECTIONS = [{"title": "Work", "questions": ["hours"]}, {"title": "Life", "questions": ["ever"]}]
# Injected markup would ask for an address that does not exist, or break the page's policy.
HOSTILE = "<img src=/x onerror=alert(1)><script>alert(2)</script>"
ASKED = Study({**SMALL, "id": "small", "sections": SECTIONS, "title": HOSTILE, "purpose": HOSTILE})
# Its tickets carry a value, which the operator's page asks for.
WARD = {"id": "ward", "bounds": ["1", "9"], "step": "1", "source": "ticket"}
KINDS = Study({**EVERY_KIND, "id": "kinds", "public": [*EVERY_KIND.get("public", []), WARD]})
HABITS = build_study()
HOLDER = Study(studies.document(*studies.TABLES, **studies.HOLDER))
LABELS = ["student", "worker", "teacher, nurse, artist, technician or skilled work"]
POSTERIORS = Study(studies.document(studies.YES_NO, {**studies.CHOICE, "choices": LABELS}, studies.LINEAR))
PARAMETERS = {
    "ever": ["p"],
    "occupation": [f"p[{label}]" for label in LABELS],
    "rating": ["intercept", "coefficient[age]", "coefficient[years]", "sd"],
}
# Each browser in one scheme, one as a phone and one as a desk.
SIGHTS = [("chrome", "dark", 390), ("firefox", "light", 1280)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("collector")) as started:
        for study in (ASKED, KINDS, HOLDER):
            assert started.request("POST", "/v1/studies", study.document) == 201
        yield started


def report_page(folder):
    # The regression learnt nothing.
    posteriors = {
        question: learnt(POSTERIORS, question, names, 0.022 if question == "rating" else 1.0)
        for question, names in PARAMETERS.items()
    }
    path = folder / "report.html"
    path.write_text(page_of(posteriors, POSTERIORS))
    return path.as_uri()


def pressed(act, before, after, *filled):
    """What the operator's page asks about an action, and what it says then."""
    asked = [["click", f"[data-act={act}]"], ["wait", "#fields label"], *filled, ["look", before]]
    return [*asked, ["click", "#do"], ["wait", ".shown"], ["look", after], ["click", "#leave"]]


def everything(url, report, key):
    """A person who slips, sees it and sends; then the other pages, and the operator's."""
    person = [
        ["wait", "#ask"],
        ["look", "questions"],
        ["fill", "[name=hours]", "4500"],
        ["click", "#next"],
        ["wait", "#problem"],
        ["look", "slip"],
        ["fill", "[name=hours]", "3.5"],
        ["click", "#next"],
        ["wait", "#back"],
        ["click", "[name=ever][value=yes]"],
        ["look", "second"],
        ["click", "#answers button[type=submit]"],
        ["wait", "#check"],
        ["look", "checked"],
        ["click", "#confirm button"],
        ["wait", "#report"],
        ["look", "report"],
        ["click", "#agree"],
        ["click", "#consent button"],
        ["wait", "[data-when=sent]"],
        ["click", "#so-far summary"],
        ["look", "sent"],
    ]
    operator = [
        *[["look", "sign-in"], ["fill", "#key", TOKEN + "\n"], ["wait", "#live"], ["look", "operator"]],
        *pressed("invite", "confirm", "done", ["fill", "[name='public.ward']", "7"]),
        *pressed("keys", "keys", "made", ["fill", "#fields [name=name]", key]),
        *[["click", "[data-act=log]"], ["wait", "#fields table"], ["look", "audit-log"]],
    ]
    builder = [
        # Behind the others in the list of studies: the operator invites to the first.
        *[["fill", "[name=title]", f"With {HOSTILE}"], ["fill", ".question [name=text]", HOSTILE]],
        *[["wait", "#warnings li"], ["look", "builder"], ["click", "[form=draft]"]],
        *[["wait", ".qr svg"], ["look", "share"]],
    ]
    return [
        {"url": f"{url}/s/small", "steps": person},
        {"url": f"{url}/s/kinds", "steps": [["wait", "#ask"], ["look", "kinds"]]},
        {"url": f"{url}/s/{HOLDER.id}", "steps": [["look", "holder"]]},
        {"url": f"{url}/s/nothing", "steps": [["look", "nothing"]]},
        {"url": url, "steps": operator},
        {"url": f"{url}/new", "steps": builder},
        {"url": report, "steps": [["look", "posteriors"]]},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("browser", "scheme", "width"), SIGHTS)
def test_every_page_passes_browser_checks(server, tmp_path, browser, scheme, width):
    found = chromium.visit(
        browser, everything(server.url, report_page(tmp_path), f"{browser}-{width}"), scheme, width
    )
    looks = found["looks"]
    assert len(looks) == 19
    assert {name: seen["violations"] for name, seen in looks.items() if seen["violations"]} == {}
    assert {name: seen["over"] for name, seen in looks.items() if seen["over"]} == {}
    assert {seen["dark"] for seen in looks.values()} == {scheme == "dark"}
    for name, seen in looks.items():
        levels = seen["headings"]
        assert levels.count(1) == 1, name
        assert all(after <= before + 1 for before, after in pairwise(levels)), (name, levels)
    # The console tells of the page that is not there, and of the one that asks for a key.
    expected = ("status of 401", "status of 404")
    assert [error for error in found["errors"] if not any(words in error for words in expected)] == []
    assert looks["done"]["text"].count("#ticket=") == 10
    assert f"The key {browser}-{width} is shown this once" in looks["made"]["text"]
    assert "invite\tkinds\t10 tickets" in looks["audit-log"]["text"]
    focus = {"slip": "problem", "checked": "check", "report": "report"}
    assert {name: looks[name]["focus"] for name in focus} == focus
    assert looks["sent"]["text"].count("This was sent") == 1
    if browser == "chrome":
        assert_it_is_heard(looks)


def assert_it_is_heard(looks):
    """What is wrong is read before the form, and two studies of one title are told apart."""
    slip = looks["slip"]["heard"]
    assert slip.index("StaticText: 1 answer needs another look:") < slip.index(
        "textbox: How many hours did you work?"
    )
    assert {"region: A survey kinds", "region: A survey plants"} <= set(looks["operator"]["heard"])
    assert "DisclosureTriangle: Withdraw and delete it" in looks["sent"]["heard"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = chromium.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("desk")) as started:
        assert started.request("POST", "/v1/studies", HABITS.document) == 201
        yield started


@pytest.fixture
def desk(collector, browser):
    """The operator's page, signed in, and how tests wait for it: it replaces its parts as it refreshes."""
    chromium.forget(browser, collector.url)
    browser.get(collector.url)
    browser.find_element(By.ID, "key").send_keys(TOKEN, Keys.ENTER)
    return WebDriverWait(browser, 20, 0.02, [StaleElementReferenceException])


def acted(browser, wait, act, file=None):
    """Press an action's button, and the dialog's; what the page says of it then."""
    button = f"[data-act={act}]" if file else f"[data-act={act}][data-study=habits]"
    wait.until(lambda _: browser.find_element(By.CSS_SELECTOR, button).click() or True)
    if file:
        wait.until(lambda _: browser.find_elements(By.NAME, "file"))[0].send_keys(str(file))
    browser.find_element(By.ID, "do").click()
    said = wait.until(lambda _: browser.find_element(By.ID, "said").text)
    browser.find_element(By.ID, "leave").click()
    return said


TITLES = "return [...document.querySelectorAll('#live h2')].map((title) => title.textContent)"


@pytest.mark.slow
def test_operator_closes_opens_exports_and_publishes_by_the_page(collector, browser, desk, tmp_path):
    """The title of what is published is shown as text, whatever it holds."""
    first, second = build_report(HABITS), build_report(HABITS)
    saving = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", saving)
    assert collector.put(first) == 201
    assert acted(browser, desk, "close") == "Version 1 is closed."
    with pytest.raises(HTTPError) as refused:
        collector.put(second)
    assert refused.value.code == 410
    assert acted(browser, desk, "open") == "Version 1 takes reports on its days."
    assert collector.put(second) == 201
    assert acted(browser, desk, "export") == "The reports are saved."
    saved = tmp_path / "habits.ndjson"
    wait_for(saved.exists)
    *lines, _end = saved.read_text().splitlines()
    assert {Report.from_json(line).id for line in lines} == {first.id, second.id}
    study = tmp_path / "study.json"
    study.write_text(ASKED.to_json())
    assert acted(browser, desk, "publish", study).startswith("Version 1 of small is published.")
    assert collector.request("GET", "/v1/studies/small") == 200
    wait_for(lambda: HOSTILE in browser.execute_script(TITLES))
    assert browser.find_elements(By.CSS_SELECTOR, "img, main script") == []


FRUIT = [f"fruit {number}" for number in range(8)]
FRÜCHTE = [f"Frucht {number}" for number in range(8)]
BUILT = ask.study(
    "work-b",
    {"en": "Wörk & <b>", "de": "Arbeit"},
    [
        ask.yes_no("q1", epsilon=1, text={"en": "Ever?", "de": "Je?"}),
        ask.choice(
            "fruit",
            [{"en": label, "de": other} for label, other in zip(FRUIT, FRÜCHTE, strict=True)],
            epsilon="0.5",
            text={"en": "Which?", "de": "Welche?"},
        ),
        ask.number("q3", 0, "12.5", epsilon=1, text={"en": "How long?", "de": "Wie lange?"}, unit="hours"),
    ],
    languages=["en", "de"],
    closes="2099-12-31",
    retention=365,
)


FILL = """
for (const [name, values] of Object.entries(arguments[0])) {
  const fields = document.getElementsByName(name);
  values.forEach((value, place) => {
    fields[place].value = value;
    for (const event of ["input", "change"]) fields[place].dispatchEvent(new Event(event, { bubbles: true }));
  });
}
"""


@pytest.mark.slow
def test_operator_builds_a_study_by_the_page(collector, browser, desk):
    """The document is the one that `ldpkit.ask` makes, and the preview shows it before it is published."""

    def text_of(selector):
        return browser.find_element(By.CSS_SELECTOR, selector).text

    desk.until(lambda _: browser.find_elements(By.LINK_TEXT, "New study"))[0].click()
    add = desk.until(lambda _: browser.find_element(By.CSS_SELECTOR, "body:has(.question) #add"))
    add.click()
    add.click()
    # Each text has a field for each language; the first id is the study's.
    filled = [
        {"languages": ["en, de"], "closes": [BUILT.closes], "ask": ["yes_no", "choice", "number"]},
        {"title": ["Wörk & <b>", "Arbeit"], "epsilon": ["1", "0.5"], "id": ["work-b", "q1", "fruit"]},
        {"text": ["Ever?", "Je?", "Which?", "Welche?", "How long?", "Wie lange?"]},
        {"choices": ["", "", "\n".join(FRUIT), "\n".join(FRÜCHTE)], "unit": ["", "", "", "", "hours"]},
        {"low": ["", "", "0"], "high": ["", "", "12.5"]},
    ]
    for fields in filled:
        browser.execute_script(FILL, fields)
    desk.until(lambda _: text_of("#state") == "The study can be published.")
    Select(browser.find_element(By.ID, "language")).select_by_value("de")
    frame = browser.find_element(By.ID, "preview")
    desk.until(lambda _: "<h1>Arbeit</h1>" in frame.get_attribute("srcdoc"))
    browser.switch_to.frame(frame)
    assert desk.until(lambda _: text_of("h1")) == "Arbeit"
    assert text_of("#answers [for='q:2']") == "Welche?"
    browser.switch_to.default_content()
    browser.find_element(By.CSS_SELECTOR, "[form=draft]").click()
    desk.until(lambda _: browser.find_elements(By.CSS_SELECTOR, ".qr svg"))
    assert text_of("main a") == f"{collector.url}/s/work-b"
    assert f'<ldp-study src="{collector.url}/s/work-b">' in text_of("pre")
    with urlopen(f"{collector.url}/v1/studies/work-b") as published:
        assert Study.from_json(published.read().decode()).document == BUILT.document
