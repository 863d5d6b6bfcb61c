"""Public fields on the participant's page: marked as sent in clear, checked, shown before anything leaves."""

import json

from tests import studies
from tests.portable.participant import TEXT

REGIONS = [f"region {number}" for number in range(9)]
PUBLIC = [
    {"id": "region", "text": "Where do you live?", "choices": REGIONS},
    {"id": "sex", "text": "Your sex?", "choices": ["female", "male <b>"]},
    {"id": "weight", "text": "Your weight in kg?", "bounds": ["40", "140.5"], "step": "0.5"},
]
QUESTIONS = ({**studies.NUMBER, **TEXT}, studies.YES_NO)
ANSWERS = {"hours": "3.5", "ever": "yes", "region": "region 7", "sex": "male <b>", "weight": "70.50"}


def test_values_sent_in_clear_are_marked_and_shown_first(meet):
    person = meet(studies.document(*QUESTIONS, public=PUBLIC))
    assert "leaves with the report exactly as you enter it, without noise" in person.text
    card = person.find("#in-clear").text
    assert card.startswith("Sent as it is")
    assert card.count("as it is, in clear") == len(PUBLIC)
    assert "from 40 to 140.5, in steps of 0.5" in card
    person.answer(**ANSWERS)
    person.until("report")
    shown = {"region": "region 7", "sex": "male <b>", "weight": "70.5"}
    assert json.loads(person.body)["public"] == shown
    for value in shown.values():
        assert f"{value} – sent as it is, in clear" in person.text
    assert "with what is sent as it is" in person.find("#consent").text
    spent, (report,) = person.ledger()
    assert spent == ["ever", "hours"]
    assert report["state"] == "held"
    person.send()
    person.until_says("This was sent")
    assert [stored.public for stored in person.stored()] == [shown]


def test_value_off_the_grid_is_returned_to_the_person(meet):
    person = meet(studies.document(*QUESTIONS, public=PUBLIC))
    person.fill(**ANSWERS)
    for wrong in ("39.5", "70.25", "141"):
        person.find("[name=weight]").clear()
        person.fill(weight=wrong)
        person.click("#answers button[type=submit]")
        person.until_says("1 answer needs another look")
        assert "Your weight in kg? – write a number within the bounds" in person.find("#problem").text
    assert person.ledger() == ([], [])


def test_invitations_field_is_explained_and_not_asked(meet, server):
    """The collector adds the invitation's value; without an invitation the report waits."""
    stratum = {
        "id": "stratum",
        "text": "Your part of the sample",
        "choices": ["a", "b"],
        "source": "invitation",
    }
    person = meet(studies.document(studies.YES_NO, public=[stratum]))
    assert "your invitation says it, and it is added to your report as it is" in person.text
    assert "in clear: one of a | b" in person.text
    person.answer(ever="yes")
    person.until("report")
    assert "public" not in json.loads(person.body)
    person.send()
    person.until_says("This study takes reports from invited people only")
    (invitation,) = server.invitations(person.study.id, 1, stratum="b")
    person.find("#invite .invitation").send_keys(invitation)
    person.click("#invite button")
    person.until_says("This was sent")
    assert [stored.public for stored in person.stored()] == [{"stratum": "b"}]
