"""The fuzzers of what the core reads, journals and answers, under sanitizers.

`python -m tests.native.fuzzing 10000000` runs so many journals, and so many answers. Tests run fewer.
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
from tests.native.compiled import AGE_GROUP, REFUSABLE, REGION, STUDIES, Device, Storage, library_of, source

HERE = Path(__file__).parent
PART = 50_000
EVERY = [*studies.ALL, *studies.NEWER, REFUSABLE]
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def built(target: Path, sources: Sequence[Path], *flags: str, include: Sequence[Path] = ()) -> Path:
    folders = [part for folder in (*include, CORE) for part in ("-I", str(folder))]
    subprocess.run(["cc", "-std=c99", "-w", *flags, *folders, "-o", target, *map(str, sources)], check=True)
    return target


def journal_fuzzer(folder: Path) -> Path:
    """The program that opens damaged journals. It prints how many opened, were answered, and gave reports."""
    storage = Storage()
    device = Device(library_of(STUDIES, folder), storage, source(1))
    assert device.answer("first", [3.5, 1]) == device.answer("elsewhere", [3.5]) == device.done() == 0
    assert device.answer("second", [1]) == device.withdraw("elsewhere") == 0
    (folder / "journal").write_bytes(storage.bytes)
    others = [file for file in sorted(CORE.glob("*.c")) if file.name != "ledger.c"]
    sources = [HERE / "fuzz_journal.c", *others]
    return built(folder / "fuzz", sources, *SANITIZED, include=[folder / "sources"])


def answer_fuzzer(folder: Path) -> Path:
    """The program that draws reports of arbitrary answers. It prints how many it drew, and were refused."""
    library_of({"every": Study(studies.document(*EVERY, public=[REGION, AGE_GROUP]))}, folder)
    sources = [HERE / "fuzz_answers.c", *sorted(CORE.glob("*.c"))]
    return built(folder / "fuzz", sources, *SANITIZED, include=[folder / "sources"])


def counts(program: Path, count: int, seed: int) -> list[int]:
    """Run a program with so many inputs, in its folder. Return the numbers that it prints."""
    command = [program, str(count), str(seed), *program.parent.glob("journal")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [*map(int, re.findall(r"\d+", done.stdout))]


def main(inputs: int) -> None:
    """Run both programs in parts, and print the sums."""
    for fuzzer, size in ((journal_fuzzer, 1), (answer_fuzzer, len(EVERY))):
        with tempfile.TemporaryDirectory() as folder:
            program = fuzzer(Path(folder))
            parts = [counts(program, PART, seed) for seed in range(-(-inputs // (PART * size)))]
        print(fuzzer.__name__, len(parts) * PART * size, *map(sum, zip(*parts, strict=True)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
