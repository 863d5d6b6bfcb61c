"""A key is pinned late and the collector moves: a withdrawal passes one of two reports by, in silence.

Defence: The device: names the publishers of that id that it leaves out, with exit code 1, and withdraws
from all with `--everywhere`.
"""

import pytest

from ldp_client.cli import main
from ldp_client.documents.errors import BudgetError, RefusedError
from ldp_client.files.signing import new_key, sign_study
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting
from tests.secure_sum.conftest import ADDRESSES, ANSWERS, INVITATION, build_study

ASKED = {**studies.YES_NO, "text": "Have you ever?"}
FIRST = Study(studies.document(ASKED, version=1))
SECOND = Study(studies.document({**ASKED, "id": "again", "text": "And again?"}, version=2))
OTHER = Study(studies.document({**ASKED, "text": "Do you like it?"}, version=9))
SIGNER, PUBLIC = new_key()
NODE = ADDRESSES[0].partition("#")[0]


@pytest.fixture
def old():
    with Server() as server:
        yield server


@pytest.fixture
def new():
    with Server() as server:
        yield server


@pytest.fixture
def moved(tmp_path, old, new):
    """A device with the key, at the new place: one report was sent before the key was pinned, one after."""
    before = consenting(tmp_path, "4", old.url)
    before.answer(FIRST, {"ever": True})
    assert before.flush().sent == 1
    after = consenting(tmp_path, "4", new.url, signing_keys=[PUBLIC])
    after.accept(sign_study(SECOND, SIGNER.encode()))
    after.answer(SECOND, {"again": True})
    assert after.flush().sent == 1
    return after


def test_replaced_key_keeps_study_budget(tmp_path, old):
    """The device's owner pins the publisher's next key in place of the first."""
    next_signer, next_public = new_key()
    limits = {"max_epsilon_per_study": "1.5"}
    before = consenting(tmp_path, "4", old.url, signing_keys=[PUBLIC], **limits)
    before.answer(before.accept(sign_study(FIRST, SIGNER.encode())), {"ever": True})
    after = consenting(tmp_path, "4", old.url, signing_keys=[next_public], **limits)
    study = after.accept(sign_study(SECOND, next_signer.encode()))
    with raises(BudgetError, "device.costs", "epsilon 1", "0.5", "the limit for one study"):
        after.answer(study, {"again": True})
    assert after.epsilon_left == 3


@pytest.mark.parametrize(("place", "withdraws"), [(None, False), ("https://institute.example", True)])
def test_study_budget_is_kept_without_known_collector(tmp_path, place, withdraws):
    """The first report was made without a collector, or is withdrawn."""
    next_signer, next_public = new_key()
    limits = {"max_epsilon_per_study": "1.5"}
    before = consenting(tmp_path, "4", place, signing_keys=[PUBLIC], **limits)
    before.answer(before.accept(sign_study(FIRST, SIGNER.encode())), {"ever": True})
    if withdraws:
        before.withdraw("survey")
    after = consenting(tmp_path, "4", "https://institute.example", signing_keys=[next_public], **limits)
    study = after.accept(sign_study(SECOND, next_signer.encode()))
    with raises(BudgetError, "device.costs", "epsilon 1", "0.5", "the limit for one study"):
        after.answer(study, {"again": True})


def test_study_budget_is_kept_after_deletion_and_move(tmp_path):
    """The next report names another collector, but the first collector has been told an answer too."""
    here, elsewhere = "https://here.example", "https://elsewhere.example"
    limits = {"max_epsilon_per_study": "2.5"}
    device = consenting(tmp_path, "8", here, signing_keys=[PUBLIC], **limits)
    device.answer(device.accept(sign_study(FIRST, SIGNER.encode())), {"ever": True})
    device.withdraw("survey")
    device = consenting(tmp_path, "8", elsewhere, signing_keys=[PUBLIC], **limits)
    device.answer(device.accept(sign_study(SECOND, SIGNER.encode())), {"again": True})
    with raises(BudgetError, "device.costs", "epsilon 1", "0.5", "the limit for one study"):
        consenting(tmp_path, "8", here, **limits).answer(OTHER, {"ever": True})


