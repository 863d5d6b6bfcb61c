"""The core under sanitizers, with damaged journals, and without branches that depend on an answer."""

import re
import subprocess
from pathlib import Path

import pytest

from conformance.native import CORE
from tests.kit.programs import need, output_of
from tests.native.compiled import STUDIES, Device, Storage, library_of, source, sources_in
from tests.native.vectors_in_c import vectors_in_c

HERE = Path(__file__).parent
INPUTS = 10_000
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Faults that would tell an answer by time: (file, before, after, what memcheck reports).
TELLING = {
    "a branch": (
        "numbers.c",
        "index = select_word(mask_if(refused), question->levels / 2, index);",
        "if (refused) { volatile uint32_t half = question->levels / 2; index = half; }",
        "Conditional jump",
    ),
    "an index": (
        "choices.c",
        "for (uint32_t i = 0; i < question->payload_size; i++) payload[i] ^= bit_in_byte(x, i);",
        "payload[x >> 3] ^= bit_in_byte(x, x >> 3);",
        "Use of uninitialised value",
    ),
}


def built(target, sources, *flags, include=()):
    folders = [part for folder in (*include, CORE) for part in ("-I", str(folder))]
    subprocess.run(["cc", "-std=c99", "-w", *flags, *folders, "-o", target, *map(str, sources)], check=True)
    return target


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A program of all vectors, and how many it has."""
    need("gcc")
    source_file = tmp_path_factory.mktemp("vectors") / "vectors.c"
    text, count = vectors_in_c()
    source_file.write_text(text)
    return source_file, count


@pytest.mark.slow
def test_vectors_pass_under_sanitizers(vectors, tmp_path):
    program = built(tmp_path / "sanitized", [vectors[0], *CORE.glob("*.c")], *SANITIZED)
    assert output_of(program) == f"{vectors[1]} of {vectors[1]}\n"


@pytest.mark.slow
@pytest.mark.attack(15)
def test_damaged_journals_never_break_the_ledger(tmp_path):
    need("gcc")
    storage = Storage()
    device = Device(library_of(STUDIES, tmp_path), storage, source(1))
    assert device.answer("first", [3.5, 1]) == device.answer("elsewhere", [3.5]) == device.done() == 0
    assert device.answer("second", [1]) == device.withdraw("elsewhere") == 0
    (tmp_path / "journal").write_bytes(storage.bytes)
    others = [file for file in CORE.glob("*.c") if file.name != "ledger.c"]
    sources = [HERE / "fuzz_journal.c", *others]
    program = built(tmp_path / "fuzz", sources, *SANITIZED, include=[tmp_path / "sources"])
    printed = output_of(program, str(INPUTS), "1", tmp_path / "journal")
    opened, answers, reports = map(int, re.findall(r"\d+", printed))
    assert INPUTS / 10 < opened < INPUTS
    assert reports > opened / 2
    assert answers > opened / 10


def watched(vectors, folder, level, cores):
    """Run the vectors in memcheck with undefined answers. Return (status, output)."""
    need("valgrind")
    program = built(folder / "watched", [vectors[0], *cores], level, "-g", "-DWATCHED")
    valgrind = ["valgrind", "-q", "--error-exitcode=9", f"--suppressions={HERE / 'answers.supp'}"]
    done = subprocess.run([*valgrind, program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.attack(1)
@pytest.mark.parametrize("level", ["-O2", "-Os"])
def test_no_branch_and_no_index_depends_on_an_answer(vectors, tmp_path, level):
    """The check of an answer does, as everybody sees its result; answers.supp has this exception alone."""
    assert watched(vectors, tmp_path, level, CORE.glob("*.c")) == (0, f"{vectors[1]} of {vectors[1]}\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", TELLING)
def test_code_that_tells_an_answer_is_detected(vectors, tmp_path, name):
    *fault, reported = TELLING[name]
    cores = sources_in(tmp_path / "sources", *fault).glob("*.c")
    status, output = watched(vectors, tmp_path, "-O2", cores)
    assert status == 9
    assert reported in output
