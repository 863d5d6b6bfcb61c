"""A study on another site: in a frame whose page never learns the answer, or by the site's own device."""

from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.by import By

from schemas import Study
from tests import studies
from tests.kit.collectors import Server
from tests.portable.chromium import Site
from tests.portable.participant import Participant

pytestmark = pytest.mark.slow
LABELS = ["no", "a much longer answer, that takes more than a line of any phone that people have"]
DOCUMENT = studies.document({**studies.CHOICE, "choices": LABELS, "text": "Which?"})


@pytest.fixture(scope="module")
def host():
    """A site by another name than the collector's: browsers keep their storage apart."""
    with Site() as opened:
        opened.url = opened.url.replace("127.0.0.1", "localhost")
        yield opened


@pytest.fixture(scope="module")
def framing(host, tmp_path_factory):
    """A collector that the host's pages may frame, and send to."""
    listed = f"https://survey.example.org, {host.url}"
    environment = {"LDPKIT_FRAME_ANCESTORS": listed, "LDPKIT_CORS_ORIGINS": listed}
    with Server(tmp_path_factory.mktemp("framing"), environment=environment) as started:
        yield started


def unlisted(host):
    """The same site by a name that the collector does not list."""
    return host.url.replace("localhost", "127.0.0.1")


def published(server, name):
    """A study of each test: browsers keep a frame's storage as long as they run."""
    study = Study({**DOCUMENT, "id": name})
    server.request("POST", "/v1/studies", study.document)
    return study


class Framed(Participant):
    """A person on the host's page; what they do happens in its frame."""

    def __init__(self, browser, site, server, study, **given):
        super().__init__(browser, server, study)
        asked = {"element": f"{server.url}/assets/element.js", "src": f"{server.url}/s/{study.id}", **given}
        browser.get(f"{site}/pages/framed.html?{urlencode(asked)}")

    def outside(self, script):
        self.browser.switch_to.default_content()
        return self.browser.execute_script(f"return {script}")

    def inside(self):
        self.until_outside("Boolean(document.querySelector('ldp-study')?.shadowRoot)")
        element = self.browser.find_element(By.CSS_SELECTOR, "ldp-study")
        self.browser.switch_to.frame(element.shadow_root.find_element(By.CSS_SELECTOR, "iframe"))

    def until_outside(self, condition):
        self.browser.switch_to.default_content()
        self.wait_until(lambda: self.browser.execute_script(f"return {condition}"))

    @property
    def text(self):
        return str(self.browser.execute_script("return document.body.textContent"))


STATE = "document.querySelector('ldp-study').state"
SHOWN = "document.querySelector('ldp-study').shadowRoot"
# What a page can see of a frame, without the driver's mark: its room, where one scrolled, where one is.
SEEN = f"""[document.body.innerHTML, {SHOWN}.innerHTML.replace(/ cd_frame_id_="\\w+"/, ""),
  document.querySelector('ldp-study').offsetHeight, scrollY,
  document.documentElement.scrollHeight, history.length, location.href]"""


@pytest.mark.attack(8)
@pytest.mark.parametrize("place", range(len(LABELS)))
def test_embedding_page_learns_only_that_it_was_answered(browser, host, framing, place):
    """The page around a frame listens, measures and forges messages, to learn the answer."""
    person = Framed(browser, host.url, framing, published(framing, f"framed-{place}"))
    person.until_outside("heard.includes('event ready')")
    assert person.outside("framesMade") == 1
    seen = person.outside(SEEN)
    person.browser.execute_script("postMessage({ ldpkit: 'done' }, '*')")
    person.until_outside("heard.some((one) => one.ldpkit === 'done')")
    assert person.outside(STATE) == "ready"
    person.browser.execute_script("heard.pop()")
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
    assert len(person.stored()) == 1
    # Once withdrawn it says no more than before: who left and who answered look alike.
    person.inside()
    person.withdraw()
    person.until("withdrawn", "gone")
    assert (person.outside("heard"), host.requests) == (heard, [])


def test_frame_is_made_once_with_language_and_ticket(browser, host, framing):
    """In HTML a browser tells an element of its attributes, one by one, before that it is on the page."""
    given = {"html": "yes", "lang": "de", "ticket": "a code+1"}
    person = Framed(browser, host.url, framing, published(framing, "invited"), **given)
    person.until_outside("heard.includes('event ready')")
    assert person.outside("framesMade") == 1
    person.inside()
    found = browser.execute_script("return [document.documentElement.lang, location.hash]")
    assert found == ["de", "#ticket=a+code%2B1"]


@pytest.mark.attack(8)
def test_unlisted_sites_and_wrong_addresses_show_no_frame(browser, host, framing):
    """A site frames the page of a collector that does not list it, or an address that it could read."""
    for src in (
        "/s/habits",
        "http://c.example/s/habits",
        "https://c.example/v1",
        "javascript:alert(1)",
        f"{host.url}/s/x",
    ):
        person = Framed(browser, host.url, framing, Study(DOCUMENT), src=src)
        person.until_outside("heard.includes('event refused')")
        assert person.outside(f"{SHOWN}.querySelector('iframe')") is None, src
    study = published(framing, "unlisted")
    person = Framed(browser, unlisted(host), framing, study, hasty="yes")
    person.until_outside("heard.includes('event blocked')")
    assert f'frame_ancestors = ["{unlisted(host)}' in person.outside(f"{SHOWN}.textContent")
    assert person.outside(f"{SHOWN}.querySelector('a').href") == f"{framing.url}/s/unlisted"
