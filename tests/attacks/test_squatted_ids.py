"""Another collector publishes a study under the id of a known one, to block it or to speak for it.

Defence: The device: a study is known by its collector's origin (scheme, host and port) and its id. Versions,
consents, permanent answers, invitations and withdrawals belong to one origin, and each answer is charged to
the budget of a life. Known limit: the same words under another host are another study.
"""

import sqlite3
from contextlib import closing

import pytest

from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError, InputError, RefusedError
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

KNOWN, SQUATTER = "https://institute.example", "https://squatter.example"
ASKED = {**studies.YES_NO, "text": "Have you ever?"}
STUDY = Study(studies.document(ASKED, version=2))
SQUATTED = Study(studies.document({**studies.YES_NO, "text": "Do you like it?"}, version=1_000_000))
SURE = {"epsilon": "16", "instantaneous_epsilon": "15.9"}
SMOKES = {**studies.MEMOIZED, "text": "Do you smoke?"}
SMOKES["mechanism"] = {**SMOKES["mechanism"], **SURE}


@pytest.fixture
def met(tmp_path):
    """A folder whose device has answered the squatter's study."""
    device = consenting(tmp_path, "40", SQUATTER)
    device.accept(SQUATTED)
    device.answer(SQUATTED, {"ever": True})
    return tmp_path


def test_squatted_high_version_does_not_block_known_study(met):
    device = consenting(met, "40", KNOWN)
    device.accept(STUDY)
    device.answer(STUDY, {"ever": True})
    assert device.epsilon_left == 38


def test_same_version_with_other_document_does_not_block_known_study(met):
    twin = Study(studies.document(ASKED, version=SQUATTED.version))
    consenting(met, "40", KNOWN).accept(twin)
    with raises(RefusedError, "device.other_version"):
        consenting(met, "40", SQUATTER).accept(twin)


def test_each_answer_counts_against_lifetime_budget(met):
    with pytest.raises(BudgetError):
        consenting(met, "1.5", KNOWN).answer(STUDY, {"ever": True})
    device = consenting(met, "40", KNOWN, max_epsilon_per_study="1", raise_budget=True)
    device.answer(STUDY, {"ever": True})
    assert device.epsilon_left == 38


def test_permanent_answer_is_repeated_only_to_its_collector(tmp_path):
    first, second = (Study(studies.document(SMOKES, version=number)) for number in (1, 2))
    known = consenting(tmp_path, "60", KNOWN)
    known.answer(first, {"habit": "yes"})
    other = consenting(tmp_path, "60", SQUATTER)
    report = other.answer(second, {"habit": "no"})
    known.answer(second, {"habit": "no"})
    payloads = {item.report_id: Report.from_json(item.body).payloads for item in known.ledger.queued()}
    assert payloads.pop(report) == {"habit": b"\x00"}
    assert list(payloads.values()) == [{"habit": b"\x01"}] * 2
    assert known.epsilon_left == 60 - 2 * 16


@pytest.mark.parametrize("moved", ["https://institute.example/surveys", "https://new.example"])
def test_collector_that_moved_gets_the_permanent_answer_again(tmp_path, moved):
    first, second = (Study(studies.document(SMOKES, version=number)) for number in (1, 2))
    consenting(tmp_path, "60", KNOWN).answer(first, {"habit": "yes"})
    device = consenting(tmp_path, "60", moved, formerly=[f"{KNOWN}/old"])
    device.answer(second, {"habit": "no"})
    payloads = [Report.from_json(item.body).payloads for item in device.ledger.queued()]
    assert payloads == [{"habit": b"\x01"}] * 2
    assert device.epsilon_left == 60 - 16


def test_report_is_sent_to_the_address_that_the_collector_moved_to(tmp_path):
    with Server() as old, Server() as new:
        consenting(tmp_path, "40", old.url).answer(STUDY, {"ever": True})
        assert consenting(tmp_path, "40", new.url).flush(attempts=1).waiting == 1
        assert consenting(tmp_path, "40", new.url, formerly=[old.url]).flush().sent == 1
        assert (len(old.asked("PUT")), len(new.asked("PUT"))) == (0, 1)


