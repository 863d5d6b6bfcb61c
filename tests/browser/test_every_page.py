"""Every page that people see, in Chromium and Firefox: what axe, the console and narrow screens object to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from schemas import Study
from tests import studies
from tests.browser.pages import report_page
from tests.browser.visiting import visit
from tests.collector.conftest import TOKEN, Server
from tests.portable.participant import EVERY_KIND, SMALL

SECTIONS = [{"title": "Work", "questions": ["hours"]}, {"title": "Life", "questions": ["ever"]}]
# Injected markup would ask for an address that does not exist, or break the page's policy.
HOSTILE = "<img src=/x onerror=alert(1)><script>alert(2)</script>"
ASKED = Study({**SMALL, "id": "small", "sections": SECTIONS, "title": HOSTILE, "purpose": HOSTILE})
KINDS = Study({**EVERY_KIND, "id": "kinds"})
HOLDER = Study(studies.document(*studies.TABLES, **studies.HOLDER))
# Each browser in one scheme, one as a phone and one as a desk.
SIGHTS = [("chrome", "dark", 390), ("firefox", "light", 1280)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("collector"))
    for study in (ASKED, KINDS, HOLDER):
        assert started.request("POST", "/v1/studies", study.document) == 201
    yield started
    started.kill()


def pressed(act: str, before: str, after: str, *filled: list[str]) -> list[list[str]]:
    """What the operator's page asks about an action, and what it says then."""
    asked = [["click", f"[data-act={act}]"], ["wait", "#fields label"], *filled, ["look", before]]
    return [*asked, ["click", "#do"], ["wait", ".shown"], ["look", after], ["click", "#leave"]]


def everything(url: str, report: str, key: str) -> list[dict[str, object]]:
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
        *pressed("invite", "confirm", "done"),
        *pressed("keys", "keys", "made", ["fill", "#fields [name=name]", key]),
        *[["click", "[data-act=log]"], ["wait", "#fields table"], ["look", "audit-log"]],
    ]
    return [
        {"url": f"{url}/s/small", "steps": person},
        {"url": f"{url}/s/kinds", "steps": [["wait", "#ask"], ["look", "kinds"]]},
        {"url": f"{url}/s/{HOLDER.id}", "steps": [["look", "holder"]]},
        {"url": f"{url}/s/nothing", "steps": [["look", "nothing"]]},
        {"url": url, "steps": operator},
        {"url": report, "steps": [["look", "posteriors"]]},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("browser", "scheme", "width"), SIGHTS)
def test_every_page_passes_browser_checks(server, tmp_path, browser, scheme, width):
    found = visit(browser, everything(server.url, report_page(tmp_path), f"{browser}-{width}"), scheme, width)
    looks = found["looks"]
    assert len(looks) == 17
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
    assert looks["done"]["text"].count("#invitation=") == 10
    assert f"The key {browser}-{width} is shown this once" in looks["made"]["text"]
    assert "invite\tkinds\t10 invitations" in looks["audit-log"]["text"]
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
    assert "button: Withdraw and delete it" in looks["sent"]["heard"]
