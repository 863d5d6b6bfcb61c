"""One browser and one collector for each test module, and a site of its own for each test."""

import re

import pytest

from schemas import Study
from tests.kit.collectors import Server
from tests.portable.chromium import Site, forget, set_offline, start
from tests.portable.participant import SMALL, Participant


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


@pytest.fixture
def site():
    """A new origin each time, so that no test finds another one's ledger."""
    with Site() as opened:
        yield opened


@pytest.fixture
def page(browser, site):
    browser.get(f"{site.url}/pages/blank.html")
    return browser


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("collector")) as started:
        yield started


@pytest.fixture
def meet(browser, server, request):
    """Publish a study for this test, and open its page in a browser that has forgotten everything."""

    def meet(document=SMALL, ticket=""):
        name = re.sub("[^a-z0-9]+", "-", request.node.name)
        study = Study({**document, "id": name[-64:].strip("-")})
        server.request("POST", "/v1/studies", study.document)
        forget(browser, server.url)
        for log in ("browser", "performance"):
            browser.get_log(log)
        return Participant(browser, server, study).open(ticket)

    yield meet
    set_offline(browser, False)
