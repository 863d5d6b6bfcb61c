"""What careless hands do at a device: copied or wrong invitations, labels that look alike, odd columns.

Defence: The device: what can be read is read as the page reads it, the rest is refused or said, naming the
field and what to do.
"""

import json

import numpy as np
import pandas as pd
import pytest

from ldp_client import Device
from ldp_client.bulk import public_many
from ldp_client.cli import main
from ldp_client.commands.study_warnings import warnings_of
from ldp_client.documents.errors import AnswerError, RefusedError
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting, problem

PUBLIC = [{"id": "region", "choices": ["n", "s"]}, {"id": "age", "bounds": ["1", "99"], "step": "1"}]
STUDY = Study(studies.document(studies.YES_NO, public=PUBLIC))
CODE = "-a_B9-xyz_-"


@pytest.mark.parametrize(
    "written", ["{}\n", "{}\r\n", " {}", '"{}"', "{}\u00a0", "{}\u2013", "\u201c{}\u201d."]
)
def test_an_invitation_is_taken_as_it_was_copied(tmp_path, written):
    device = consenting(tmp_path, "2")
    device.answer(STUDY, {"ever": True}, written.format(CODE), public={"region": "n", "age": 5})
    assert device.ledger.queued()[0].invitation == CODE


def test_an_invitation_of_another_group_is_called_that(tmp_path):
    """ "Give one that is unused" would send the person for another of the same."""
    with Server(STUDY.canonical()) as server:
        device = consenting(tmp_path, "2", server.url)
        device.answer(device.fetch("survey"), {"ever": True}, CODE, public={"region": "n", "age": 5})
        media_type, text = problem("invitation-needed")
        document = {**json.loads(text), "field": "public.region", "detail": "is another value"}
        server.statuses, server.refusals = [403], {403: (media_type, json.dumps(document))}
        flushed = device.flush(attempts=1)
    assert "public.region: HTTP status 403, invitation-needed: is another value" in flushed.reason
    assert "an invitation that carries what it says" in flushed.reason
    assert flushed.waiting == 1


def test_a_huge_number_is_a_wrong_answer():
    for answer in (10**5000, -(10**5000), float("nan"), float("inf"), 1e308):
        with raises(AnswerError, "core.public_number", field="age"):
            STUDY.public[1].value_of(answer)


def test_labels_that_nobody_can_tell_apart_are_said():
    labels = ["a", "\u0430", "\u2800", "\u3164 ", "b", "\u0392", "B"]
    study = Study(studies.document(studies.YES_NO, public=[{"id": "r", "choices": labels}]))
    assert len(warnings_of(study)) == 5


@pytest.mark.parametrize(
    "column", ["ns", {"n", "s"}, "n", 5, (one for one in "ns"), {"n": 1}, np.array([["n"], ["s"]])]
)
def test_what_is_no_column_is_refused(column):
    with raises(AnswerError, "files.column_order", field="region"):
        public_many(STUDY, {"region": column, "age": [1, 2]})


def test_a_data_frame_is_taken():
    frame = pd.DataFrame({"region": ["n", "s"], "age": [4.0, 5.0]}, index=[7, 9])
    assert public_many(STUDY, frame) == [{"region": "n", "age": "4"}, {"region": "s", "age": "5"}]
    with raises(AnswerError, "files.columns_by_name"):
        public_many(STUDY, [["n", 1]])


def test_a_report_that_waits_is_not_what_is_given_now(tmp_path, capsys):
    """Somebody who moved would believe that the new region was sent."""
    with Server(STUDY.canonical()) as server:
        device = Device(tmp_path, "8", server.url)
        study = device.fetch("survey")
        device.consent(study)
        device.answer(study, {"ever": True, "region": "s", "age": 5})
        command = ["answer", f"{server.url}/v1/studies/survey", "--folder", str(tmp_path), "--yes"]
        main([*command, "--set", "ever=yes", "--public", "region=n", "--public", "age=5"])
    told = capsys.readouterr().err
    assert "it is sent as it was made, and nothing of what was given now" in told
    assert "region: s is in the report that waits, in clear" in told


def test_an_older_signed_study_is_called_older(tmp_path):
    from ldp_client.files.signing import new_key, sign_study

    private, public = new_key()
    device = consenting(tmp_path, "4", signing_keys=[public])
    first, second = [Study(studies.document(studies.YES_NO, version=version)) for version in (1, 2)]
    for study in (first, second):
        device.accept(sign_study(study, private.encode()))
    with raises(RefusedError, "device.older_version", "1", "2"):
        device.answer(first, {"ever": True})


@pytest.mark.parametrize(
    "question", [studies.LINEAR, studies.PRODUCTS], ids=lambda one: one["mechanism"]["name"]
)
@pytest.mark.parametrize("column", [[True, 30], (30.5, False)], ids=str)
def test_a_yes_among_numbers_is_no_number(question, column):
    """One device refuses it too: it would stand for 1."""
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    columns = {one.id: [True, False] if one.bounds is None else [4, 5] for one in mechanism.features}
    columns["rate"] = [4, 5]
    assert len(mechanism.perturb_many(columns)) == 2
    for name in ("age", "rate"):
        with pytest.raises(AnswerError, match=name):
            mechanism.perturb_many({**columns, name: column})