def test_consent_covers_only_one_collector(tmp_path):
    known, other = (consenting(tmp_path, "40", url) for url in (KNOWN, SQUATTER))
    known.require_consent = other.require_consent = True
    known.consent(STUDY)
    with raises(RefusedError, "device.no_consent"):
        other.answer(STUDY, {"ever": True})
    known.answer(STUDY, {"ever": True})


def test_invitation_applies_to_only_one_collector(met):
    device = consenting(met, "40", KNOWN)
    mine = device.answer(STUDY, {"ever": True})
    device.invite("survey", "word")
    assert {item.report_id for item in device.ledger.queued() if item.invitation} == {mine}


def test_withdrawal_covers_only_one_collector(tmp_path):
    with Server() as known, Server() as other:
        squatted = consenting(tmp_path, "40", other.url)
        squatted.answer(SQUATTED, {"ever": True})
        device = consenting(tmp_path, "40", known.url)
        with raises(InputError, "device.unknown_study"):
            device.withdraw("survey")
        device.answer(STUDY, {"ever": True})
        assert device.flush().sent == squatted.flush().sent == 1
        assert squatted.withdraw("survey") == 1
        assert (squatted.flush().deleted, device.flush().deleted) == (1, 0)
        assert known.asked("DELETE") == []
        assert device.withdraw("survey") == 1
        assert device.flush().deleted == 1


def test_answer_without_collector_belongs_to_the_first_one_named(tmp_path):
    consenting(tmp_path, "40").answer(STUDY, {"ever": True})
    known, other = consenting(tmp_path, "40", KNOWN), consenting(tmp_path, "40", SQUATTER)
    later = Study(studies.document({**ASKED, "text": "Never?"}, version=3))
    with pytest.raises(AlreadyAnsweredError):
        known.answer(later, {"ever": True})
    with raises(RefusedError, "device.older_version"):
        known.accept(Study(studies.document(ASKED, version=1)))
    other.answer(later, {"ever": True})
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as connection:
        assert connection.execute("SELECT DISTINCT origin FROM spent").fetchall() == [(KNOWN,), (SQUATTER,)]


def test_device_without_collector_answers_no_study_again(tmp_path):
    """Its report would go to the collector that has an answer already."""
    consenting(tmp_path, "40", KNOWN).answer(STUDY, {"ever": True})
    with raises(RefusedError, "device.name_collector", KNOWN):
        consenting(tmp_path, "40").answer(Study(studies.document(ASKED, version=3)), {"ever": True})


@pytest.mark.parametrize("later", [KNOWN, SQUATTER, "https://moved.example"])
def test_permanent_answer_is_drawn_once_for_a_collector_whatever_the_app_states(tmp_path, later):
    """Also if a version is answered without a collector, or a later app forgets where the collector was."""
    rounds = [Study(studies.document(SMOKES, version=number)) for number in (1, 2, 3)]
    consenting(tmp_path, "60").answer(rounds[0], {"habit": "yes"})
    consenting(tmp_path, "60", KNOWN).answer(rounds[1], {"habit": "no"})
    moved = consenting(tmp_path, "60", "https://moved.example", formerly=[KNOWN])
    moved.answer(rounds[2], {"habit": "no"})
    again = consenting(tmp_path, "60", later)
    again.answer(Study(studies.document(SMOKES, version=4)), {"habit": "no"})
    reports = [(item.origin, Report.from_json(item.body).payloads["habit"]) for item in again.ledger.queued()]
    for origin in (later, "https://moved.example"):
        assert len({payload for owner, payload in reports if owner == origin}) == 1
    assert again.epsilon_left == 60 - 16 * (1 + (later != "https://moved.example"))


def test_deletion_at_another_path_with_another_collector_settles_nothing(tmp_path):
    """One host may serve a test collector next to the real one."""
    with Server() as server:
        device = consenting(tmp_path, "40", server.url)
        device.answer(STUDY, {"ever": True})
        assert device.flush().sent == 1
        server.identity = "b" * 32
        other = consenting(tmp_path, "40", f"{server.url}/test")
        other.withdraw("survey")
        assert (other.flush().deleted, other.flush().undeleted) == (0, 1)
