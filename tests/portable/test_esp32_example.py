"""examples/esp32 on MicroPython: a collector that stalls, resets and lies; the power cut at every write."""

from base64 import b64encode
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
    """What became of a board in each of these trials."""
    return partial(run_trials, tmp_path / "data")


def test_it_answers_once_and_sends(trials):
    (found,) = trials({})
    assert (found["stored"], found["puts"], found["waits"]) == (1, 1, 0)
    assert found["later"] == found["left"]["outbox"] == []
    assert found["left"]["spent"] == ["survey/ever"]


def test_where_there_are_no_tokens_the_invitation_leaves_with_the_report(trials):
    (found,) = trials({}, invited=True)
    assert (found["stored"], found["tokens"]) == (1, ["LDPKit-Invitation: CODE"])


FAULTS = ["timeout", "reset", "server error", "portal", "proxy", "echo", "lost", "half"]


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_the_same_report_is_sent_until_it_is_stored(trials, fault):
    """At the study, at the report, and again and again there."""
    scripts = [[fault], ["well", fault], ["well", fault, fault, fault]]
    for found in trials(*[{"script": script} for script in scripts]):
        assert (found["stored"], found["bodies"]) == (1, 1)
        assert found["waits"] > 0
        assert found["left"]["outbox"] == []


def test_it_joins_later_where_there_is_no_network(trials):
    (found,) = trials({"joins_after": 3})
    assert (found["stored"], found["waits"]) == (1, 3)


@pytest.mark.slow
def test_the_power_is_cut_at_every_write(trials):
    """One report in the end, and never another's bytes; where the answer was lost before, too."""
    writes = list(range(1, 3 * STEPS_OF_A_WRITE + 1))
    each = trials({"cut_at": writes}, {"cut_at": writes, "script": ["well", "lost"]})
    assert [found["cuts"] for found in each] == [1] * len(each)
    assert [(found["stored"], found["bodies"]) for found in each] == [(1, 1)] * len(each)
    (beyond,) = trials({"cut_at": [len(writes) + 1]})
    assert beyond["cuts"] == 0


@pytest.mark.parametrize("problem", ["report-invalid", "report-conflict", "report-withdrawn"])
def test_what_the_collector_will_never_take_is_not_sent_again(trials, problem):
    (found,) = trials({"script": ["well", f"problem {problem}"]})
    assert (found["stored"], found["puts"], found["left"]["outbox"]) == (0, 1, [])


SECOND = Study(STUDY.document | {"version": 2}).canonical().decode()


def test_a_second_version_strands_neither_the_report_nor_its_withdrawal(trials):
    """The collector takes reports of the first one still; under the study's id it serves the second."""
    lost = ["well", "reset", "reset"]
    sent, withdrawn = trials({"then": SECOND, "script": lost}, {"then": SECOND, "withdraws": True})
    assert (sent["stored"], sent["waits"], sent["fetched"], sent["left"]["outbox"]) == (1, 2, 1, [])
    assert (withdrawn["stored"], withdrawn["deletions"], withdrawn["left"]["deletions"]) == (0, 1, [])


def test_what_an_earlier_release_kept_is_sent_too(trials):
    (found,) = trials({"script": ["well", "lost"], "forgets": 3})
    assert (found["stored"], found["fetched"], found["left"]["outbox"]) == (1, 2, [])


def test_a_board_that_answered_a_trial_study_answers_the_real_one(trials):
    """It did nothing, and ended as if all were done."""
    (found,) = trials({"next": next_config()})
    assert (found["stored"], found["later"], found["left"]["outbox"]) == (2, [], [])
    assert found["left"]["spent"] == ["survey/ever", "next/ever"]


def test_of_a_further_version_it_answers_nothing(trials):
    further = Study(studies.document({**studies.YES_NO, "id": "other", "text": "Is it so?"}, version=2))
    (found,) = trials({"next": next_config(study=further)})
    assert (found["stored"], found["later"], found["left"]["spent"]) == (1, [], ["survey/ever"])


UNSENT = ["well", *["reset"] * 60]


def test_what_waits_follows_its_collector_to_another_host(trials):
    sent, deleted = trials(
        {"script": UNSENT, "next": next_config("other.example.org")},
        {"next": next_config("other.example.org", withdraws=True)},
    )
    assert (sent["stored"], sent["left"]["outbox"]) == (2, [])
    assert (deleted["stored"], deleted["deletions"], deleted["left"]["deletions"]) == (1, 1, [])


def test_what_waits_goes_to_no_other_collector(trials):
    """A report, and the secret that deletes one, went to whatever host the configuration named."""
    sent, deleted = trials(
        {"script": UNSENT, "next": next_config("other.example.org", identity=ANOTHER)},
        {"next": next_config("other.example.org", identity=ANOTHER, withdraws=True)},
    )
    assert (sent["stored"], sent["puts"], deleted["deletions"]) == (1, 1, 0)
    assert "later: what waits is for another collector" in sent["later"]
    assert "later: what waits is for another collector" in deleted["later"]


