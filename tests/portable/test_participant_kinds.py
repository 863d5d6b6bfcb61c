"""The participant's page with long lists, kept answers, questions drawn by chance, and invitations."""

import time

import pytest
from selenium.webdriver.common.by import By

from collector.studies.publishing import LIFETIME
from ldp_client import mechanism_for
from ldp_client.explain import odds
from schemas import Report
from tests import studies
from tests.portable import chromium
from tests.portable.participant import ANSWERS, Participant

STATED = {"epsilon": "1", "delta": "1e-6"}
TOWN = {
    **studies.CHOICE,
    "id": "town",
    "text": "Which of the listed towns do you live in?",
    "choices": {"count": 200_000},
    "mechanism": {"name": "olh", "epsilon": "2"},
}
HEIGHT = {
    **studies.NUMBER,
    "id": "height",
    "text": "How tall are you, in cm?",
    "bounds": ["140", "200"],
    "mechanism": {"name": "gaussian", **STATED},
}
HABIT = {**studies.MEMOIZED, "text": "Did you ride a bicycle this week?"}
WAGE = {**studies.RECORD, "text": "About your work"}
LEVELS = [
    {"id": "age", "bounds": ["15", "65"], "cuts": ["30", "50"]},
    {"id": "job", "ask": "choice", "choices": ["none", "part time", "full time"]},
]
NEWER = {
    "olh": (TOWN, {"town": "123456"}, "which stands for many choices"),
    "gaussian": (HEIGHT, {"height": "171.5"}, "How tall are you, in cm?"),
    "gaussian_record": (
        WAGE,
        {"wage/age": "30", "wage/years": "4", "wage/rate": "4"},
        "a noisy number for each of age, years, rate",
    ),
    "sampled_products": (
        {**studies.PRODUCTS, "text": "About your work"},
        {"salary/age": "30", "salary/married": "yes", "salary/rate": "4"},
        "one product, drawn by chance",
    ),
    "levels": (
        {
            **studies.PRODUCTS,
            "features": LEVELS,
            "text": "About your work",
        },
        {"salary/age": "30", "salary/job": "full time", "salary/rate": "4"},
        "one product, drawn by chance",
    ),
    "several": (
        {**studies.PRODUCTS, "mechanism": {**studies.PRODUCTS["mechanism"], "products": 3}},
        {"salary/age": "30", "salary/married": "yes", "salary/rate": "4"},
        "noisy signs, of products drawn by chance",
    ),
    "memoized": (HABIT, {"habit": "yes"}, "Did you ride a bicycle this week?"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NEWER)
def test_answer_survives_reload_and_offline_and_is_withdrawn(meet, name):
    question, answers, words = NEWER[name]
    person = meet(studies.document(question))
    other = person.duplicate()
    person.answer(**answers)
    person.until("report")
    shown = person.body
    assert words in person.text
    person.browser.refresh()
    person.until("report")
    assert person.body == shown
    chromium.set_offline(person.browser, True)
    person.send()
    person.until_says("It will leave when the collector can be reached")
    chromium.set_offline(person.browser, False)
    person.until_says("This was sent")
    (report,) = person.stored()
    assert report == Report.from_json(shown)
    mechanism_for(person.study.questions[0]).check(report.payloads[question["id"]])
    person.enter(other)
    # Come back to, it shows what another tab has sent.
    person.until_says("This was sent")
    assert person.body == shown
    person.leave()
    person.click("#withdraw")
    person.until("gone")
    assert person.stored() == []


PHONE = chromium.PHONE[0]
SCALE = {
    **studies.ONE_OF,
    "id": "tired",
    "text": "How often are you tired in the morning?",
    "choices": ["never", "seldom", "sometimes", "often", "always"],
    "ordered": True,
    "refusal": True,
}


def test_scale_is_a_row_in_order_on_wide_screens(meet):
    person = meet(studies.document(SCALE))

    def places():
        levels = person.browser.find_elements(By.CSS_SELECTOR, ".levels label")
        assert [level.text for level in levels] == SCALE["choices"]
        return [(level.rect["x"], level.rect["y"]) for level in levels]

    for width in (1280, PHONE):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
        person.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        row = places()
        across = 1 if width == PHONE else 0
        assert [place[1 - across] for place in row] == [row[0][1 - across]] * len(row)
        assert [place[across] for place in row] == sorted({place[across] for place in row})
    # Not to say is no level.
    assert person.find("[value=refused]").find_elements(By.XPATH, "ancestor::*[@class='levels']") == []
    person.answer(tired="sometimes")
    person.until("report")


def test_a_kept_answer_is_repeated_in_the_next_version(meet):
    person = meet(studies.document(HABIT))
    assert "repeat the noisy answer that is kept here" in person.text
    person.answer(habit="yes")
    person.until("report")
    person.send()
    person.until_says("This was sent")
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 2})
    person.browser.refresh()
    person.until("ask")
    person.answer(habit="no")
    person.until_shown(version=2)
    person.send()
    person.until_says("This was sent")
    assert sorted(report.version for report in person.stored()) == [1, 2]
    spent, reports = person.ledger()
    assert (spent, len(reports)) == (["habit"], 2)
    person.click("#withdraw")
    person.until("gone")
    assert person.stored() == []
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 3})
    person.browser.refresh()
    person.until("gone")


