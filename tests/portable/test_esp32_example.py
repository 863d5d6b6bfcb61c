"""examples/esp32 on MicroPython: a collector that stalls, resets and lies; the power cut at every write."""

from functools import partial
from itertools import pairwise

import pytest

from schemas import Study
from tests import studies
from tests.portable.boards import ANOTHER, HOURS, IDENTITY, KEYS, STUDY, next_config, run_trials, with_tokens
from tests.portable.token_issuer import token_in

# Of the ledger: what opens a file, what writes it, and the time before and after its replacement.
STEPS_OF_A_WRITE = 4


@pytest.fixture
def trials(tmp_path):
    """Return a function that gives the outcome of each of these trials of a board."""
    return partial(run_trials, tmp_path / "data")


def test_board_answers_once_and_sends(trials):
    (found,) = trials({})
    assert (found["stored"], found["puts"], found["waits"]) == (1, 1, 0)
    assert found["later"] == found["left"]["outbox"] == []
    assert found["left"]["spent"] == ["survey/ever"]


def test_invitation_is_sent_with_the_report_without_tokens(trials):
    (found,) = trials({}, invited=True)
    assert (found["stored"], found["tokens"]) == (1, ["LDPKit-Invitation: CODE"])


FAULTS = ["timeout", "reset", "server error", "portal", "proxy", "echo", "lost", "half"]


@pytest.mark.parametrize("fault", FAULTS)
def test_same_report_is_retried_after_any_fault_until_stored(trials, fault):
    """The fault occurs at the study fetch, at the upload, or repeatedly at the upload."""
    scripts = [[fault], ["well", fault], ["well", fault, fault, fault]]
    for found in trials(*[{"script": script} for script in scripts]):
        assert (found["stored"], found["bodies"]) == (1, 1)
        assert found["waits"] > 0
        assert found["left"]["outbox"] == []


def test_board_waits_for_the_network(trials):
    (found,) = trials({"joins_after": 3})
    assert (found["stored"], found["waits"]) == (1, 3)


@pytest.mark.slow
def test_power_cut_at_any_write_keeps_one_report(trials):
    """One report is stored with the same bytes, also after a lost answer."""
    writes = list(range(1, 3 * STEPS_OF_A_WRITE + 1))
    each = trials({"cut_at": writes}, {"cut_at": writes, "script": ["well", "lost"]})
    assert [found["cuts"] for found in each] == [1] * len(each)
    assert [(found["stored"], found["bodies"]) for found in each] == [(1, 1)] * len(each)
    (beyond,) = trials({"cut_at": [len(writes) + 1]})
    assert beyond["cuts"] == 0


@pytest.mark.parametrize("problem", ["report-invalid", "report-conflict", "report-withdrawn"])
def test_permanently_rejected_report_is_not_sent_again(trials, problem):
    (found,) = trials({"script": ["well", f"problem {problem}"]})
    assert (found["stored"], found["puts"], found["left"]["outbox"]) == (0, 1, [])


SECOND = Study(STUDY.document | {"version": 2}).canonical().decode()


def test_new_version_keeps_a_waiting_report_and_withdrawal(trials):
    """The collector takes reports of the first one still; under the study's id it serves the second."""
    lost = ["well", "reset", "reset"]
    sent, withdrawn = trials({"then": SECOND, "script": lost}, {"then": SECOND, "withdraws": True})
    assert (sent["stored"], sent["waits"], sent["fetched"], sent["left"]["outbox"]) == (1, 2, 1, [])
    assert (withdrawn["stored"], withdrawn["deletions"], withdrawn["left"]["deletions"]) == (0, 1, [])


def test_report_stored_by_an_earlier_release_is_sent(trials):
    (found,) = trials({"script": ["well", "lost"], "forgets": 3})
    assert (found["stored"], found["fetched"], found["left"]["outbox"]) == (1, 2, [])


