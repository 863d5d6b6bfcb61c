"""Publish a study that every device pays for in vain: its report is larger than any device sends."""

import json

import pytest

from ldp_client import Device
from ldp_client.cli import main
from ldp_client.describing import report_size
from ldp_client.device.outbox import MOST_BYTES
from ldp_client.documents.errors import RefusedError
from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

LARGE = {"ask": "choice", "choices": {"count": 65_536}, "mechanism": {"name": "oue", "epsilon": "0.05"}}


def of_questions(count, **more):
    model = {"name": "multinomial"}
    return Study(
        studies.document(*[{"id": f"q{place}", **LARGE, "model": model} for place in range(count)], **more)
    )


def test_study_check_refuses_it(tmp_path, capsys):
    path = tmp_path / "study.json"
    for count, code in ((95, 0), (96, 3), (97, 3)):
        study = of_questions(count)
        path.write_text(json.dumps(study.document))
        assert main(["study", "check", str(path)]) == code
        said = capsys.readouterr().err
        assert (f"would have {report_size(study)} bytes" in said) is (report_size(study) > MOST_BYTES)
    device = Device(tmp_path / "device", "8", require_consent=False)
    with pytest.raises(RefusedError, match=f"{report_size(study)} bytes"):
        device.answer(study, {f"q{place}": 1 for place in range(97)})


SCRIPT = """
const from = (name) => import("%s/" + name);
const { openDevice, parseStudy } = await from("index.js");
const ledger = (await from("ledgers/memory.js")).memoryLedger();
const study = await parseStudy(JSON.stringify(%s));
const device = await openDevice({ maxEpsilon: "8", collector: "https://a.example", ledger });
const answers = Object.fromEntries(study.questions.map(({ id }) => [id, 1]));
const said = await device.answer(study, answers).catch(({ code }) => code);
console.log(said, await ledger.read(({ spent, reports }) => spent.length + reports.length));
"""


def test_javascript_spends_nothing_on_it():
    script = SCRIPT % (JAVASCRIPT, json.dumps(of_questions(97).document))
    assert npm.node("--input-type=module", "-e", script).split() == ["study", "0"]


def test_the_size_is_every_reports(tmp_path):
    public = [{"id": "region", "choices": ["a", "a longer name"]}]
    for ask_one in (False, True):
        study = Study(
            studies.document(studies.YES_NO, studies.NUMBER, studies.CHOICE, public=public, ask_one=ask_one)
        )
        device = Device(tmp_path / str(ask_one), "99", require_consent=False)
        label = study.question(studies.CHOICE["id"]).choices[0]
        answers = {"ever": True, studies.NUMBER["id"]: 1, studies.CHOICE["id"]: label}
        device.answer(study, answers, public={"region": "a"})
        assert [len(queued.body) for queued in device.ledger.queued()] == [report_size(study)]


def test_a_collector_does_not_publish_it(make_harness):
    harness = make_harness(body_limit=8 << 20)
    response = harness.publish(of_questions(97))
    assert response.status_code == 422
    assert "a device sends" in response.get_json()["detail"]
