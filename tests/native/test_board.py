"""The core on a Cortex-M3 in QEMU: vectors, size of code, and a report that a collector stores."""

import json
import subprocess

import pytest

from conformance.native import CORE
from ldpkit.cli import main
from tests.kit.collectors import Server
from tests.kit.programs import need
from tests.native.example import EXAMPLE, sent
from tests.native.vectors_in_c import vectors_in_c

BOARD = EXAMPLE / "board"
FLAGS = ("-std=c99", "-Os", "-mthumb", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror")
LARGEST_CODE = 12 * 1024


def run(folder, sources, name):
    """Compile for the board, and run it in QEMU. Return what it prints."""
    need("arm")
    board = ["-mcpu=cortex-m3", "--specs=rdimon.specs", "-nostartfiles", "-T", str(BOARD / "board.ld")]
    files = [*map(str, sorted(CORE.glob("*.c"))), str(BOARD / "start.c"), *map(str, sources)]
    include = ["-I", str(CORE), "-I", str(folder)]
    subprocess.run(["arm-none-eabi-gcc", *FLAGS, *board, *include, "-o", folder / name, *files], check=True)
    command = ["qemu-system-arm", "-M", "mps2-an385", "-nographic", "-semihosting", "-kernel", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_vectors_pass_on_a_cortex_m3(tmp_path):
    need("arm")
    text, count = vectors_in_c()
    source = tmp_path / "vectors.c"
    source.write_text(text)
    assert count > 2000
    assert run(tmp_path, [source], "vectors.elf") == f"{count} of {count}\n"


@pytest.mark.slow
def test_collector_stores_the_board_s_report(tmp_path):
    study = EXAMPLE / "study.json"
    command = ["compile", str(study), "--to", "c", "--collector", "https://study.example.org"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    first = run(tmp_path, [BOARD / "main.c"], "board.elf")
    assert run(tmp_path, [BOARD / "main.c"], "board.elf") == first
    words, body, _ = first.split("\n")
    with Server(tmp_path) as collector:
        assert collector.request("POST", "/v1/studies", json.loads(study.read_text())) == 201
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
            shown = subprocess.run(["arm-none-eabi-size", target], check=True, capture_output=True, text=True)
            sizes.append(int(shown.stdout.splitlines()[1].split()[0]))
    assert sum(sizes) <= LARGEST_CODE
