"""The browser's device sends reports, retries them and requests deletions.

Defence: The device: a report goes to the collector of its origin, whatever the spelling of the URL.
"""

import json
from contextlib import contextmanager
from datetime import date, timedelta

import pytest

from schemas import Study
from tests import studies
from tests.portable import chromium
from tests.portable.browser_device import (
    ANSWERS,
    CANONICAL,
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
from tests.portable.site import IDENTITY

SETTLED = {"reason": "", "publisher": IDENTITY}


def wiped(report):
    """Return the rest of a withdrawn report, which keeps only its text's length."""
    return {**report, "state": "withdrawn", "body": "", **SETTLED}


def test_offline_then_online_sends_the_same_bytes(page, site):
    report = answered(page)
    with offline(page):
        # What changes a report is loaded when a person does.
        assert attempt(page, OPEN + "return device.consent(study);", DOCUMENT, None)["error"] == "module"
        assert status(page)["report"]["state"] == "held"
    consent(page)
    flushing = OPEN + "return device.flush({ attempts: 1 });"
    with offline(page):
        # What sends is loaded when something waits.
        assert attempt(page, flushing, DOCUMENT, None)["error"] == "module"
        assert status(page)["report"]["state"] == "queued"
    assert flush(page) == {**report, "state": "sent", **SETTLED}
    assert flush(page)["state"] == "sent"
    other = {**DOCUMENT, "id": "other"}
    answered(page, other)
    consent(page, other)
    with offline(page):
        assert flush(page, document=other)["reason"].endswith("unreachable")
        assert status(page, other)["report"]["state"] == "queued"
    assert withdraw(page) == 1
    assert site.requests == [("PUT", path_of(report), report["body"])]


@contextmanager
def offline(page):
    chromium.set_offline(page, True)
    try:
        yield
    finally:
        chromium.set_offline(page, False)


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


def test_every_request_is_tried_once_before_any_retry(page, site):
    """A deletion that is never acknowledged holds no upload of another study up."""
    answered(page)
    consent(page)
    flush(page)
    assert withdraw(page) == 1
    other = {**DOCUMENT, "id": "other"}
    answered(page, other)
    consent(page, other)
    site.statuses, site.study = [503, 503], Study(other).canonical().decode()
    assert flush(page, attempts=2, document=other)["state"] == "sent"
    assert [method for method, *_ in site.requests] == ["PUT", "DELETE", "PUT", "DELETE", "PUT"]


def refuse(site, name, status, digest):
    """Make the collector answer with this problem, for the study with that digest."""
    said = {"type": f"urn:ldpkit:problem:{name}", "digest": digest}
    site.refusals[status] = ("application/problem+json", json.dumps(said))


def test_permanently_rejected_report_is_not_sent_again(page, site):
    report = answered(page)
    consent(page)
    site.statuses = [422]
    refuse(site, "report-invalid", 422, report["digest"])
    assert flush(page, attempts=5)["state"] == "refused"
    assert flush(page)["state"] == "refused"
    assert len(site.requests) == 1


def test_withdrawing_a_rejected_report_requests_its_deletion(page, site):
    """Its first upload arrived, and the answer was lost."""
    report = answered(page)
    consent(page)
    site.statuses = [502, 409]
    refuse(site, "report-conflict", 409, report["digest"])
    assert flush(page, attempts=5)["state"] == "refused"
    assert withdraw(page) == 1
    left = status(page)["report"]
    assert {**left, "reason": ""} == wiped(report)
    assert flush(page) is None
    assert [(method, path) for method, path, _ in site.requests[2:]] == [("DELETE", path_of(report))]


def test_report_is_sent_only_to_its_own_collector(page, site):
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
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    assert elsewhere != site.url
    assert run(page, script, DOCUMENT, ANSWERS, elsewhere) == ["queued", "sent", "withdrawn", "gone"]
    assert [method for method, _, _ in site.requests] == ["PUT", "DELETE"]


def test_two_base_paths_on_one_host_are_one_collector(page, site):
    """The second one asks nothing again, and the report goes to the path that it was made for."""
    script = """
    const [document, answers, first, second] = args;
    const study = await parseStudy(JSON.stringify(document));
    const one = await openDevice({ maxEpsilon: "4", collector: first });
    const other = await openDevice({ maxEpsilon: "4", collector: second });
    const { collector } = await one.answer(study, answers);
    const again = await other.answer(study, answers).catch(({ code }) => code);
    await other.consent(study);
    await other.flush({ attempts: 1 });
    return [collector, again, (await one.status(study)).report.state];
    """
    paths = [site.url, f"{site.url}/other"]
    assert run(page, script, DOCUMENT, ANSWERS, *paths) == [site.url, "answered", "sent"]
    assert [path.startswith("/v1/studies/") for _, path, _ in site.requests] == [True]


@pytest.mark.parametrize("spelling", ["/", "upper case"])
def test_report_is_sent_to_any_spelling_of_its_collector(page, site, spelling):
    """The app opens the device with another spelling from the one that the report was made with."""
    script = """
    const [document, answers, first, later] = args;
    const study = await parseStudy(JSON.stringify(document));
    const one = await openDevice({ maxEpsilon: "4", collector: first });
    const other = await openDevice({ maxEpsilon: "4", collector: later });
    const { collector } = await one.answer(study, answers);
    await one.consent(study);
    await other.flush({ attempts: 1 });
    const { state } = (await one.status(study)).report;
    await one.withdraw(study.id);
    await other.flush({ attempts: 1 });
    return [collector, state, (await one.status(study)).report?.state ?? "gone"];
    """
    spelled = f"{site.url}/" if spelling == "/" else site.url.upper()
    assert run(page, script, DOCUMENT, ANSWERS, spelled, site.url) == [site.url, "sent", "gone"]


def test_invitation_is_used_for_one_waiting_report(page, site):  # noqa: ARG001
    """The other one's, of an earlier version, is not lost."""
    script = """
    const [document, answers] = args;
    const device = await openDevice({ maxEpsilon: "4" });
    for (const number of [1, 2]) {
      const study = await parseStudy(JSON.stringify({ ...document, version: number }));
      await device.answer(study, answers, `for ${number}`);
      await device.consent(study);
    }
    await device.invite(document.id, "another");
    const opened = await new Promise((resolve) => {
      indexedDB.open("ldpkit").onsuccess = ({ target }) => resolve(target.result);
    });
    const kept = await new Promise((resolve) => {
      const store = opened.transaction("ledger").objectStore("ledger");
      store.get(0).onsuccess = ({ target }) => resolve(target.result);
    });
    return kept.reports.map(({ invitation }) => invitation);
    """
    document = studies.document(studies.MEMOIZED)
    answers = {question["id"]: "yes" for question in document["questions"]}
    assert run(page, script, document, answers) == ["for1", "another"]


@pytest.mark.parametrize("job", ["withdraw('surwey')", "invite('surwey', 'code')"])
def test_a_mistyped_study_is_refused(page, job):
    """A 0 would read as if all were deleted; what was answered stays as it is."""
    answered(page)
    assert attempt(page, OPEN + f"return device.{job};", DOCUMENT, None) == {
        "error": "input",
        "field": "study",
    }
    assert status(page)["report"]["state"] == "held"


def test_withdrawal_before_consent_leaves_nothing_but_the_spend(page, site):
    answered(page)
    assert withdraw(page) == 0
    assert status(page) == {"answered": True, "report": None}
    assert flush(page) is None
    assert site.requests == []
    again = attempt(page, OPEN + "return device.answer(study, answers);", DOCUMENT, ANSWERS)
    assert again["error"] == "answered"


def test_withdrawal_asks_for_deletion_until_it_is_acknowledged(page, site):
    report = answered(page)
    consent(page)
    flush(page)
    assert withdraw(page) == 1
    assert status(page)["report"] == wiped(report)
    others = [405, 503, 204, 404, 410, 200]
    for other in others:
        site.statuses = [other]
        left = flush(page)
        assert left["state"] == "withdrawn"
        assert str(other) in left["reason"]
    site.identity = "f" * 32
    assert flush(page)["state"] == "withdrawn"
    site.identity = IDENTITY
    assert flush(page) is None
    assert [(method, path) for method, path, _ in site.requests[1:]] == [("DELETE", path_of(report))] * 8
    assert site.secrets == [report["secret"]] * 8
    assert status(page) == {"answered": True, "report": None}


@pytest.mark.parametrize("status_code", [200, 204, 302, 401, 403, 404, 410, 413, 422, 451])
def test_answers_of_proxies_and_captive_portals_drop_no_report(page, site, status_code):
    report = answered(page)
    consent(page)
    site.statuses = [status_code]
    left = flush(page)
    assert (left["state"], left["body"]) == ("queued", report["body"])
    assert flush(page)["state"] == "sent"


def test_only_the_studys_collector_can_reject_permanently(page, site):
    report = answered(page)
    consent(page)

    def state_after(name, digest, identity=IDENTITY):
        refuse(site, name, 409, digest)
        site.statuses, site.identity = [409], identity
        return flush(page)["state"]

    digest = report["digest"]
    assert state_after("study-unknown", digest) == "queued"
    assert state_after("report-withdrawn", Study({**DOCUMENT, "title": "Another"}).digest) == "queued"
    assert state_after("report-withdrawn", digest, "f" * 32) == "queued"
    assert state_after("invitation-needed", digest, "f" * 32) == "queued"
    assert state_after("study-closed", digest) == "queued"
    assert state_after("report-withdrawn", digest) == "refused"
    assert len(site.requests) == 6
    assert site.asked == ["/v1/studies/survey?version=1"]


@pytest.mark.parametrize(
    "served", ["", "<html>", Study({**DOCUMENT, "title": "Another"}).canonical().decode()]
)
def test_no_report_is_sent_before_its_collector_is_known(page, site, served):
    report = answered(page)
    assert report["publisher"] == ""
    consent(page)
    site.study = served
    left = flush(page, attempts=5)
    assert {**left, "reason": ""} == {**report, "state": "queued", "reason": ""}
    assert left["reason"].startswith("unserved ")
    assert site.requests == []
    site.study = CANONICAL
    assert flush(page)["state"] == "sent"
    assert site.asked == ["/v1/studies/survey?version=1"] * 2


def test_another_collector_does_not_settle_a_lost_upload(page, site):
    """It may not know the report, and its receipt would make the device drop the secret."""
    report = answered(page)
    consent(page)
    site.statuses = [502]
    left = flush(page)
    assert (left["state"], left["publisher"]) == ("queued", IDENTITY)
    site.identity = "f" * 32
    assert flush(page)["state"] == "queued"
    assert withdraw(page) == 1
    left = flush(page)
    assert (left["state"], left["secret"]) == ("withdrawn", report["secret"])
    site.identity = IDENTITY
    assert flush(page) is None


def test_collector_gets_no_request_for_an_unsent_report(page, site):
    """Consented to, and also tried where no collector of the study was found."""
    for study in (CANONICAL, ""):
        document = {**DOCUMENT, "id": f"never-{len(study)}"}
        site.study = study
        answered(page, document)
        consent(page, document)
        if not study:
            flush(page, document=document)
        assert withdraw(page, document) == 0
        assert flush(page, document=document) is None
    assert site.requests == []


@pytest.mark.parametrize(("days", "state"), [(29, "queued"), (32, "refused")])
def test_closed_study_expires_thirty_days_after_its_last_day(page, site, days, state):
    last = date.today() - timedelta(days)
    document = {**DOCUMENT, "closes": last.isoformat()}
    study = Study(document)
    shift = f"const now = Date.now; Date.now = () => now() - {(days + 1) * 86_400_000};"
    script = OPEN.replace("const study", shift + " const study", 1)
    script += (
        "const report = await device.answer(study, answers); await device.consent(study); Date.now = now;"
    )
    run(page, script + "return report;", document, ANSWERS)
    refuse(site, "study-closed", 410, study.digest)
    site.statuses, site.study = [410], study.canonical().decode()
    assert flush(page, document=document)["state"] == state


def test_invitation_is_sent_with_the_report_and_forgotten(page, site):
    script = OPEN + "return device.answer(study, answers, 'first');"
    report = run(page, script, DOCUMENT, ANSWERS)
    assert report["invitation"] == "first"
    assert "first" not in report["body"]
    consent(page)
    site.statuses = [403]
    refuse(site, "invitation-needed", 403, "")
    assert flush(page, attempts=5)["state"] == "uninvited"
    assert len(site.requests) == 1
    run(page, OPEN + "return device.invite(study.id, 'second');", DOCUMENT, None)
    assert flush(page) == {**report, "state": "sent", "invitation": "", **SETTLED}
    assert site.invitations == ["first", "second"]
    assert site.bodies() == [report["body"]] * 2


def test_no_invitation_header_without_an_invitation(page, site):
    answered(page)
    consent(page)
    flush(page)
    assert site.invitations == [None]
