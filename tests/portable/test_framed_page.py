"""A study in a frame of another site: its page learns that it was answered, and never what."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.by import By

from schemas import Study
from tests import studies
from tests.collector.conftest import Server
from tests.portable.participant import Participant
from tests.portable.site import Site
from tests.portable.token_issuer import TokenIssuer

LABELS = ["no", "a word", "a much longer answer, that takes more than a line of any phone that people have"]
DOCUMENT = studies.document({**studies.CHOICE, "choices": LABELS, "text": "Which?"})


@pytest.fixture(scope="module")
def host():
    """A site by another name than the collector's: browsers keep their storage apart."""
    opened = Site()
    opened.url = opened.url.replace("127.0.0.1", "localhost")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def framing(host, tmp_path_factory):
    """A collector that the host's pages may frame."""
    listed = {"LDPKIT_FRAME_ANCESTORS": f"https://survey.example.org, {host.url}"}
    started = Server(tmp_path_factory.mktemp("framing"), environment=listed)
    yield started
    started.kill()


def published(server, name):
    """A separate study for each test: browsers keep a frame's storage as long as they run."""
    study = Study({**DOCUMENT, "id": name})
    server.request("POST", "/v1/studies", study.document)
    return study


class Framed(Participant):
    """A person on the host's page; what they do happens in its frame."""

    def __init__(self, browser, host, server, study, page="framed", **given):
        self.browser, self.server, self.study = browser, server, study
        self.element = f"{server.url}/assets/element.js"
        asked = urlencode({"element": self.element, "src": f"{server.url}/s/{study.id}", **given})
        browser.get(f"{host.url}/pages/{page}.html?{asked}")

    def outside(self, script):
        """Return what the host's page finds."""
        self.browser.switch_to.default_content()
        return self.browser.execute_script(f"return {script}")

    def inside(self):
        self.until_outside("Boolean(document.querySelector('ldp-study')?.shadowRoot)")
        element = self.browser.find_element(By.CSS_SELECTOR, "ldp-study")
        self.browser.switch_to.frame(element.shadow_root.find_element(By.CSS_SELECTOR, "iframe"))

    def until_outside(self, condition):
        self.browser.switch_to.default_content()
        self._until(lambda: self.browser.execute_script(f"return {condition}"))

    def until_shows(self, selector):
        self._until(lambda: self.find(selector).is_displayed())

    @property
    def text(self):
        return str(self.browser.execute_script("return document.body.textContent"))


STATE = "document.querySelector('ldp-study').state"
SHOWN = "document.querySelector('ldp-study').shadowRoot"
# What a page can see of a frame, without the driver's mark: its room, where one scrolled, where one is.
SEEN = f"""[document.body.innerHTML, {SHOWN}.innerHTML.replace(/ cd_frame_id_="\\w+"/, ""),
  document.querySelector('ldp-study').offsetHeight, scrollY,
  document.documentElement.scrollHeight, history.length, location.href]"""


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(LABELS)))
def test_embedding_page_learns_only_that_it_was_answered(browser, host, framing, place):
    study = published(framing, f"framed-{place}")
    person = Framed(browser, host, framing, study)
    person.until_outside("heard.includes('event ready')")
    seen = person.outside(SEEN)
    person.inside()
    person.until("ask")
    person.answer(occupation=LABELS[place])
    person.until("report")
    assert person.outside(STATE) == "ready"
    person.inside()
    person.send()
    person.until_outside("heard.includes('event done')")
    assert person.outside(SEEN) == seen
    heard = person.outside("heard")
    assert [one for one in heard if isinstance(one, dict)] == [{"ldpkit": "ready"}, {"ldpkit": "done"}]
    assert sorted(one for one in heard if isinstance(one, str)) == ["event done", "event ready"]
    person.inside()
    person.until_shows("p[data-when=sent]")
    assert len(person.stored()) == 1
    # Once withdrawn it says no more than before: who left and who answered look alike.
    person.click("#withdraw")
    person.until("withdrawn", "gone")
    assert person.outside("heard") == heard
    assert host.requests == []


def test_an_invitation_and_a_language_reach_the_frame(browser, host, framing):
    person = Framed(browser, host, framing, published(framing, "invited"), lang="de", invitation="a code+1")
    person.until_outside("heard.includes('event ready')")
    person.inside()
    found = person.browser.execute_script("return [document.documentElement.lang, location.hash]")
    assert found == ["de", "#invitation=a+code%2B1"]