def test_a_board_that_answered_a_trial_study_answers_the_real_one(trials):
    """The board used to do nothing and to end as if all were done."""
    (found,) = trials({"next": next_config()})
    assert (found["stored"], found["later"], found["left"]["outbox"]) == (2, [], [])
    assert found["left"]["spent"] == ["survey/ever", "next/ever"]


def test_board_does_not_answer_a_further_version(trials):
    further = Study(studies.document({**studies.YES_NO, "id": "other", "text": "Is it so?"}, version=2))
    (found,) = trials({"next": next_config(study=further)})
    assert (found["stored"], found["later"], found["left"]["spent"]) == (1, [], ["survey/ever"])


UNSENT = ["well", *["reset"] * 60]


def test_waiting_report_follows_its_collector_to_another_host(trials):
    sent, deleted = trials(
        {"script": UNSENT, "next": next_config("other.example.org")},
        {"next": next_config("other.example.org", withdraws=True)},
    )
    assert (sent["stored"], sent["left"]["outbox"]) == (2, [])
    assert (deleted["stored"], deleted["deletions"], deleted["left"]["deletions"]) == (1, 1, [])


def test_waiting_report_is_not_sent_to_another_collector(trials):
    """Reports and deletion secrets used to go to whatever host the configuration named."""
    sent, deleted = trials(
        {"script": UNSENT, "next": next_config("other.example.org", identity=ANOTHER)},
        {"next": next_config("other.example.org", identity=ANOTHER, withdraws=True)},
    )
    assert (sent["stored"], sent["puts"], deleted["deletions"]) == (1, 1, 0)
    assert "later: what waits is for another collector" in sent["later"]
    assert "later: what waits is for another collector" in deleted["later"]


@pytest.mark.slow
def test_tokened_report_is_not_sent_to_another_host(trials):
    """Any host can serve a public study, so a host that serves it could pass as the report's collector."""
    for identity in (ANOTHER, IDENTITY):
        sent, deleted = trials(
            {"script": UNSENT, "next": next_config("other.example.org", identity=identity)},
            {"next": next_config("other.example.org", identity=identity, withdraws=True)},
            study=with_tokens(),
        )
        # That of the next study alone.
        assert (sent["puts"], deleted["puts"], deleted["deletions"]) == (1, 2, 0)
        reason = "later: what waits is for collect.example.org alone: configure that host again"
        assert set(sent["later"]) >= {reason}
        assert reason in deleted["later"]


@pytest.mark.slow
def test_report_of_an_earlier_release_is_not_sent_to_another_host(trials):
    """An earlier release's ledger does not store the collector's host, or not even its identity."""
    for kept in (8, 3):
        (found,) = trials(
            {"script": UNSENT, "forgets": kept, "next": next_config("other.example.org", identity=ANOTHER)}
        )
        assert (found["stored"], found["puts"], found["deletions"]) == (1, 1, 0)


def test_withdrawal_before_the_answer_sends_nothing(trials):
    (found,) = trials({"withdraws": "before"})
    assert (found["stored"], found["puts"], found["left"]["outbox"]) == (0, 0, [])


JUNE, JULY = [2026, 6, 15], [2026, 7, 22]
CLOSED = ["well", *["problem study-closed"] * 50]


@pytest.mark.parametrize(
    ("days", "date", "gives_up"),
    [
        ([JUNE, JULY], "Wed, 22 Jul 2026 10:00:00 GMT", True),
        ([JUNE, JULY], "Mon, 20 Jul 2026 10:00:00 GMT", False),
        ([JUNE, JULY], "no date", False),
        ([JUNE], "Wed, 22 Jul 2026 10:00:00 GMT", False),
    ],
)
def test_closed_study_is_given_up_if_both_clocks_agree(trials, days, date, gives_up):
    (found,) = trials({"script": CLOSED, "days": days, "date": date})
    assert found["stored"] == 0
    assert found.get("asleep", False) != gives_up
    assert found["puts"] == (2 if gives_up else 41)