@pytest.mark.slow
def test_nor_where_a_study_has_tokens_and_no_identity_is_kept(trials):
    """Whoever was there passed for the report's collector, whose public study anybody can serve."""
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
def test_nor_does_what_an_earlier_release_kept(trials):
    """Its ledger does not say at which host the collector was, or not even which collector it was."""
    for kept in (8, 3):
        (found,) = trials(
            {"script": UNSENT, "forgets": kept, "next": next_config("other.example.org", identity=ANOTHER)}
        )
        assert (found["stored"], found["puts"], found["deletions"]) == (1, 1, 0)


def test_who_withdraws_before_the_board_has_answered_sends_nothing(trials):
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
def test_a_closed_study_is_given_up_when_both_clocks_say_so(trials, days, date, gives_up):
    (found,) = trials({"script": CLOSED, "days": days, "date": date})
    assert found["stored"] == 0
    assert found.get("asleep", False) != gives_up
    assert found["puts"] == (2 if gives_up else 41)


def test_what_was_withdrawn_is_deleted(trials):
    (found,) = trials({"withdraws": True})
    assert (found["stored"], found["deletions"], found["left"]["deletions"]) == (0, 1, [])


@pytest.mark.parametrize("became", ["well", "lost", "problem report-invalid"])
def test_what_is_withdrawn_while_it_is_sent_is_deleted(trials, became):
    (found,) = trials({"withdraws": "meanwhile", "script": ["well", became]})
    assert (found["stored"], found["puts"], found["deletions"]) == (0, 1, 1)
    assert found["left"]["outbox"] == found["left"]["deletions"] == []


@pytest.mark.parametrize("said", ["problem report-invalid", "problem report-conflict", "stored", "portal"])
def test_a_deletion_is_asked_for_until_it_is_done(trials, said):
    """Whatever settles a report settles no deletion of it."""
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
def test_what_is_not_to_be_answered_is_not(trials, reason):
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
    """What was lost is asked for by the same request: the token is given once."""
    study = with_tokens()
    (found,) = trials({"issuer": script}, study=study)
    check_sent(found, study)
    assert len(found["asked"]) == len(script) + 1
    assert len({(code, body) for code, _, body in found["asked"]}) == 1


def test_what_the_collector_does_not_take_leaves_in_the_window_after(trials):
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
def test_another_invitation_may_have_another_key_named_once_more(trials):
    study = with_tokens("north", "south")
    (found,) = trials({"issuer": ["key 1", "code NEW", "key 0"]}, study=study)
    check_sent(found, study, KEYS[0])
    assert [code for code, _, _ in found["asked"]] == ["CODE", "CODE", "NEW", "NEW"]


def test_a_clock_that_jumps_ahead_sends_no_report_right_behind_its_token(trials):
    study = with_tokens()
    (found,) = trials({"jumps_at": 1}, study=study)
    check_sent(found, study)
    (_, asked, _), (sent, *_) = found["asked"][-1], found["moments"]
    assert sent > asked + 30 * 24 * 3600
    # The pause after the token, at most six hours, ends in this window.
    assert window(sent) > window(asked + 30 * 24 * 3600)


def test_what_never_left_is_not_asked_to_be_deleted(trials):
    """Its id and secret would tell the collector who took part, and took back."""
    (found,) = trials({"withdraws_at": 1}, study=with_tokens())
    assert (len(found["asked"]), found["puts"], found["deletions"]) == (1, 0, 0)
    assert found["left"]["outbox"] == found["left"]["deletions"] == []


def test_an_identity_shown_to_this_board_alone_tells_nothing_of_its_report(trials):
    study = with_tokens()
    (found,) = trials({"shown": "b" * 32}, study=study)
    check_sent(found, study)


@pytest.mark.slow
def test_a_second_version_strands_no_batch_and_no_deletion_of_one(trials):
    """Who has the study is asked right before, and then the second version is what its id leads to."""
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
def test_what_can_never_be_done_keeps_no_report_from_leaving(trials):
    """The deletion of a report to a study that the collector has no more."""
    owed = ["gone", "f" * 32, "aa", None, "00" * 32, None, None, 1]
    found, tokens = (
        trials({"owes": [owed], "script": ["well", "lost"]}),
        trials({"owes": [owed]}, study=with_tokens()),
    )
    for (one,) in (found, tokens):
        assert one["stored"] == 1
        assert set(one["later"]) == {"later: not the study that was pinned"}


@pytest.mark.slow
def test_the_power_is_cut_while_a_token_is_asked_for(trials):
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


def test_a_study_that_wants_a_relay_is_not_answered(trials):
    keys = b64encode(bytes.fromhex("010020" + "ab" * 32 + "000400010001")).decode()
    study = with_tokens(oblivious={"relay": "https://relay.example", "keys": keys})
    (found,) = trials({}, study=study)
    reason = "later: wants a relay, which this board has not"
    assert found == {"asleep": True, "stored": 0, "puts": 0, "later": [reason] * 41}
