"""The example in C, here and on a board: `ldpkit compile` leads to a report that a collector stores."""

import fcntl
import json
import os
import re
import resource
import subprocess
import sys
import urllib.request
from urllib.error import HTTPError

import pytest

from conformance.native import CORE
from ldpkit.cli import main
from tests.kit.collectors import Server
from tests.kit.programs import need, output_of
from tests.native.vectors_in_c import vectors_in_c

EXAMPLE = CORE.parent / "examples" / "native"
BOARD, STUDY = EXAMPLE / "board", EXAMPLE / "study.json"
NOTHING = 1
# Standard error names each call. The sync of number FAILING_SYNC fails: only the cache has what was written.
CALLS = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
ssize_t __real_write(int file, const void *bytes, size_t size);
ssize_t __wrap_write(int file, const void *bytes, size_t size);
int __real_fsync(int file);
int __wrap_fsync(int file);
ssize_t __wrap_write(int file, const void *bytes, size_t size) {
    fputs("w", stderr);
    return __real_write(file, bytes, size);
}
int __wrap_fsync(int file) {
    static int count;
    const char *failing = getenv("FAILING_SYNC");
    fputs("s", stderr);
    return failing && ++count == atoi(failing) ? -1 : __real_fsync(file);
}
"""
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Wno-unused-variable", "-Werror")


def compiled_into(folder):
    command = ["compile", str(STUDY), "--to", "c", "--collector", "https://collector.example"]
    assert main([*command, "--out", str(folder)]) == 0


def sent(url, words, body, **headers):
    """Send what `sleep next` printed. Return the answer."""
    method, report, *secret = words.split()
    fields = {"Content-Type": "application/json", **headers}
    if secret:
        fields["LDPKit-Withdrawal"] = secret[0]
    address = f"{url}/v1/studies/sleep/reports/{report}"
    data = None if secret else body.encode()
    request = urllib.request.Request(address, data, fields, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The example, whose calls of the system are watched."""
    need("gcc")
    folder = tmp_path_factory.mktemp("sleep")
    (folder / "calls.c").write_text(CALLS)
    compiled_into(folder)
    sources = [*sorted(CORE.glob("*.c")), CORE / "posix" / "device.c", EXAMPLE / "sleep.c"]
    include = [f"-I{path}" for path in (CORE, CORE / "posix", folder)]
    watched = ["-Wl,--wrap=write,--wrap=fsync", folder / "calls.c"]
    command = ["cc", "-std=c99", "-O2", *WARNINGS, *include, "-o", folder / "sleep", *sources, *watched]
    subprocess.run(command, check=True)
    return folder / "sleep"


@pytest.fixture
def call(program, tmp_path):
    """Run the example in an empty folder. Return its status and what it prints. calls: what it must make."""

    def ran(*words, calls=None, **options):
        command = [program, "journal", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, **options)
        assert calls in (None, done.stderr)
        return done.returncode, done.stdout

    return ran


@pytest.fixture
def collector(tmp_path):
    with Server(tmp_path) as started:
        assert started.request("POST", "/v1/studies", json.loads(STUDY.read_text())) == 201
        yield started


@pytest.mark.attack(4)
@pytest.mark.slow
def test_second_process_cannot_use_the_journal(call, tmp_path):
    (tmp_path / "journal").touch(0o600)
    with (tmp_path / "journal").open() as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        assert call("answer", "7.5", "yes")[0] == 2
    assert (tmp_path / "journal").stat().st_size == 0
    assert call("answer", "7.5", "yes")[0] == 0


