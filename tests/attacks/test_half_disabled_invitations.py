"""A study's page, its intake and its operator disagree about who needs an invitation.

Attack: (by mistake) to publish a version whose invitations carry values, or to lift invitations that
carry some, so that page, collector and operator disagree about who is admitted: the collector: page and
intake use the same function, by version; `--disable` is refused if it would lift nothing, or would make
valid invitations of earlier versions useless, and no invitations are made for a closed study.

Attack: (by mistake) hand out invitations to a study whose last day is over, so that none of them works:
the collector: makes none once no version takes reports, and says when the last one ended.
"""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from collector.operator.inviting import disable, invite, refuse_ended, revoke
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from tests.attacks.conftest import KEY
from tests.collector.answered import problem
from tests.collector.conftest import ANSWERS, build_study
from tests.kit.errors import raises
from tests.secure_sum.conftest import build_study as build_sum

STRATUM = {"id": "stratum", "choices": ["town", "country"], "source": "invitation"}
PLAIN, CARRYING, OPEN_AGAIN = build_study(), build_study(2, public=[STRATUM]), build_study(3)
REFUSED = (403, "invitation-needed")


@pytest.fixture
def place(make_harness, database_url):
    harness = make_harness(database=database_url, invitation_key=KEY, lock_timeout=10)
    harness.url = database_url
    assert harness.publish(PLAIN).status_code == 201
    return harness


def answered(study):
    return perturb_answers(study, mechanisms_of(study), ANSWERS)


def send(harness, report, word=None):
    headers = {} if word is None else {"LDPKit-Invitation": word}
    path = f"/v1/studies/habits/reports/{report.id}"
    return harness.app.test_client().put(path, json=report.to_document(), headers=headers)


def act(harness, change, *arguments):
    with harness.collector.database.write() as session:
        found = change(session, "habits", *arguments)
    harness.collector.current.forget("habits")
    return found


def page_asks(harness):
    return 'id="for:answers"' in harness.client.get("/s/habits").text


def test_invitations_of_later_version_block_no_earlier_report(place):
    """Its device answered when no invitation was needed, and cannot get one."""
    place.publish(CARRYING)
    late = [answered(PLAIN) for _ in range(3)]
    assert send(place, late[0]).status_code == 201
    (word,) = act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    assert send(place, late[1]).status_code == 201
    assert problem(send(place, answered(CARRYING))) == REFUSED
    mixed = [late[2].to_document(), answered(CARRYING).to_document()]
    outcome = place.post(mixed).json
    assert (outcome["stored"], [one["id"] for one in outcome["failed"]]) == (1, [mixed[1]["id"]])
    new = answered(CARRYING)
    assert send(place, new, word).status_code == 201
    assert {report.id for report in place.exported()} == {new.id, *(report.id for report in late)}


def test_lost_invitation_key_blocks_only_invited_reports(make_harness, place):
    place.publish(CARRYING)
    (word,) = act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    other = make_harness(database=place.url, invitation_key="another invitation key", lock_timeout=10)
    assert send(other, answered(PLAIN)).status_code == 201
    assert problem(send(other, answered(CARRYING))) == REFUSED
    assert problem(send(other, answered(CARRYING), word)) == (503, "unavailable")


def test_page_asks_for_invitation_exactly_if_intake_requires_it(place):
    def agree(study, needed):
        answer = send(place, answered(study))
        assert page_asks(place) == needed
        assert (problem(answer) == REFUSED) if needed else (answer.status_code == 201)

    agree(PLAIN, needed=False)
    act(place, invite, 1, KEY.encode())
    agree(PLAIN, needed=True)
    act(place, revoke, "ann")
    agree(PLAIN, needed=True)
    act(place, disable, "ann")
    agree(PLAIN, needed=False)
    place.publish(CARRYING)
    agree(CARRYING, needed=True)
    act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    agree(CARRYING, needed=True)
    place.publish(OPEN_AGAIN)
    agree(OPEN_AGAIN, needed=False)