@pytest.mark.parametrize("given", [{}, {"html": "yes", "lang": "de", "invitation": "code"}])
def test_the_frame_is_made_once(browser, host, framing, given):
    """In HTML a browser tells an element of its attributes, one by one, before that it is on the page."""
    person = Framed(browser, host, framing, published(framing, "once"), **given)
    person.until_outside("heard.includes('event ready')")
    assert person.outside("framesMade") == 1


@pytest.mark.slow
def test_unlisted_site_shows_a_link_instead(browser, host, tmp_path):
    closed = Server(tmp_path)
    try:
        person = Framed(browser, host, closed, published(closed, "closed"), hasty="yes")
        person.until_outside("heard.includes('event blocked')")
        assert 'frame_ancestors = ["' + host.url in person.outside(f"{SHOWN}.textContent")
        assert person.outside(f"{SHOWN}.querySelector('a').href") == f"{closed.url}/s/closed"
        assert person.outside("heard") == ["event blocked"]
    finally:
        closed.kill()


@pytest.mark.parametrize(
    ("src", "says"),
    [
        ("/s/habits", "must be a study's page"),
        ("http://collect.example.org/s/habits", "must be https"),
        ("https://collect.example.org/v1/studies/habits", "must end in /s/"),
        ("javascript:alert(1)", "must end in /s/"),
        ("OWN/s/habits", "of another origin than this page"),
    ],
)
def test_invalid_frame_address_is_rejected(browser, host, framing, src, says):
    person = Framed(browser, host, framing, Study(DOCUMENT), src=src.replace("OWN", host.url))
    person.until_outside("heard.includes('event refused')")
    assert says in person.outside(f"{SHOWN}.textContent")
    assert person.outside(f"{SHOWN}.querySelector('iframe')") is None


def test_messages_from_another_window_are_ignored(browser, host, framing):
    person = Framed(browser, host, framing, published(framing, "forged"))
    person.until_outside("heard.includes('event ready')")
    person.browser.execute_script("postMessage({ ldpkit: 'done' }, '*')")
    person.until_outside("heard.some((one) => one.ldpkit === 'done')")
    assert person.outside(STATE) == "ready"


@pytest.mark.parametrize(("tool", "press"), [("surveyjs", True), ("jspsych", False)])
def test_survey_tools_continue_without_storing_an_answer(browser, host, framing, tool, press):
    person = Framed(browser, host, framing, published(framing, tool), page=tool)
    person.inside()
    person.until("ask")
    if press:
        browser.switch_to.default_content()
        browser.find_element(By.CSS_SELECTOR, "input[type=text]").send_keys("Delft")
        browser.find_element(By.CSS_SELECTOR, "input.sd-navigation__complete-btn").click()
        assert person.outside("window.results") is None
        person.inside()
    person.answer(occupation=LABELS[1])
    person.until("report")
    person.send()
    person.until_outside("window.isDone")
    if press:
        browser.find_element(By.CSS_SELECTOR, "input.sd-navigation__complete-btn").click()
    person.until_outside("Boolean(window.results)")
    results = person.outside("window.results")
    assert ("Delft" if press else '"state":"done"') in results
    # Nor its place among the choices.
    assert not any(label in results for label in LABELS[1:])
    assert len(person.stored()) == 1


def test_frame_is_done_after_its_token_before_sending(browser, host, framing):
    """The embedding page may then remove the frame: the report needs only its send time."""
    issuer = TokenIssuer()
    issuer.strata["CODE"] = 0
    try:
        study = Study({**DOCUMENT, "id": "with-tokens", "channel": issuer.channel()})
        framing.request("POST", "/v1/studies", study.document)
        person = Framed(browser, host, framing, study, invitation="CODE")
        person.until_outside("heard.includes('event ready')")
        person.inside()
        person.until("ask")
        person.answer(occupation=LABELS[0])
        person.until("report")
        person.send()
        person.until_outside("heard.includes('event done')")
        person.inside()
        assert person.find("#leaves").text.startswith("It leaves by itself")
        assert [code for code, _ in issuer.asked] == ["CODE"]
        assert person.stored() == []
    finally:
        issuer.close()
