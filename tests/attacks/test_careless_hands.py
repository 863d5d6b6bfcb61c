"""User errors at a device: copied or wrong invitations, labels that look alike, unsuitable columns.

Defence: The device: accepts what the page accepts; the rest is refused or reported, with the field and
what to do.
"""

import json

import numpy as np
import pandas as pd
import pytest

from ldp_client import Device
from ldp_client.bulk import perturb_many, public_many
from ldp_client.documents.errors import AnswerError, RefusedError
from ldp_client.mechanisms import mechanism_for
from ldpkit.cli import main
from schemas import Study
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting, problem

PUBLIC = [{"id": "region", "choices": ["n", "s"]}, {"id": "age", "bounds": ["1", "99"], "step": "1"}]
STUDY = Study(studies.document(studies.YES_NO, public=PUBLIC))
CODE = "-a_B9-xyz_-"


@pytest.mark.parametrize(
    "written", ["{}\n", "{}\r\n", " {}", '"{}"', "{}\u00a0", "{}\u2013", "\u201c{}\u201d."]
)
def test_copied_invitation_is_accepted_in_any_form(tmp_path, written):
    device = consenting(tmp_path, "2")
    device.answer(STUDY, {"ever": True}, written.format(CODE), public={"region": "n", "age": 5})
    assert device.ledger.queued()[0].invitation == CODE


def test_refusal_of_another_groups_invitation_explains_itself(tmp_path):
    """ "Give one that is unused" would make the person ask for another one of the same group."""
    with Server(STUDY.canonical()) as server:
        device = consenting(tmp_path, "2", server.url)
        device.answer(device.fetch("survey"), {"ever": True}, CODE, public={"region": "n", "age": 5})
        media_type, text = problem("invitation-needed")
        document = {**json.loads(text), "field": "public.region", "detail": "is another value"}
        server.statuses, server.refusals = [403], {403: (media_type, json.dumps(document))}
        flushed = device.flush(attempts=1)
    assert "public.region: HTTP status 403, invitation-needed: is another value" in flushed.reason
    assert "an invitation that carries the report's value" in flushed.reason
    assert flushed.waiting == 1


def test_huge_number_is_rejected():
    for answer in (10**5000, -(10**5000), float("nan"), float("inf"), 1e308):
        with raises(AnswerError, "core.public_number", field="age"):
            STUDY.public[1].value_of(answer)


def test_check_warns_of_labels_that_look_alike():
    labels = ["a", "\u0430", "\u2800", "\u3164 ", "b", "\u0392", "B"]
    study = Study(studies.document(studies.YES_NO, public=[{"id": "r", "choices": labels}]))
    assert len(warnings_of(study)) == 5


@pytest.mark.parametrize(
    "column", ["ns", {"n", "s"}, "n", 5, (one for one in "ns"), {"n": 1}, np.array([["n"], ["s"]])]
)
def test_unordered_column_is_rejected(column):
    with raises(AnswerError, "files.column_order", field="region"):
        public_many(STUDY, {"region": column, "age": [1, 2]})


def test_data_frame_is_accepted():
    frame = pd.DataFrame({"region": ["n", "s"], "age": [4.0, 5.0]}, index=[7, 9])
    assert public_many(STUDY, frame) == [{"region": "n", "age": "4"}, {"region": "s", "age": "5"}]
    with raises(AnswerError, "files.columns_by_name"):
        public_many(STUDY, [["n", 1]])


def test_new_answer_does_not_change_a_waiting_report(tmp_path, capsys):
    """A person who moved would believe that the new region was sent."""
    with Server(STUDY.canonical()) as server:
        device = Device(tmp_path, "8", server.url)
        study = device.fetch("survey")
        device.consent(study)
        device.answer(study, {"ever": True, "region": "s", "age": 5})
        command = ["answer", f"{server.url}/v1/studies/survey", "--folder", str(tmp_path), "--yes"]
        main([*command, "--set", "ever=yes", "--public", "region=n", "--public", "age=5"])
    told = capsys.readouterr().err
    assert "it is sent as it was made, without any value given now" in told
    assert "region: s is in the waiting report, without noise" in told


def test_older_signed_version_is_refused_as_older(tmp_path):
    from ldp_client.files.signing import new_key, sign_study

    private, public = new_key()
    device = consenting(tmp_path, "4", signing_keys=[public])
    first, second = [Study(studies.document(studies.YES_NO, version=version)) for version in (1, 2)]
    for study in (first, second):
        device.accept(sign_study(study, private.encode()))
    device.answer(second, {"ever": True})
    with raises(RefusedError, "device.older_version", "1", "2"):
        device.answer(first, {"ever": True})


@pytest.mark.parametrize(
    "question", [studies.LINEAR, studies.PRODUCTS], ids=lambda one: one["mechanism"]["name"]
)
@pytest.mark.parametrize("column", [[True, 30], (30.5, False)], ids=str)
def test_boolean_in_a_number_column_is_rejected(question, column):
    """A single device refuses it too: it would count as 1."""
    mechanism = mechanism_for(Study(studies.document(question)).questions[0])
    columns = {one.id: [True, False] if one.bounds is None else [4, 5] for one in mechanism.features}
    columns["rate"] = [4, 5]
    assert len(perturb_many(mechanism, columns)) == 2
    for name in ("age", "rate"):
        with raises(AnswerError, "core.numbers", field=f"{question['id']}.{name}"):
            perturb_many(mechanism, {**columns, name: column})
