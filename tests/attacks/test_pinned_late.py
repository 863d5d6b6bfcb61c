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


def test_a_key_that_moved_starts_no_new_budget_of_the_study(tmp_path, old):
    """The device's owner pins the publisher's next key in place of the first."""
    next_signer, next_public = new_key()
    limits = {"max_epsilon_per_study": "1.5"}
    before = consenting(tmp_path, "4", old.url, signing_keys=[PUBLIC], **limits)
    before.answer(before.accept(sign_study(FIRST, SIGNER.encode())), {"ever": True})
    after = consenting(tmp_path, "4", old.url, signing_keys=[next_public], **limits)
    study = after.accept(sign_study(SECOND, next_signer.encode()))
    with raises(BudgetError, "device.costs", "epsilon 1", "0.5", "what one study may cost"):
        after.answer(study, {"again": True})
    assert after.epsilon_left == 3


@pytest.mark.parametrize(("place", "withdraws"), [(None, False), ("https://institute.example", True)])
def test_nor_where_no_report_says_which_collector_it_was_for(tmp_path, place, withdraws):
    """The first one was made without a collector, or is withdrawn and gone."""
    next_signer, next_public = new_key()
    limits = {"max_epsilon_per_study": "1.5"}
    before = consenting(tmp_path, "4", place, signing_keys=[PUBLIC], **limits)
    before.answer(before.accept(sign_study(FIRST, SIGNER.encode())), {"ever": True})
    if withdraws:
        before.withdraw("survey")
    after = consenting(tmp_path, "4", "https://institute.example", signing_keys=[next_public], **limits)
    study = after.accept(sign_study(SECOND, next_signer.encode()))
    with raises(BudgetError, "device.costs", "epsilon 1", "0.5", "what one study may cost"):
        after.answer(study, {"again": True})


def test_nor_where_a_report_was_deleted_and_the_next_went_elsewhere(tmp_path):
    """The next one says where its key's study is: the collector before it was told something all the same."""
    here, elsewhere = "https://here.example", "https://elsewhere.example"
    limits = {"max_epsilon_per_study": "2.5"}
    device = consenting(tmp_path, "8", here, signing_keys=[PUBLIC], **limits)
    device.answer(device.accept(sign_study(FIRST, SIGNER.encode())), {"ever": True})
    device.withdraw("survey")
    device = consenting(tmp_path, "8", elsewhere, signing_keys=[PUBLIC], **limits)
    device.answer(device.accept(sign_study(SECOND, SIGNER.encode())), {"again": True})
    with raises(BudgetError, "device.costs", "epsilon 1", "0.5", "what one study may cost"):
        consenting(tmp_path, "8", here, **limits).answer(OTHER, {"ever": True})


def sum_on(folder, question, version, signer, public):
    """Answer one version of a signed secure sum."""
    study = Study({**build_study(question).document, "version": version})
    limits = {"max_epsilon_per_study": "1.5", "max_delta": "0.001"}
    device = consenting(folder, "8", NODE, signing_keys=[public], nodes=ADDRESSES, **limits)
    device.answer(
        device.accept(sign_study(study, signer.encode())), {question: ANSWERS[question]}, INVITATION
    )


def test_nor_does_the_next_key_of_a_secure_sum(tmp_path):
    sum_on(tmp_path, "ever", 1, SIGNER, PUBLIC)
    with raises(BudgetError, "device.costs", "0.5", "what one study may cost"):
        sum_on(tmp_path, "fruit", 2, *new_key())


@pytest.mark.parametrize("node", ADDRESSES)
def test_a_secure_sum_is_withdrawn_and_invited_without_its_key(tmp_path, node):
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


def test_what_a_withdrawal_leaves_is_named(moved, old, caplog):
    assert moved.answered_elsewhere("survey") == [old.url]
    assert moved.withdraw("survey") == 1
    assert [old.url in message for message in caplog.messages] == [True]
    assert moved.answered_elsewhere("survey") == [old.url]


def test_everywhere_covers_it_and_each_collector_is_asked(tmp_path, moved, old, new, caplog):
    assert moved.withdraw("survey", everywhere=True) == 2
    assert (caplog.messages, moved.answered_elsewhere("survey")) == ([], [])
    flushed = moved.flush()
    assert (flushed.deleted, flushed.undeleted) == (1, 1)
    assert old.url in flushed.reason
    assert consenting(tmp_path, "4", old.url).flush().deleted == 1
    assert [len(server.asked("DELETE")) for server in (old, new)] == [1, 1]


def test_the_old_place_alone_is_enough_where_the_key_asked_there_too(tmp_path, old):
    """Both reports belong to one collector: no key has to be at hand."""
    consenting(tmp_path, "4", old.url).answer(FIRST, {"ever": True})
    pinned = consenting(tmp_path, "4", old.url, signing_keys=[PUBLIC])
    pinned.accept(sign_study(SECOND, SIGNER.encode()))
    pinned.answer(SECOND, {"again": True})
    assert pinned.flush().sent == 2
    assert consenting(tmp_path, "4", old.url).withdraw("survey") == 2


@pytest.mark.usefixtures("moved")
def test_the_command_says_it_in_its_exit_code_too(tmp_path, old, new, capsys, caplog):
    (tmp_path / "key.pem").write_text(PUBLIC)
    url = f"{new.url}/v1/studies/survey"
    given = ["--folder", str(tmp_path), "--key", str(tmp_path / "key.pem")]
    assert main(["withdraw", url, *given]) == 1
    assert "withdrew from survey: 1 report to be deleted" in capsys.readouterr().out
    assert f"has also answered that of {old.url}" in caplog.text
    main(["withdraw", url, *given, "--everywhere"])
    assert main(["withdraw", f"{old.url}/v1/studies/survey", "--folder", str(tmp_path)]) == 0
    assert [len(server.asked("DELETE")) for server in (old, new)] == [1, 1]


def test_a_consent_that_no_answer_followed_is_taken_back(tmp_path, old, caplog):
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