@pytest.mark.attack(4)
@pytest.mark.slow
def test_full_disk_leaves_a_usable_journal(call, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    assert call("answer", "7.5", "yes", preexec_fn=limit, restore_signals=False)[0] == 2
    assert (tmp_path / "journal").stat().st_size == 200
    assert call("next") == (NOTHING, "")
    assert call("answer", "7.5", "yes")[0] == 0
    assert call("next")[1].startswith("PUT ")


@pytest.mark.attack(4)
@pytest.mark.slow
def test_report_is_durable_before_it_is_sent_or_never_sent(call, tmp_path):
    """A sync comes after each record, and before a journal is read. After a failed one the next succeeds."""
    answer, journal = ("answer", "7.5", "yes"), tmp_path / "journal"
    for number in range(1, 5):
        journal.unlink(missing_ok=True)
        assert call(*answer, env={"FAILING_SYNC": str(number)})[0] == 2
        assert call("next") == (NOTHING, "")
        assert call(*answer)[0] == 0
    # What was durable stays.
    kept = journal.read_bytes()
    for number, words in ((1, answer), (2, answer), (3, ("done",)), (3, ("withdraw",))):
        assert call(*words, env={"FAILING_SYNC": str(number)})[0] != 0
        assert journal.read_bytes() == kept
    assert call("next")[1].startswith("PUT ")
    # The folder of the file, the journal, its budget and its answer; the folder and the journal again.
    journal.unlink()
    assert call(*answer, calls="sswsws")[0] == 0
    assert call("next", calls="ss")[1].startswith("PUT ")


@pytest.mark.slow
def test_collector_accepts_and_deletes_a_report_of_the_example(call, collector):
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


@pytest.mark.slow
def test_collector_accepts_a_report_of_the_example_with_a_ticket(call, collector):
    (ticket,) = collector.tickets("sleep", 1)
    assert call("answer", "7.5", "yes")[0] == 0
    words, body = call("next")[1].split("\n")
    with pytest.raises(HTTPError, match="401"):
        sent(collector.url, words, body)
    assert sent(collector.url, words, body, **{"LDPKit-Ticket": ticket})["result"] == "stored"


@pytest.mark.slow
@pytest.mark.needs("gcc", "curl")
def test_documented_commands_end_in_a_stored_report(collector, tmp_path):
    """The commands in C of docs/native.md, in a folder that looks like a clone."""
    for name in ("c", "examples"):
        (tmp_path / name).symlink_to(CORE.parent / name)
    (tmp_path / "app").mkdir()
    program = tmp_path / "ldpkit"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ldpkit "$@"\n')
    program.chmod(0o755)
    page = (CORE.parent / "docs" / "native.md").read_text()
    commands = re.search(r"### C\n\n```\n(.*?)```", page, re.DOTALL)[1]
    command = ["sh", "-ec", f"{commands}app/sleep app/journal next || test $? -eq 1"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "COLLECTOR": collector.url}
    assert output_of(*command, cwd=tmp_path, env=environment).endswith('"result":"stored"}\n')


FLAGS = ("-std=c99", "-Os", "-mthumb", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror")
LARGEST_CODE = 12 * 1024


def run_on_board(folder, sources, name):
    """Compile for the board, and run it in QEMU. Return what it prints."""
    need("arm")
    board = ["-mcpu=cortex-m3", "--specs=rdimon.specs", "-nostartfiles", "-T", str(BOARD / "board.ld")]
    files = [*map(str, sorted(CORE.glob("*.c"))), str(BOARD / "start.c"), *map(str, sources)]
    include = ["-I", str(CORE), "-I", str(folder)]
    subprocess.run(["arm-none-eabi-gcc", *FLAGS, *board, *include, "-o", folder / name, *files], check=True)
    command = ["qemu-system-arm", "-M", "mps2-an385", "-nographic", "-semihosting", "-kernel", name]
    return output_of(*command, cwd=folder, timeout=120)


@pytest.mark.slow
def test_vectors_pass_on_a_cortex_m3(tmp_path):
    text, count = vectors_in_c()
    source = tmp_path / "vectors.c"
    source.write_text(text)
    assert count > 2000
    assert run_on_board(tmp_path, [source], "vectors.elf") == f"{count} of {count}\n"


@pytest.mark.slow
def test_collector_stores_the_board_s_report(tmp_path, collector):
    compiled_into(tmp_path)
    first = run_on_board(tmp_path, [BOARD / "main.c"], "board.elf")
    assert run_on_board(tmp_path, [BOARD / "main.c"], "board.elf") == first
    words, body, _ = first.split("\n")
    assert sent(collector.url, words, body)["result"] == "stored"


@pytest.mark.slow
def test_code_is_small_on_a_cortex_m0(tmp_path):
    need("arm")
    sizes = []
    for source in sorted(CORE.glob("*.c")):
        if source.name != "tables.c":
            target = tmp_path / f"{source.stem}.o"
            command = ["arm-none-eabi-gcc", *FLAGS, "-mcpu=cortex-m0plus", "-c", "-o", target, source]
            subprocess.run(command, check=True)
            sizes.append(int(output_of("arm-none-eabi-size", target).splitlines()[1].split()[0]))
    assert sum(sizes) <= LARGEST_CODE
