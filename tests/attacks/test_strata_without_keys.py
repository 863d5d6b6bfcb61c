"""Publish a study whose tokens lack a stratum's key: its people pay, and no report of theirs leaves.

Defence: `ldpkit check`, with an error; `ldpkit publish` and the collector refuse it, and name field
and value; where a combination of several fields alone has no key, a warning. A device that has such a study
says that its report cannot leave, and withdraws it. Known limit: in browsers it is shown as the issuer's
refusal.
"""

import json
from pathlib import Path

import pytest

from collector.remote.operating import RemoteCollector
from collector.views import studies as views
from ldp_client.core.tokens import short_id_of
from ldp_client.documents.errors import StudyError
from ldp_client.explain import describe
from ldpkit.cli import main
from schemas import Study
from schemas.channel_warnings import require_keys, without_key
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, channel_of, keys, refusing
from tests.schemas.test_channel import channel, tokens

REGION = {"id": "region", "choices": ["north", "south", "west"], "source": "invitation"}
SEX = {"id": "sex", "choices": ["f", "m"], "source": "invitation"}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "0.5", "source": "invitation"}
NORTH, SOUTH, WEST = ({"region": name} for name in REGION["choices"])


def study_of(*strata, public=(REGION,)):
    return Study(
        studies.document(studies.YES_NO, channel=channel(tokens=tokens(*strata)), public=list(public))
    )


def warned(study):
    return [line for line in warnings_of(study) if "no key" in line]


def test_study_with_stratum_without_key_is_not_published(make_harness):
    harness = make_harness()
    response = harness.publish(study_of(NORTH, SOUTH))
    assert response.status_code == 422
    said = response.get_json()
    assert said["field"] == "channel.tokens.keys"
    assert "region=west (1 of 3 values" in said["detail"]
    assert harness.publish(study_of(NORTH, SOUTH, WEST)).status_code == 201


def test_study_check_rejects_stratum_without_key(tmp_path, capsys):
    path = tmp_path / "study.json"
    for strata, code in (([NORTH, SOUTH], 3), ([NORTH, SOUTH, WEST], 0)):
        path.write_text(json.dumps(study_of(*strata).document))
        assert main(["check", str(path)]) == code
        said = capsys.readouterr()
        assert ("lack a key for region=west" in said.err) is bool(code)
        assert ("each of the 3 strata has a separate key" in said.out) is not bool(code)
        assert ("2 of the 3 strata have a separate key" in said.out) is bool(code)


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_publish_command_rejects_stratum_without_key(tmp_path, capsys, monkeypatch, more):
    monkeypatch.setattr(RemoteCollector, "served", lambda *_: (None, False))
    monkeypatch.setattr(RemoteCollector, "publish", lambda *_: pytest.fail("published"))
    path = tmp_path / "study.json"
    path.write_text(json.dumps(study_of(NORTH, SOUTH).document))
    words = ["publish", str(path), "--collector", "http://127.0.0.1:9", "--token", "key", *more]
    assert main(words) == 3
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "lack a key for" in line]
    assert f"{path}: " in said
    assert "region=west" in said


@pytest.fixture
def published_before(make_harness, monkeypatch):
    """A collector that has such a study of an earlier release, and the study."""
    harness, study = make_harness(), study_of(NORTH, SOUTH)
    with monkeypatch.context() as context:
        context.setattr(views, "require_keys", lambda _: None)
        assert harness.publish(study).status_code == 201
    return harness, study


def test_study_published_by_earlier_release_can_be_republished(published_before):
    """For example to sign it, or by a script that runs again."""
    harness, study = published_before
    assert harness.publish(study).status_code == 200
    later = Study({**study.document, "version": 2})
    assert harness.publish(later).status_code == 422
    assert harness.client.get(f"/v1/studies/{study.id}").json["version"] == 1


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_publish_command_republishes_earlier_study(published_before, tmp_path, capsys, monkeypatch, more):
    _, study = published_before
    monkeypatch.setattr(RemoteCollector, "served", lambda *_: (study.canonical(), False))
    monkeypatch.setattr(RemoteCollector, "publish", lambda *_: [])
    monkeypatch.setattr(RemoteCollector, "status", lambda *_: {"state": "open"})
    path = tmp_path / "study.json"
    path.write_bytes(study.canonical())
    assert main(["publish", str(path), "--collector", "http://127.0.0.1:9", "--token", "key", *more]) == 0
    assert "published" in capsys.readouterr().out