def test_consent_is_to_the_report_that_is_shown(meet):
    """While it was shown another tab answered the next round: that report was not agreed to."""
    person = meet(studies.document(HABIT))
    person.answer(habit="yes")
    person.until("report")
    shown = person.body
    person.server.request("POST", "/v1/studies", {**person.study.document, "version": 2})
    person.enter(person.duplicate())
    person.answer(habit="yes")
    person.until_shown(version=2)
    later = person.body
    person.leave()
    assert person.body == shown != later
    person.send()
    person._until(lambda: person.body == later)
    assert person.stored() == []
    assert [report["state"] for report in person.ledger()[1]] == ["held"]
    person.send()
    person.until_says("This was sent")
    assert person.stored() == [Report.from_json(later)]


def test_page_draws_one_question_and_explains_it(meet):
    person = meet(studies.document(TOWN, HEIGHT, studies.YES_NO, sample_one_question=True))
    assert "has drawn one of the 3 questions by chance" in person.text
    assert odds(2.0) in person.text
    script = "return [...document.querySelectorAll('#answers .card')].map((one) => one.dataset.place)"
    (place,) = person.browser.execute_script(script)
    # Nobody gets another question by coming back.
    for _ in range(8):
        person.browser.refresh()
        person.until("ask")
        assert person.browser.execute_script(script) == [place]
    (entry,) = [{"town": "5"}, {"height": "171"}, {"ever": "yes"}][int(place) :][:1]
    person.answer(**entry)
    person.until("report")
    assert person.text.count("chance drew another question") == 2
    shown = person.body
    person.send()
    person.until_says("This was sent")
    (report,) = person.stored()
    assert report == Report.from_json(shown)
    assert set(report.payloads) == set(entry)
    assert len(person.ledger()[0]) == 3


@pytest.fixture
def invitations(server):
    """A function study id, count → so many new invitations; the study then requires one."""
    return server.invitations


def test_invitation_in_the_address_admits_one_report(meet, invitations):
    person = meet()
    first, second = invitations(person.study.id, 2)
    person = Participant(person.browser, person.server, person.study, first)
    person.answer(**ANSWERS)
    person.until("report")
    assert first not in person.body
    person.send()
    assert not [url for _, url in person.requests() if first in url]
    person.until_says("This was sent")
    assert len(person.stored()) == 1
    forget = {"origin": person.server.url, "storageTypes": "all"}
    person.browser.execute_cdp_cmd("Storage.clearDataForOrigin", forget)
    person = Participant(person.browser, person.server, person.study, first)
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    person.until_says("takes reports from invited people only")
    person.find("#invite input").send_keys(f" \u201c{second}\u200b\u201d ")
    person.click("#invite button")
    person.until_says("This was sent")
    assert len(person.stored()) == 2


def test_an_earlier_versions_report_still_takes_an_invitation(meet, invitations):
    """It takes its own invitation, not the one typed into the current version's form."""
    person = meet()
    (code,) = invitations(person.study.id, 1)
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    person.until_says("takes reports from invited people only")
    later = {**studies.document({**studies.YES_NO, "id": "more"}), "id": person.study.id, "version": 2}
    assert person.server.request("POST", "/v1/studies", later) == 201
    person.browser.refresh()
    person.until_says("another version of this study")
    person.find("#invite .invitation").send_keys(code)
    typed = "document.querySelector('#answers .invitation')?.setAttribute('value', 'another')"
    person.browser.execute_script(typed)
    person.click("#invite button")
    person.until_says("This was sent")
    assert [report.version for report in person.stored()] == [1]


def test_an_invitation_can_be_typed_with_the_answers(meet, invitations):
    person = meet()
    (code,) = invitations(person.study.id, 1)
    time.sleep(LIFETIME)
    person.browser.refresh()
    person.until("ask")
    person.find("#answers .invitation").send_keys(f"“<{code}>.”")
    person.answer(**ANSWERS)
    person.until("report")
    person.send()
    person.until_says("This was sent")
    assert len(person.stored()) == 1