def test_withdrawn_report_is_deleted(trials):
    (found,) = trials({"withdraws": True})
    assert (found["stored"], found["deletions"], found["left"]["deletions"]) == (0, 1, [])


@pytest.mark.parametrize("became", ["well", "lost", "problem report-invalid"])
def test_report_withdrawn_during_its_upload_is_deleted(trials, became):
    (found,) = trials({"withdraws": "meanwhile", "script": ["well", became]})
    assert (found["stored"], found["puts"], found["deletions"]) == (0, 1, 1)
    assert found["left"]["outbox"] == found["left"]["deletions"] == []


@pytest.mark.parametrize("said", ["problem report-invalid", "problem report-conflict", "stored", "portal"])
def test_deletion_is_retried_until_done(trials, said):
    """An answer that settles a report does not settle its deletion."""
    (found,) = trials({"withdraws": True, "script": ["well", "well", said]})
    assert (found["stored"], found["left"]["deletions"]) == (0, [])
    assert found["waits"] == 1


REFUSALS = {
    "later: not open today, or the day is not known": [{"no_clock": True}, {"days": [[2026, 6, 21]]}],
    "later: not the study that was pinned": [
        {"serves": Study(STUDY.document | {"title": "Another"}).canonical().decode()},
        {"script": ["portal"] * 50},
    ],
    "later: the study is closed": [{"state": "closed"}],
    "later: the radio is off: no noise can be drawn": [{"radio_is_off": True}],
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_refused_studies_are_not_answered(trials, reason):
    for found in trials(*REFUSALS[reason]):
        assert found == {"asleep": True, "stored": 0, "puts": 0, "later": [reason] * 41}


def window(moment):
    return moment // (3600 * HOURS)


def check_sent(found, study, key=KEYS[0]):
    """One report, with a token of that key, in a later window than that in which the token came."""
    assert (found["stored"], found["bodies"], found["left"]["outbox"]) == (1, 1, [])
    assert found["left"]["leaving"] == {}
    assert len(set(found["tokens"])) == 1
    token_in(found["tokens"][0].removeprefix("Authorization: "), study, "issuer.example", key)
    (_, asked, _), sent = found["asked"][-1], found["moments"]
    assert window(sent[0]) > window(asked)
    # What was taken, and then not noted for want of power, is sent again at once: the same bytes.
    assert found["cuts"] or all(window(later) > window(earlier) for earlier, later in pairwise(sent))


@pytest.mark.slow
@pytest.mark.parametrize("script", [[], ["timeout"], ["lost"], ["lost", "forged", "timeout"]])
def test_a_report_leaves_with_its_token_in_a_later_window(trials, script):
    """A lost answer is requested again with the same bytes: the token is given once."""
    study = with_tokens()
    (found,) = trials({"issuer": script}, study=study)
    check_sent(found, study)
    assert len(found["asked"]) == len(script) + 1
    assert len({(code, body) for code, _, body in found["asked"]}) == 1


def test_rejected_report_is_sent_in_the_next_window(trials):
    study = with_tokens()
    (found,) = trials({"problems": ["token-spent", "token-invalid"]}, study=study)
    check_sent(found, study)
    assert len(found["moments"]) == 3


@pytest.mark.slow
def test_the_issuer_names_the_stratums_key_once(trials):
    study = with_tokens("north", "south")
    found, misled = trials({"issuer": ["key 1"]}, {"issuer": ["key 1", "key 0", "key 0"]}, study=study)
    check_sent(found, study, KEYS[1])
    check_sent(misled, study, KEYS[1])
    # It is not led on from key to key.
    assert len({body for _, _, body in misled["asked"]}) == 2


@pytest.mark.slow
def test_a_key_that_is_named_by_its_id_is_taken_for_its_place(trials):
    """The issuer counts its own keys; a board that its place misled comes back once."""
    study = with_tokens("north", "south")
    scripts = (["key 2 id 1"], ["key 1", "key 1", "key 1 id 0", "key 0 id 1"])
    found, misled = trials(*({"issuer": script} for script in scripts), study=study)
    check_sent(found, study, KEYS[1])
    check_sent(misled, study, KEYS[0])
    assert len({body for _, _, body in misled["asked"]}) == 3


@pytest.mark.slow
def test_new_invitation_allows_another_key_correction(trials):
    study = with_tokens("north", "south")
    (found,) = trials({"issuer": ["key 1", "code NEW", "key 0"]}, study=study)
    check_sent(found, study, KEYS[0])
    assert [code for code, _, _ in found["asked"]] == ["CODE", "CODE", "NEW", "NEW"]


def test_clock_jump_does_not_send_a_report_right_after_its_token(trials):
    study = with_tokens()
    (found,) = trials({"jumps_at": 1}, study=study)
    check_sent(found, study)
    (_, asked, _), (sent, *_) = found["asked"][-1], found["moments"]
    assert sent > asked + 30 * 24 * 3600
    # The pause after the token, at most six hours, ends in this window.
    assert window(sent) > window(asked + 30 * 24 * 3600)


def test_unsent_report_is_wiped_without_a_deletion_request(trials):
    """The id and secret would reveal to the collector who took part and withdrew."""
    (found,) = trials({"withdraws_at": 1}, study=with_tokens())
    assert (len(found["asked"]), found["puts"], found["deletions"]) == (1, 0, 0)
    assert found["left"]["outbox"] == found["left"]["deletions"] == []


def test_forged_collector_identity_does_not_mark_the_report(trials):
    study = with_tokens()
    (found,) = trials({"shown": "b" * 32}, study=study)
    check_sent(found, study)


@pytest.mark.slow
def test_new_version_keeps_a_waiting_batch_and_its_deletion(trials):
    """The board checks the study at the collector first, whose id then gives the second version."""
    study = with_tokens()
    second = Study(study.document | {"version": 2}).canonical().decode()
    sent, withdrawn, earlier = trials(
        {"then": second},
        {"then": second, "withdraws": True},
        {"then": second, "forgets": 7},
        study=study,
    )
    for found in (sent, earlier):
        check_sent(found, study)
        assert found["later"] == []
    assert (withdrawn["stored"], withdrawn["deletions"]) == (0, 1)
    assert withdrawn["left"]["deletions"] == withdrawn["later"] == []


@pytest.mark.slow
def test_impossible_deletion_does_not_block_reports(trials):
    """The owed deletion is for a study that the collector no longer has."""
    owed = ["gone", "f" * 32, "aa", None, "00" * 32, None, None, 1]
    found, tokens = (
        trials({"owes": [owed], "script": ["well", "lost"]}),
        trials({"owes": [owed]}, study=with_tokens()),
    )
    for (one,) in (found, tokens):
        assert one["stored"] == 1
        assert set(one["later"]) == {"later: not the study that was pinned"}


@pytest.mark.slow
def test_power_cut_during_a_token_request_is_recovered(trials):
    """One invitation gives one token, whatever was lost."""
    study = with_tokens()
    # While the request is written, and the token, and that the report was taken.
    for found in trials({"cut_at": list(range(STEPS_OF_A_WRITE + 1, 4 * STEPS_OF_A_WRITE + 1))}, study=study):
        assert found["cuts"] == 1
        check_sent(found, study)
        assert len({body for _, _, body in found["asked"]}) == 1


def test_a_study_whose_issuer_is_reached_in_clear_is_not_answered(trials):
    (found,) = trials({}, study=with_tokens(issuer="http://127.0.0.1:8100"))
    reason = "later: its issuer is not reached over TLS"
    assert found == {"asleep": True, "stored": 0, "puts": 0, "later": [reason] * 41}
