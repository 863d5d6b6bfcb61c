"""When the browser's device sends, to whom, and what it asks to be deleted."""

import pytest

from tests.portable import chromium
from tests.portable.browser_device import (
    ANSWERS,
    DOCUMENT,
    OPEN,
    answered,
    consent,
    flush,
    path_of,
    status,
    withdraw,
)
from tests.portable.chromium import attempt, run


def test_offline_then_online_sends_the_same_bytes(page, site):
    report = answered(page)
    consent(page)
    chromium.set_offline(page, True)
    try:
        assert flush(page)["state"] == "queued"
        assert site.requests == []
    finally:
        chromium.set_offline(page, False)
    assert flush(page) == {**report, "state": "sent"}
    assert site.requests == [("PUT", path_of(report), report["body"])]
    assert flush(page)["state"] == "sent"
    assert len(site.requests) == 1


def test_retries_send_the_same_bytes_with_full_jitter(page, site):
    report = answered(page)
    consent(page)
    site.statuses = [503, 429, 500, 425]
    script = """
    const pauses = [];
    const timeout = window.setTimeout;
    window.setTimeout = (work, delay) => { pauses.push(delay); return timeout(work, 0); };
    Math.random = () => 0.5;
    await device.flush({ attempts: 5 });
    window.setTimeout = timeout;
    return pauses;
    """
    assert run(page, OPEN + script, DOCUMENT, None) == [500, 1000, 2000, 4000]
    assert status(page)["report"]["state"] == "sent"
    assert site.bodies() == [report["body"]] * 5


def test_a_report_refused_for_good_is_not_sent_again(page, site):
    answered(page)
    consent(page)
    site.statuses = [422]
    assert flush(page, attempts=5)["state"] == "refused"
    assert flush(page)["state"] == "refused"
    assert len(site.requests) == 1


def test_a_refused_report_may_be_at_the_collector_and_is_to_be_deleted(page, site):
    """Its first upload arrived, and the answer was lost."""
    report = answered(page)
    consent(page)
    site.statuses = [502, 404]
    assert flush(page, attempts=5)["state"] == "refused"
    assert withdraw(page) == 1
    assert status(page)["report"] == {**report, "state": "withdrawn", "body": ""}
    assert flush(page) is None
    assert [(method, path) for method, path, _ in site.requests[2:]] == [("DELETE", path_of(report))]


def test_a_report_goes_to_its_own_collector_only(page, site):
    """Another one would answer that it knows of no such report: it would be lost, or taken for deleted."""
    script = """
    const [document, answers, elsewhere] = args;
    const study = await parseStudy(JSON.stringify(document));
    const other = await openDevice({ maxEpsilon: "4", collector: elsewhere });
    const device = await openDevice({ maxEpsilon: "4" });
    await device.answer(study, answers);
    await device.consent(study);
    const states = [];
    const note = async () => states.push((await device.status(study)).report?.state ?? "gone");
    for (const one of [other, device]) { await one.flush(); await note(); }
    await device.withdraw(study.id);
    for (const one of [other, device]) { await one.flush(); await note(); }
    return states;
    """
    elsewhere = f"{site.url}/elsewhere"
    assert run(page, script, DOCUMENT, ANSWERS, elsewhere) == ["queued", "sent", "withdrawn", "gone"]
    assert [method for method, _, _ in site.requests] == ["PUT", "DELETE"]
    assert not any("elsewhere" in path for _, path, _ in site.requests)


def test_withdrawal_before_consent_leaves_nothing_but_the_spend(page, site):
    answered(page)
    assert withdraw(page) == 0
    assert status(page) == {"answered": True, "report": None}
    assert flush(page) is None
    assert site.requests == []
    again = attempt(page, OPEN + "return device.answer(study, answers);", DOCUMENT, ANSWERS)
    assert again["error"] == "answered"


@pytest.mark.parametrize("acknowledgement", [204, 404])
def test_withdrawal_asks_for_deletion_until_it_is_acknowledged(page, site, acknowledgement):
    report = answered(page)
    consent(page)
    flush(page)
    assert withdraw(page) == 1
    assert status(page)["report"] == {**report, "state": "withdrawn", "body": ""}
    site.statuses = [405, 503, acknowledgement]
    assert flush(page)["state"] == flush(page)["state"] == "withdrawn"
    assert flush(page) is None
    assert [(method, path) for method, path, _ in site.requests[1:]] == [("DELETE", path_of(report))] * 3
    assert status(page) == {"answered": True, "report": None}


def test_an_invitation_goes_beside_the_report_and_is_forgotten(page, site):
    script = OPEN + "return device.answer(study, answers, 'first');"
    report = run(page, script, DOCUMENT, ANSWERS)
    assert report["invitation"] == "first"
    assert "first" not in report["body"]
    consent(page)
    site.statuses = [403]
    assert flush(page, attempts=5)["state"] == "uninvited"
    assert len(site.requests) == 1
    run(page, OPEN + "return device.invite(study.id, 'second');", DOCUMENT, None)
    assert flush(page) == {**report, "state": "sent", "invitation": ""}
    assert site.invitations == ["first", "second"]
    assert site.bodies() == [report["body"]] * 2


def test_without_an_invitation_none_is_sent(page, site):
    answered(page)
    consent(page)
    flush(page)
    assert site.invitations == [None]
