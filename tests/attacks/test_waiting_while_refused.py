"""Attack: have a report that could not be sent wait for ever, by a next version that is not answered.

Defence: The device: `ldpkit answer` and the guide's gateway send what waits whatever keeps the study they
have now from being answered.
"""

import pytest

from ldp_client import Device
from ldp_client.documents.errors import LdpkitError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server
from tests.portable.embedding_guide import code

FIRST = Study(studies.document(studies.YES_NO))
MORE = {**studies.YES_NO, "id": "more"}
DEAR = {**MORE, "mechanism": {"name": "randomized_response", "epsilon": "30"}}
REFUSED = {
    "too dear": {"questions": [DEAR]},
    "over": {"questions": [MORE], "closes": "2020-01-01"},
    "in clear": {"questions": [MORE], "public": [{"id": "ever", "choices": ["no", "yes"]}]},
}


def version_2(name):
    return Study({**FIRST.document, "version": 2, **REFUSED[name]})


def queue(folder, url):
    """Version 1, answered while the collector was down."""
    device = Device(folder, "8", url)
    device.accept(FIRST)
    device.consent(FIRST)
    return device, device.answer(FIRST, {"ever": "yes"})


def sent(server):
    return [path.rpartition("/")[2] for verb, path, *_ in server.requests if verb == "PUT"]


@pytest.mark.parametrize("name", REFUSED)
def test_guide_gateway_sends_waiting_report(tmp_path, name):
    study = version_2(name)
    with Server(study.canonical()) as server:
        device, report = queue(tmp_path / "member", server.url)
        gateway = {"FOLDER": tmp_path, "COLLECTOR": server.url}
        exec(code("python", "answer_for"), gateway)
        public = {"ever": "yes"} if study.public else None
        with pytest.raises(LdpkitError):
            gateway["answer_for"]("member", study, {"more": True}, public)
        assert sent(server) == [report]
        assert not device.ledger.queued()


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("setting", ["ever=yes", "more=maybe", "more=yes"])
def test_answer_command_sends_waiting_report(tmp_path, capsys, name, setting):
    with Server(version_2(name).canonical()) as server:
        device, report = queue(tmp_path, server.url)
        command = ["answer", f"{server.url}/v1/studies/survey", "--folder", str(tmp_path), "--yes"]
        assert main([*command, "--set", setting]) != 0
        assert f"report {report} has waited since an earlier call" in capsys.readouterr().err
        assert sent(server) == [report]
        assert not device.ledger.queued()


def test_unreachable_server_leaves_report_listed_as_waiting(tmp_path, capsys):
    with Server(FIRST.canonical()) as server:
        _, report = queue(tmp_path, server.url)
        url = f"{server.url}/v1/studies/survey"
    assert main(["answer", url, "--folder", str(tmp_path), "--yes", "--set", "ever=yes"]) != 0
    assert f"report {report} has waited since an earlier call" in capsys.readouterr().err
