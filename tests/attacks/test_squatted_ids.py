"""Another collector publishes a study under the id of a known one, to block it or to speak for it.

Defence: The device: keeps what it knows by publisher (the pinned keys, else the collector's base URL; not
its identity, which anybody can repeat); each answer is charged to the budget of a life, and what has the
same words under one id is answered once, whoever asks. Known limit: who publishes an exact copy first, and
is answered, keeps the original from being answered; browsers, too, count versions by collector, but go by a
question's id, not its words: what one collector asked is refused to another's study of that id, in other
words too.
"""

import sqlite3

import pytest

from ldp_client.documents.errors import AlreadyAnsweredError, BudgetError, RefusedError
from ldp_client.files.signing import new_key, sign_study
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
OTHER_HABIT = {**SMOKES, "text": "Do you take opiates?"}


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


@pytest.mark.parametrize("version", [2, 3])
def test_collector_under_other_address_gets_no_second_answer(tmp_path, version):
    consenting(tmp_path, "40", KNOWN).answer(STUDY, {"ever": True})
    moved = consenting(tmp_path, "40", "https://institute.example:8443")
    with pytest.raises(AlreadyAnsweredError):
        moved.answer(Study(studies.document(ASKED, version=version)), {"ever": True})
    assert moved.epsilon_left == 39


def test_all_earlier_words_of_question_are_remembered(tmp_path):
    known = consenting(tmp_path, "60", KNOWN)
    for version, question in enumerate((SMOKES, OTHER_HABIT), 1):
        known.answer(Study(studies.document(question, version=version)), {"habit": "yes"})
    moved = consenting(tmp_path, "60", SQUATTER)
    for question in (SMOKES, OTHER_HABIT):
        with pytest.raises(AlreadyAnsweredError):
            moved.answer(Study(studies.document(question, version=3)), {"habit": "yes"})


def test_permanent_answer_is_repeated_only_to_its_publisher(tmp_path):
    first, second = (Study(studies.document(SMOKES, version=number)) for number in (1, 2))
    known = consenting(tmp_path, "60", KNOWN)
    known.answer(first, {"habit": "yes"})
    other = consenting(tmp_path, "60", SQUATTER)
    with pytest.raises(AlreadyAnsweredError):
        other.answer(second, {"habit": "yes"})
    report = other.answer(Study(studies.document(OTHER_HABIT, version=7)), {"habit": "no"})
    known.answer(second, {"habit": "no"})
    payloads = {item.report_id: Report.from_json(item.body).payloads for item in known.ledger.queued()}
    assert payloads.pop(report) == {"habit": b"\x00"}
    assert list(payloads.values()) == [{"habit": b"\x01"}] * 2
    # What was first asked of the other is new, and paid for.
    assert known.epsilon_left == 60 - 2 * 16


def test_consent_covers_only_one_publisher(tmp_path):
    known, other = (consenting(tmp_path, "40", url) for url in (KNOWN, SQUATTER))
    known.require_consent = other.require_consent = True
    known.consent(STUDY)
    with raises(RefusedError, "device.no_consent"):
        other.answer(STUDY, {"ever": True})
    known.answer(STUDY, {"ever": True})


def test_invitation_applies_to_only_one_publisher(met):
    device = consenting(met, "40", KNOWN)
    mine = device.answer(STUDY, {"ever": True})
    device.invite("survey", "word")
    assert {item.report_id for item in device.ledger.queued() if item.invitation} == {mine}


def test_withdrawal_covers_only_one_publisher(tmp_path):
    with Server() as known, Server() as other:
        squatted = consenting(tmp_path, "40", other.url)
        squatted.answer(SQUATTED, {"ever": True})
        device = consenting(tmp_path, "40", known.url)
        device.answer(STUDY, {"ever": True})
        assert device.flush().sent == squatted.flush().sent == 1
        assert squatted.withdraw("survey") == 1
        assert (squatted.flush().deleted, device.flush().deleted) == (1, 0)
        assert known.asked("DELETE") == []
        assert device.withdraw("survey") == 1
        assert device.flush().deleted == 1


def test_pinned_keys_identify_publisher_after_move(met):
    (signer, one), (next_signer, another) = new_key(), new_key()
    keys = {"signing_keys": [one, another]}
    first, second, older = (Study(studies.document(SMOKES, version=number)) for number in (2, 3, 1))
    known = consenting(met, "60", KNOWN, **keys)
    known.accept(sign_study(first, signer.encode()))
    known.answer(first, {"habit": "yes"})
    moved = consenting(met, "60", "https://moved.example", **keys)
    with raises(RefusedError, "device.older_version", "2"):
        moved.accept(sign_study(older, signer.encode()))
    # Keys change: what was answered under one is repeated under the other.
    moved.accept(sign_study(second, next_signer.encode()))
    moved.answer(second, {"habit": "no"})
    payloads = [Report.from_json(item.body).payloads for item in moved.ledger.queued()]
    assert payloads.count({"habit": b"\x01"}) == 2


def test_answer_without_collector_counts_for_every_publisher(tmp_path):
    """The ledger does not know whose study was answered, so that no publisher gets another answer."""
    consenting(tmp_path, "40").answer(STUDY, {"ever": True})
    for url in (KNOWN, SQUATTER):
        device = consenting(tmp_path, "40", url)
        with pytest.raises(AlreadyAnsweredError):
            device.answer(Study(studies.document({**ASKED, "text": "Never?"}, version=3)), {"ever": True})
        with raises(RefusedError, "device.older_version"):
            device.accept(Study(studies.document(ASKED, version=1)))
    connection = sqlite3.connect(tmp_path / "ledger.sqlite3")
    assert connection.execute("SELECT DISTINCT publisher FROM spent").fetchall() == [("",)]
    connection.close()


def test_signed_study_is_withdrawn_where_report_was_sent(tmp_path):
    signer, public = new_key()
    with Server() as server:
        device = consenting(tmp_path, "40", server.url, signing_keys=[public])
        device.accept(sign_study(STUDY, signer.encode()))
        device.answer(STUDY, {"ever": True})
        assert device.flush().sent == 1
        with raises(RefusedError, "device.of_others", "from the key"):
            consenting(tmp_path, "40", SQUATTER).withdraw("survey")
        assert consenting(tmp_path, "40", server.url).withdraw("survey") == 1
        assert device.flush().deleted == 1