def test_lift_without_effect_is_refused(place, capsys):
    place.publish(CARRYING)
    (word,) = act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    assert place.exit_code("invite", "habits", "--disable") != 0
    assert "carry stratum, which every report needs: nothing was changed" in capsys.readouterr().err
    assert send(place, answered(CARRYING), word).status_code == 201


def test_lift_is_refused_while_earlier_invitations_are_valid(place, capsys):
    """A device answered the previous version and uploads late."""
    place.publish(CARRYING)
    (word,) = act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    late = answered(CARRYING)
    place.publish(OPEN_AGAIN)
    assert place.exit_code("invite", "habits", "--disable") == 3
    assert "nothing was changed" in capsys.readouterr().err
    assert send(place, answered(OPEN_AGAIN)).status_code == 201
    assert send(place, late, word).status_code == 201
    for what in ("--revoke-all", "--disable"):
        assert place.exit_code("invite", "habits", what) == 0


def test_invite_to_closed_or_deleted_study_is_refused(place, capsys):
    place.publish(PLAIN)
    assert place.exit_code("invite", "habits", "--count", "0", "--public", "a=b") == 2
    assert "--count 0: must be from 1" in capsys.readouterr().err
    for end in (place.close, lambda: place.operate("delete", "habits", "--yes")):
        end()
        capsys.readouterr()
        assert place.exit_code("invite", "habits", "--count", "2") == 3
        shown = capsys.readouterr()
        assert ("admit no reports" in shown.err, shown.out) == (True, "")


def test_forgotten_invitations_are_refused_and_new_ones_accepted(place):
    place.publish(CARRYING)
    (old,) = act(place, invite, 1, b"a key that is lost", {"stratum": "town"})
    with raises(InputError, "settings.wrong_invitation_key", "--revoke-all"):
        act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    assert place.exit_code("invite", "habits", "--revoke-all") == 0
    (new,) = act(place, invite, 1, KEY.encode(), {"stratum": "town"})
    assert problem(send(place, answered(CARRYING), old)) == REFUSED
    assert send(place, answered(CARRYING), new).status_code == 201


def test_invite_after_the_last_day_is_refused(make_harness, database_url, capsys):
    """The latest of all versions' last days counts."""
    place = make_harness(database=database_url, invitation_key=KEY, lock_timeout=10)
    for version, days, last, code in ((1, 30, 30, 3), (2, 40, 30, 3), (3, 3, 3, 0)):
        closes, ended = (place.day - timedelta(past) for past in (days, last))
        place.publish(Study({**PLAIN.document, "version": version, "closes": closes.isoformat()}))
        assert place.exit_code("invite", "habits", "--count", "1") == code
        shown = capsys.readouterr()
        assert (shown.out == "", f"ended on {ended}" in shown.err) == (code == 3, code == 3)
        assert ("publish a version with a later `closes`" in shown.err) == (code == 3)


def test_ended_version_blocks_no_reports_of_the_version_before(place, capsys):
    late, ended = answered(PLAIN), (place.day - timedelta(30)).isoformat()
    act(place, invite, 1, KEY.encode())
    place.publish(Study({**PLAIN.document, "version": 2, "closes": ended}))
    capsys.readouterr()
    place.operate("invite", "habits", "--count", "1")
    assert send(place, late, capsys.readouterr().out.strip().partition("=")[2]).status_code == 201


def test_node_operator_is_told_to_publish_under_another_id(network):
    """A node takes no second version of a secure sum."""
    node, ended = network.nodes[0], (date.today() - timedelta(30)).isoformat()
    summed = build_sum(nodes=[each.address for each in network.nodes])
    assert node.publish(Study({**summed.document, "closes": ended})).status_code == 201
    said = raises(InputError, "ticket.study_over", ended)
    with node.app.extensions["ldpkit"].database.read() as session, said:
        refuse_ended(session, "summed", date.today(), timedelta(7))
