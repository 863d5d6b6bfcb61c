"""The example in C: from `ldpkit compile` to a report that a real collector stores, and deletes."""

import fcntl
import json
import subprocess
import urllib.request
from functools import partial
from urllib.error import HTTPError

import pytest

from conformance.native import CORE
from ldpkit.cli import main
from tests.kit.collectors import Server
from tests.kit.programs import need

EXAMPLE = CORE.parent / "examples" / "native"
NOTHING = 1


STUDY = json.loads((EXAMPLE / "study.json").read_text())
ARM = {"id": "arm", "choices": ["control", "treated"], "source": "ticket"}
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Wno-unused-variable", "-Werror")


def compiled_example(folder, study):
    """The example for a version of its study, compiled as docs/native.md tells."""
    need("gcc")
    (folder / "study.json").write_text(json.dumps(study))
    command = ["compile", str(folder / "study.json"), "--to", "c", "--collector", "https://collector.example"]
    assert main([*command, "--out", str(folder)]) == 0
    sources = [*sorted(CORE.glob("*.c")), CORE / "posix" / "device.c", EXAMPLE / "sleep.c"]
    include = [f"-I{path}" for path in (CORE, CORE / "posix", folder)]
    command = ["cc", "-std=c99", "-O2", *WARNINGS, *include, "-o", folder / "sleep", *sources]
    subprocess.run(command, check=True)
    return folder / "sleep"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled_example(tmp_path_factory.mktemp("sleep"), STUDY)


def sent(url, words, body, **headers):
    """Send what `sleep next` printed. Return the answer."""
    method, report, *secret = words.split()
    fields = {"Content-Type": "application/json", **headers}
    fields |= {"LDPKit-Withdrawal": secret[0]} if secret else {}
    address = f"{url}/v1/studies/sleep/reports/{report}"
    data = None if secret else body.encode()
    request = urllib.request.Request(address, data, fields, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def ran(program, folder, *words):
    """Run the example in a folder. Return its status and what it prints."""
    command = [program, "journal", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture
def call(program, tmp_path):
    """Run the example in an empty folder."""
    return partial(ran, program, tmp_path)


@pytest.mark.attack(4)
@pytest.mark.slow
def test_second_process_cannot_use_the_journal(call, tmp_path):
    (tmp_path / "journal").touch(0o600)
    with (tmp_path / "journal").open() as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        assert call("answer", "7.5", "yes")[0] == 2
    assert (tmp_path / "journal").stat().st_size == 0
    assert call("answer", "7.5", "yes")[0] == 0


@pytest.mark.slow
def test_collector_accepts_and_deletes_a_report_of_the_example(call, tmp_path):
    collector = Server(tmp_path)
    try:
        assert collector.request("POST", "/v1/studies", STUDY) == 201
        assert call("next") == (NOTHING, "")
        assert call("answer", "7.5", "yes")[0] == 0
        assert call("answer", "7.5", "yes")[0] == 2
        first, again = call("next"), call("next")
        assert first == again
        words, body = first[1].split("\n")
        assert sent(collector.url, words, body)["result"] == "stored"
        assert sent(collector.url, words, body)["result"] == "duplicate"
        assert call("done") == (0, "")
        assert call("next") == (NOTHING, "")
        assert json.loads(body)["id"] in collector.read("/v1/studies/sleep/export")
        assert call("withdraw")[0] == 0
        words, _ = call("next")[1].split("\n")
        assert sent(collector.url, words, "")["result"] == "withdrawn"
        assert call("done") == (0, "")
        assert call("next") == (NOTHING, "")
        assert json.loads(body)["id"] not in collector.read("/v1/studies/sleep/export")
    finally:
        collector.kill()


@pytest.mark.slow
def test_collector_accepts_a_report_with_a_direct_ticket(tmp_path):
    """A field that the ticket carries is not in the report: the collector adds it."""
    study = {**STUDY, "public": [ARM]}
    program, collector = compiled_example(tmp_path, study), Server(tmp_path)
    try:
        assert collector.request("POST", "/v1/studies", study) == 201
        ticket, _ = collector.tickets("sleep", 2, arm="treated")
        assert ran(program, tmp_path, "answer", "7.5", "yes")[0] == 0
        words, body = ran(program, tmp_path, "next")[1].split("\n")
        assert "arm" not in body
        with pytest.raises(HTTPError, match="401"):
            sent(collector.url, words, body)
        assert sent(collector.url, words, body, **{"LDPKit-Ticket": ticket})["result"] == "stored"
        stored = collector.read("/v1/studies/sleep/export").splitlines()
        (line,) = [line for line in stored if json.loads(body)["id"] in line]
        assert '"arm":"treated"' in line
    finally:
        collector.kill()
