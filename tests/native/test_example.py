"""The example in C: from `ldpkit compile` to a report that a real collector stores, and deletes."""

import fcntl
import json
import subprocess
import urllib.request

import pytest

from conformance.native import CORE
from ldpkit.cli import main
from tests.collector.conftest import Server
from tests.kit.programs import need

EXAMPLE = CORE.parent / "examples" / "native"
NOTHING = 1


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The example, compiled as docs/native.md tells."""
    need("gcc")
    folder = tmp_path_factory.mktemp("sleep")
    command = [
        "compile",
        str(EXAMPLE / "study.json"),
        "--to",
        "c",
        "--collector",
        "https://collector.example",
    ]
    assert main([*command, "--out", str(folder)]) == 0
    flags = [
        "-std=c99",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-pedantic",
        "-Wno-unused-variable",
        "-Werror",
    ]
    sources = [*sorted(CORE.glob("*.c")), CORE / "posix" / "device.c", EXAMPLE / "sleep.c"]
    include = [f"-I{path}" for path in (CORE, CORE / "posix", folder)]
    subprocess.run(["cc", *flags, *include, "-o", folder / "sleep", *sources], check=True)
    return folder / "sleep"


def sent(url, words, body):
    """Send what `sleep next` printed. Return the answer."""
    method, report, *secret = words.split()
    headers = {"Content-Type": "application/json", **({"LDPKit-Withdrawal": secret[0]} if secret else {})}
    address = f"{url}/v1/studies/sleep/reports/{report}"
    data = None if secret else body.encode()
    request = urllib.request.Request(address, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


@pytest.fixture
def call(program, tmp_path):
    """Run the example in an empty folder. Return its status and what it prints."""

    def run(*words):
        command = [program, "journal", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    return run


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
        study = json.loads((EXAMPLE / "study.json").read_text())
        assert collector.request("POST", "/v1/studies", study) == 201
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
