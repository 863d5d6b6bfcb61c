"""A study is closed or deleted before its last day: a late device pays for a report that is not accepted.

Defence: The collector: sends the study's state with the study; the device and the page refuse before any
noise is drawn. Known limit: a study that was fetched before, or that came another way.
"""

import json
import subprocess

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError, TransferError
from ldp_client.files.signing import new_key, sign_study
from ldpkit.cli import main
from tests.collector.answered import problem
from tests.collector.conftest import ANSWERS
from tests.kit.deleting import delete_study
from tests.kit.errors import raises
from tests.ldp_client.devices import Server
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

ADDRESS = "/v1/studies/habits"
FETCH = """
const {{ fetchStudy }} = await import("{folder}/fetching.js");
const {{ openDevice }} = await import("{folder}/index.js");
const {{ memoryLedger }} = await import("{folder}/ledgers/memory.js");
const device = await openDevice({{ maxEpsilon: "8", collector: "{url}/", ledger: memoryLedger() }});
for (const id of ["habits", "nothing"]) {{
  const said = await fetchStudy(device, id).then(({{ digest }}) => digest, ({{ message }}) => message);
  console.log(said);
}}
"""


@pytest.fixture
def served(start_server, study):
    server = start_server()
    server.request("POST", "/v1/studies", study.document)
    return server


ASK = """
const { fetchStudy } = await import(process.argv[1]);
const device = { collector: process.argv[2], transport: fetch };
const said = fetchStudy(device, "diary").then(({ id }) => id, ({ message }) => message);
console.log(await said);
"""


@pytest.mark.needs("node")
def test_fetch_rejects_another_study_than_requested(tmp_path, study):
    """A page that asks for one would show, and charge for, another."""
    with Server(study.canonical()) as server:
        with raises(TransferError, "device.another_study", "habits"):
            Device(tmp_path, "8", server.url).fetch("diary")
        node = ["node", "--input-type=module", "-e", ASK, (JAVASCRIPT / "fetching.js").as_uri()]
        call = [*node, server.url]
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "input: study: is another: habits\n"


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True])
def test_answer_to_closed_study_costs_no_budget(start_server, study, tmp_path, signed):
    server = start_server()
    private, public = new_key()
    document = json.loads(sign_study(study, private.encode()).to_json()) if signed else study.document
    server.request("POST", "/v1/studies", document)
    keys = [public] if signed else None
    early, late = (Device(tmp_path / name, "8", server.url, signing_keys=keys) for name in ("early", "late"))
    for device in (early, late):
        device.consent(device.fetch(study.id))
    early.answer(study, ANSWERS)
    server.request("POST", f"{ADDRESS}/close")
    with raises(RefusedError, "device.closed_early"):
        late.answer(late.fetch(study.id), ANSWERS)
    assert late.epsilon_left == 8
    # What was answered in time goes on to wait: the study may have been closed by mistake.
    early.fetch(study.id)
    with pytest.raises(AlreadyAnsweredError):
        early.answer(study, ANSWERS)
    assert early.flush(attempts=1).waiting == 1


@pytest.mark.slow
def test_page_shows_no_questions_once_study_is_closed(served, study):
    def fetched():
        script = FETCH.format(folder=JAVASCRIPT, url=served.url)
        return npm.node("--input-type=module", "-e", script).splitlines()

    unknown = "input: study: was not found: HTTP status 404"
    assert fetched() == [study.digest, unknown]
    served.request("POST", f"{ADDRESS}/close")
    assert fetched() == ["closed: takes no reports", unknown]


BUDGET = ("--max-epsilon", "8")


@pytest.mark.slow
def test_deleted_study_refuses_answers_but_accepts_withdrawals(served, study, tmp_path, capsys):
    device = Device(tmp_path / "early", "8", served.url)
    device.consent(device.fetch(study.id))
    device.answer(study, ANSWERS)
    assert device.flush(attempts=1).sent == 1
    assert served.request("DELETE", ADDRESS) == 200
    late = ["answer", f"{served.url}{ADDRESS}", "--folder", str(tmp_path / "late"), "--yes", *BUDGET]
    assert main([*late, "--set", "hours=1"]) == 3
    assert "was deleted, and accepts no further reports" in capsys.readouterr().err
    device.withdraw(study.id)
    assert device.flush(attempts=1).deleted == 1


def test_study_state_is_sent_in_a_header_and_document_is_unchanged(habits, study):
    def asked(path="", **query):
        answer = habits.client.get(ADDRESS + path, query_string=query)
        return answer.status_code, answer.headers.get("LDPKit-Study")

    assert asked() == (200, "open")
    habits.close()
    assert asked() == (200, "closed")
    assert habits.client.get(ADDRESS).data == study.canonical()
    unchanged = habits.client.get(ADDRESS, headers={"If-None-Match": f'"{study.digest}"'})
    assert (unchanged.status_code, unchanged.headers["LDPKit-Study"]) == (304, "closed")
    delete_study(habits.collector.database, study.id)
    habits.collector.current.forget(study.id)
    assert problem(habits.client.get(ADDRESS)) == (410, "study-deleted")
    assert problem(habits.client.get(f"{ADDRESS}/signed")) == (410, "study-deleted")
    assert asked(version=1) == (200, "closed")