def sum_on(folder, question, version, signer, public):
    """Answer one version of a signed secure sum."""
    study = Study({**build_study(question).document, "version": version})
    limits = {"max_epsilon_per_study": "1.5", "max_delta": "0.001"}
    device = consenting(folder, "8", NODE, signing_keys=[public], nodes=ADDRESSES, **limits)
    device.answer(
        device.accept(sign_study(study, signer.encode())), {question: ANSWERS[question]}, INVITATION
    )


def test_next_key_of_secure_sum_keeps_study_budget(tmp_path):
    sum_on(tmp_path, "ever", 1, SIGNER, PUBLIC)
    with raises(BudgetError, "device.costs", "0.5", "the limit for one study"):
        sum_on(tmp_path, "fruit", 2, *new_key())


@pytest.mark.parametrize("node", ADDRESSES)
def test_secure_sum_needs_no_key_to_withdraw_or_invite(tmp_path, node):
    sum_on(tmp_path, "ever", 1, SIGNER, PUBLIC)
    device = consenting(tmp_path, "8", node.partition("#")[0], nodes=ADDRESSES)
    device.invite("summed", "another")
    assert device.ledger.queued()[0].invitation == "another"
    stranger = consenting(tmp_path, "8", "https://127.0.0.1:900", nodes=ADDRESSES)
    with raises(RefusedError, "device.of_others"):
        stranger.withdraw("summed")
    assert device.answered_elsewhere("summed") == []
    device.withdraw("summed")
    assert device.ledger.queued() == []


def test_withdrawal_warns_of_reports_at_other_publisher(moved, old, caplog):
    assert moved.answered_elsewhere("survey") == [old.url]
    assert moved.withdraw("survey") == 1
    assert [old.url in message for message in caplog.messages] == [True]
    assert moved.answered_elsewhere("survey") == [old.url]


def test_withdraw_everywhere_deletes_at_each_collector(tmp_path, moved, old, new, caplog):
    assert moved.withdraw("survey", everywhere=True) == 2
    assert (caplog.messages, moved.answered_elsewhere("survey")) == ([], [])
    flushed = moved.flush()
    assert (flushed.deleted, flushed.undeleted) == (1, 1)
    assert old.url in flushed.reason
    assert consenting(tmp_path, "4", old.url).flush().deleted == 1
    assert [len(server.asked("DELETE")) for server in (old, new)] == [1, 1]


def test_withdrawal_by_address_covers_signed_reports_there(tmp_path, old):
    """Both reports belong to one collector, so that no key is needed."""
    consenting(tmp_path, "4", old.url).answer(FIRST, {"ever": True})
    pinned = consenting(tmp_path, "4", old.url, signing_keys=[PUBLIC])
    pinned.accept(sign_study(SECOND, SIGNER.encode()))
    pinned.answer(SECOND, {"again": True})
    assert pinned.flush().sent == 2
    assert consenting(tmp_path, "4", old.url).withdraw("survey") == 2


@pytest.mark.usefixtures("moved")
def test_withdraw_command_exits_1_with_reports_left_elsewhere(tmp_path, old, new, capsys, caplog):
    (tmp_path / "key.pem").write_text(PUBLIC)
    url = f"{new.url}/v1/studies/survey"
    given = ["--folder", str(tmp_path), "--trusted-signer", str(tmp_path / "key.pem")]
    assert main(["withdraw", url, *given]) == 1
    assert "withdrew from survey: 1 report to be deleted" in capsys.readouterr().out
    assert f"has also answered the study of this id from {old.url}" in caplog.text
    main(["withdraw", url, *given, "--everywhere"])
    assert main(["withdraw", f"{old.url}/v1/studies/survey", "--folder", str(tmp_path)]) == 0
    assert [len(server.asked("DELETE")) for server in (old, new)] == [1, 1]


def test_withdrawal_revokes_consent_without_answer(tmp_path, old, caplog):
    consenting(tmp_path, "4", old.url).answer(FIRST, {"ever": True})
    device = consenting(tmp_path, "4", "https://other.example")
    device.require_consent = True
    device.consent(OTHER)
    assert device.withdraw("survey") == 0
    assert old.url in caplog.text
    with raises(RefusedError, "device.no_consent"):
        device.answer(OTHER, {"ever": True})
    with raises(RefusedError, "device.of_others"):
        device.withdraw("survey")
