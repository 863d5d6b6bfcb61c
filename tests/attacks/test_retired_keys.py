"""A signing key is retired, or was stolen: a panel ends, or a stranger is given what a key was answered.

Defence: The device: what a question was answered goes over to the key that asks it again in the same words
while both are pinned, to the newer one where both signed, never to a collector or to other words, in one of
its languages even; both keys' rows of a question become one; it names the key where the answer is
another's, and the guide's gateway tells who sends nothing of a version. Known limit: a device that answered
nothing while both were pinned answers that panel only once both are pinned again.
"""

import pytest

from ldp_client.core.public_keys import PublicKey
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.documents.signed import SignedStudy
from ldp_client.files.signing import new_key, sign_study
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting
from tests.portable.embedding_guide import code

HERE, THERE = "https://institute.example", "https://moved.example"
SURE = {"epsilon": "16", "instantaneous_epsilon": "15.9"}
SMOKES = {**studies.MEMOIZED, "text": "Do you smoke?"}
SMOKES["mechanism"] = {**SMOKES["mechanism"], **SURE}
DRINKS = {**SMOKES, "id": "drinks", "text": "Do you drink?"}
OTHER_HABIT = {**SMOKES, "text": "Do you take opiates?"}
OLD, NEW = new_key(), new_key()
OLD_ID, NEW_ID = (PublicKey.from_pem(public).id[:16] for _, public in (OLD, NEW))
YES, NO = {"habit": b"\x01"}, {"habit": b"\x00"}


def signed_by(study, *signers):
    return SignedStudy(study, [sign_study(study, key[0].encode()).signatures[0] for key in signers])


def answer(folder, version, signer, *pinned, asked=(SMOKES,), said="no", place=HERE, **fields):
    """Answer a version that a key or several signed, on a device with these keys pinned; what is left of its
    budget.
    """
    signers = [signer] if isinstance(signer, tuple) else signer
    study = Study(studies.document(*asked, version=version, **fields))
    device = consenting(folder, "60", place, signing_keys=[public for _, public in pinned] or None)
    device.accept(signed_by(study, *signers) if pinned else study)
    device.answer(study, {question["id"]: said for question in asked})
    return device.epsilon_left


def payloads(folder):
    queued = consenting(folder, "60").ledger.queued()
    reports = sorted([Report.from_json(item.body) for item in queued], key=lambda report: report.version)
    return [report.payloads for report in reports]


def test_panel_continues_after_old_key_is_removed(tmp_path):
    answer(tmp_path, 1, OLD, OLD, said="yes")
    answer(tmp_path, 2, NEW, OLD, NEW)
    answer(tmp_path, 3, NEW, NEW)
    assert answer(tmp_path, 4, NEW, OLD, NEW) == 60 - 16
    assert payloads(tmp_path) == [YES] * 4


def test_sample_one_panel_continues_after_old_key_is_removed(tmp_path):
    asked = {"asked": (SMOKES, DRINKS), "sample_one_question": True}
    answer(tmp_path, 1, OLD, OLD, **asked)
    answer(tmp_path, 2, NEW, OLD, NEW, **asked)
    for version in range(3, 9):
        answer(tmp_path, version, NEW, NEW, **asked)


def test_late_signed_panel_continues_after_move(tmp_path):
    answer(tmp_path, 1, OLD, said="yes")
    answer(tmp_path, 2, OLD, OLD)
    answer(tmp_path, 3, OLD, OLD, place=THERE)
    assert payloads(tmp_path) == [YES] * 3


@pytest.mark.parametrize("order", [1, -1])
def test_panel_continues_while_both_keys_sign(tmp_path, order):
    both = [OLD, NEW][::order]
    answer(tmp_path, 1, OLD, OLD, said="yes")
    answer(tmp_path, 2, both, OLD, NEW)
    answer(tmp_path, 3, both, OLD, NEW)
    answer(tmp_path, 4, both, NEW)
    answer(tmp_path, 5, both, OLD, NEW)
    assert answer(tmp_path, 6, NEW, NEW) == 60 - 16
    assert payloads(tmp_path) == [YES] * 6


@pytest.mark.parametrize("pinned", [(OLD, NEW), (NEW, OLD)], ids=["new last", "new first"])
def test_answers_do_not_return_to_older_key(tmp_path, pinned):
    answer(tmp_path, 1, OLD, OLD, said="yes")
    answer(tmp_path, 2, NEW, *pinned)
    answer(tmp_path, 3, [OLD, NEW], *pinned)
    answer(tmp_path, 4, OLD, *pinned)
    answer(tmp_path, 5, [NEW, OLD], *pinned)
    assert answer(tmp_path, 6, NEW, NEW) == 60 - 16
    assert payloads(tmp_path) == [YES] * 6


def test_answers_under_both_keys_belong_to_newer_key(tmp_path):
    for version in (1, 2):
        answer(tmp_path, version, [OLD, NEW], OLD, NEW)
    assert answer(tmp_path, 3, NEW, NEW) == 60 - 16