def test_later_version_with_added_value_needs_its_key(make_harness):
    harness = make_harness()
    two = {**REGION, "choices": ["north", "south"]}
    first = study_of(NORTH, SOUTH, public=[two])
    assert harness.publish(first).status_code == 201
    second = Study({**first.document, "version": 2, "public": [REGION]})
    assert harness.publish(second).status_code == 422


def test_number_stratum_without_key_is_rejected():
    two = {**AGE, "bounds": ["18", "19"]}
    study = study_of({"age": "18"}, {"age": "19"}, public=[two])
    with raises(StudyError, "study.stratum_key_missing", "age=18.5", "1 of 3"):
        require_keys(study)
    require_keys(study_of({"age": "18"}, {"age": "18.5"}, {"age": "19"}, public=[two]))
    with raises(StudyError, "study.stratum_key_missing", "age=19 ", "161 of 163"):
        require_keys(study_of({"age": "18"}, {"age": "18.5"}, public=[AGE]))


def test_field_not_from_invitation_needs_no_key():
    told = {"id": "hand", "choices": ["left", "right"]}
    study = study_of(public=[told])
    assert without_key(study) == (0, [])
    require_keys(study)
    untokened = Study(studies.document(studies.YES_NO, public=[REGION]))
    assert without_key(untokened) == (0, [])
    require_keys(untokened)


def test_combinations_without_key_warn():
    both = [{"region": region, "sex": sex} for region in REGION["choices"] for sex in SEX["choices"]]
    study = study_of(*both[:3], both[5], public=[REGION, SEX])
    require_keys(study)
    (line,) = warned(study)
    assert "2 of 6 strata have no key, region=south, sex=m; region=west, sex=f:" in line
    assert any("4 of the 6 strata have a separate key" in said for said in describe(study))
    whole = study_of(*both, public=[REGION, SEX])
    assert not warned(whole)
    assert any("each of the 6 strata has a separate key" in said for said in describe(whole))


def test_many_combinations_without_key_are_counted():
    fields = [{**AGE, "id": f"age{place}", "bounds": ["0", "999999"], "step": "1"} for place in range(3)]
    study = study_of({"age0": "0", "age1": "0", "age2": "0"}, public=fields)
    (line,) = warned(study)
    assert "999,999,999,999,999,999 of 1,000,000,000,000,000,000 strata" in line
    assert "age0=0, age1=0, age2=1; age0=0, age1=0, age2=2; age0=0, age1=0, age2=3; …" in line


def test_control_characters_in_label_are_escaped():
    field = {**REGION, "choices": ["north", "so\u202euth"]}
    study = study_of(NORTH, public=[field])
    with raises(StudyError, "study.stratum_key_missing", r"region=so\u202euth"):
        require_keys(study)
    assert "so\\u202euth" in warned(study)[0]


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def device(tmp_path, server):
    """One that answered such a study, which an earlier release published, and its issuer."""
    with Issuer() as issuer:
        stated = channel_of(issuer.url, NORTH, SOUTH)
        study = Study(studies.document(studies.YES_NO, channel=stated, public=[REGION]))
        device = consenting(tmp_path / "device", "8", server.url)
        device.answer(study, {"ever": True}, "CODE")
        taken = {short_id_of(key.spki) for key in keys()}
        other = min({*range(3)} - taken)
        yield device, issuer, refusing(409, "token-key-other", key=2, key_id=other)


def test_device_with_stratum_without_key_reports_it_and_withdraws(device):
    device, issuer, names_another = device
    issuer.answers = [names_another] * 2
    flushed = device.flush(attempts=5)
    assert (flushed.waiting, flushed.stuck, len(issuer.requests)) == (1, True, 1)
    assert "no report of that group can ever leave" in flushed.reason
    assert "withdraw" in flushed.reason
    assert "409" not in flushed.reason
    device.withdraw(studies.document()["id"])
    assert not device.ledger.queued()
    assert device.flush(attempts=1).waiting == 0
    assert len(issuer.requests) == 1


def test_later_correct_issuer_answer_gives_token(device):
    """An issuer's refusal does not end a report, as the issuer may lie."""
    device, issuer, names_another = device
    issuer.answers = [names_another]
    assert device.flush(attempts=1).stuck
    flushed = device.flush(attempts=1)
    assert (flushed.batched, flushed.stuck) == (1, False)
    assert device.ledger.queued()[0].invitation == ""


def test_command_does_not_advise_to_run_again(device, capsys):
    device, issuer, names_another = device
    issuer.answers = [names_another] * 2
    folder = str(Path(device.ledger.path).parent)
    main(["answer", f"{device.collector}/v1/studies/{studies.document()['id']}", "--folder", folder])
    said = capsys.readouterr().err
    assert "no report of that group can ever leave" in said
    assert "run again" not in said
