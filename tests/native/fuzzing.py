"""The fuzzers of what the core reads, journals and answers, under sanitizers.

`python -m tests.native.fuzzing 10000000` runs each with so many inputs. Tests run fewer.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conformance.native import CORE
from ldp_client.documents.study import Study
from tests import studies
from tests.native.compiled import Device, Storage, library_of, source
from tests.native.test_compile import AGE_GROUP, REFUSABLE, REGION
from tests.native.test_ledger import STUDIES

HERE = Path(__file__).parent
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def built(target: Path, sources: Sequence[Path], *flags: str, include: Sequence[Path] = ()) -> Path:
    """Compile a program of C files. Return its path."""
    folders = [part for folder in (*include, CORE) for part in ("-I", str(folder))]
    subprocess.run(["cc", "-std=c99", "-w", *flags, *folders, "-o", target, *map(str, sources)], check=True)
    return target


def fuzz_journals(folder: Path, count: int) -> tuple[int, int, int]:
    """Open damaged journals. Return how many opened, took an answer, and how many reports they gave."""
    storage = Storage()
    device = Device(library_of(STUDIES, folder), storage, source(1))
    assert device.answer("first", [3.5, 1]) == device.answer("elsewhere", [3.5]) == device.done() == 0
    assert device.answer("second", [1]) == device.withdraw("elsewhere") == 0
    (folder / "journal").write_bytes(storage.bytes)
    others = [file for file in sorted(CORE.glob("*.c")) if file.name != "ledger.c"]
    sources = [HERE / "fuzz_journal.c", *others]
    program = built(folder / "fuzz", sources, *SANITIZED, include=[folder / "sources"])
    opened, answers, reports = _counts(program, folder / "journal", count)
    return opened, answers, reports


def fuzz_answers(folder: Path, count: int) -> tuple[int, int]:
    """Draw reports of arbitrary values. Return how many were drawn and refused."""
    every = [*studies.ALL, *studies.NEWER, REFUSABLE]
    library_of({"every": Study(studies.document(*every, public=[REGION, AGE_GROUP]))}, folder)
    sources = [HERE / "fuzz_answers.c", *sorted(CORE.glob("*.c"))]
    program = built(folder / "fuzz", sources, *SANITIZED, include=[folder / "sources"])
    drawn, refused = _counts(program, count)
    return drawn, refused


def _counts(*command: object) -> list[int]:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [*map(int, re.findall(r"\d+", done.stdout))]


if __name__ == "__main__":
    inputs = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        print("answers drawn, refused:", *fuzz_answers(Path(one), inputs))
        print("journals opened, answered, reports:", *fuzz_journals(Path(two), inputs))
