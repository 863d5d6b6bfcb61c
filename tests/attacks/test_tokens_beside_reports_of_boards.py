"""Join a board's report to the invitation to its next study, which issuer and collector see at one second."""

from schemas import Study
from tests import studies
from tests.portable.boards import next_config, run_trials, with_tokens

FIRST = with_tokens()
QUESTION = {**studies.YES_NO, "text": "Is it so?"}
AFTER = Study(studies.document(QUESTION, id="next", channel=FIRST.document["channel"]))
# Enough for chance to have gone either way.
BOARDS = 8


def configured(**more):
    following = next_config(study=AFTER, **more)
    following["config"]["invitation"] = "NEXT"
    return following


def asked_at(found):
    """The moments at which tokens were asked for."""
    return {at for _, at, _ in found["asked"]}


def test_board_sends_no_report_when_it_asks_for_token(tmp_path):
    """The first report waits, as its collector is away, until the board is given another study."""
    trial = {"script": ["well", *["reset"] * 60], "next": configured()}
    each = run_trials(tmp_path / "data", *[trial] * BOARDS, study=FIRST)
    for found in each:
        assert not asked_at(found) & set(found["moments"])
        # Neither waits for ever.
        assert found["stored"] == 2
        assert found["left"]["outbox"] == []
    firsts = {min(found["moments"][-2:]) < found["asked"][-1][1] for found in each}
    assert firsts == {True, False}


def test_board_sends_no_deletion_when_it_asks_for_token(tmp_path):
    trial = {"next": configured(withdraws=True)}
    for found in run_trials(tmp_path / "data", *[trial] * BOARDS, study=FIRST):
        assert not asked_at(found) & set(found["withdrawn"])
        assert (found["stored"], found["left"]["deletions"]) == (1, [])


def test_report_with_lost_invitation_does_not_block_others(tmp_path):
    """The first study's token cannot be requested any more; the second study's is not delayed."""
    trial = {"issuer": ["timeout"] * 41, "next": configured()}
    (found,) = run_trials(tmp_path / "data", trial, study=FIRST)
    assert (found["stored"], found["puts"]) == (1, 1)