def test_version_signed_by_both_keys_can_be_answered_under_either(tmp_path):
    study = Study(studies.document(SMOKES))
    consenting(tmp_path, "60", HERE, signing_keys=[OLD[1], NEW[1]]).accept(signed_by(study, OLD, NEW))
    for _, public in (OLD, NEW):
        consenting(tmp_path, "60", HERE, signing_keys=[public]).consent(study)


def test_device_that_missed_key_change_is_told_old_key(tmp_path):
    answer(tmp_path, 1, OLD, OLD, said="yes")
    with raises(AlreadyAnsweredError, "device.question_answered", OLD_ID):
        answer(tmp_path, 2, NEW, NEW)
    answer(tmp_path, 3, NEW, OLD, NEW)
    assert payloads(tmp_path) == [YES] * 2


def test_collector_never_takes_over_answers_of_key(tmp_path):
    answer(tmp_path, 1, OLD, OLD)
    answer(tmp_path, 2, NEW, OLD, NEW)
    for place in (HERE, THERE):
        with raises(AlreadyAnsweredError, "device.question_answered", NEW_ID):
            answer(tmp_path, 3, NEW, place=place)


def test_stolen_key_cannot_block_previous_key(tmp_path):
    answer(tmp_path, 1, OLD, OLD, said="yes")
    answer(tmp_path, 2, NEW, OLD, NEW, asked=[OTHER_HABIT])
    answer(tmp_path, 3, OLD, OLD)
    assert payloads(tmp_path) == [YES, NO, YES]


def in_both(english, german):
    return {**SMOKES, "text": {"en": english, "de": german}}


def test_stolen_key_with_changed_translation_cannot_block_previous_key(tmp_path):
    first = in_both("Do you smoke?", "Rauchen Sie?")
    fields = {"languages": ["en", "de"]}
    answer(tmp_path, 1, OLD, OLD, asked=[first], said="yes", **fields)
    answer(tmp_path, 2, NEW, OLD, NEW, asked=[in_both("Do you smoke?", "Opiate?")], **fields)
    assert answer(tmp_path, 3, OLD, OLD, asked=[first], **fields) == 60 - 2 * 16
    assert payloads(tmp_path) == [YES, NO, YES]


def test_panel_with_restored_words_continues_under_new_key(tmp_path):
    answer(tmp_path, 1, OLD, OLD, said="yes")
    answer(tmp_path, 2, NEW, OLD, NEW, asked=[OTHER_HABIT])
    answer(tmp_path, 3, NEW, OLD, NEW)
    answer(tmp_path, 4, NEW, NEW)
    assert answer(tmp_path, 5, NEW, NEW, asked=[OTHER_HABIT]) == 60 - 2 * 16
    assert payloads(tmp_path) == [YES, NO, YES, YES, NO]


def test_panel_continues_when_new_key_has_other_answer(tmp_path):
    answer(tmp_path, 1, OLD, OLD, said="yes")
    answer(tmp_path, 2, NEW, NEW, asked=[OTHER_HABIT])
    answer(tmp_path, 3, NEW, OLD, NEW)
    answer(tmp_path, 4, NEW, NEW)
    assert answer(tmp_path, 5, NEW, NEW, asked=[OTHER_HABIT]) == 60 - 2 * 16
    assert payloads(tmp_path) == [YES, NO, YES, YES, NO]


def test_panel_continues_after_gaining_language(tmp_path):
    asked = [in_both("Do you smoke?", german) for german in ("Rauchen Sie?", "Opiate?")]
    for version, question in enumerate(asked, 1):
        answer(tmp_path, version, OLD, OLD, asked=[question], said="yes", languages=["en", "de"])
    wider = {**asked[0], "text": {**asked[0]["text"], "fr": "Fumez-vous ?"}}
    for version, pinned in ((3, [OLD, NEW]), (4, [NEW])):
        answer(tmp_path, version, NEW, *pinned, asked=[wider], languages=["en", "de", "fr"])
    assert payloads(tmp_path) == [YES] * 4


def test_withdrawal_covers_answers_carried_over_to_new_key(tmp_path):
    answer(tmp_path, 1, OLD, OLD)
    answer(tmp_path, 2, NEW, OLD, NEW)
    consenting(tmp_path, "60", HERE, signing_keys=[NEW[1]]).withdraw("survey")
    assert payloads(tmp_path) == []
    with raises(AlreadyAnsweredError, "device.withdrawn"):
        answer(tmp_path, 3, NEW, OLD, NEW)


def test_guide_gateway_prints_who_sends_nothing_for_version(tmp_path, capsys):
    with Server() as server:
        gateway = {"FOLDER": tmp_path, "COLLECTOR": server.url}
        exec(code("python", "answer_for"), gateway)
        for version, said in ((1, ""), (1, ""), (2, "this device has answered it before")):
            study = Study(studies.document(studies.YES_NO, version=version))
            assert gateway["answer_for"]("member", study, {"ever": True})
            told = capsys.readouterr().out
            assert said in told
            assert bool(said) == bool(told)
        assert len(server.asked("PUT")) == 1
