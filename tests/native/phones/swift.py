"""The wrapper in Swift, in a Debian root: vectors, and a report that a collector stores and deletes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.native import CORE
from tests.deploy.roots import Inside, call, whole
from tests.native.example import EXAMPLE
from tests.native.phones.compilers import swift_root
from tests.native.phones.sample import check_sample, compiled_for
from tests.native.phones.vectors import write_vectors

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def root():
    return swift_root()


def compiled_app(root, folder, header, sources, *extra):
    """Compile Swift and C files with the wrapper and the core. header: what Swift sees of the C files."""
    folder.mkdir()
    shutil.copytree(CORE, folder / "c")
    for source in sources:
        shutil.copy(source, folder)
    in_c = "gcc -std=c99 -O2 -Wall -Wextra -Wno-unused-variable -Werror -Ic -Ic/posix -c c/*.c c/posix/*.c"
    in_c += "".join(f" {source.name}" for source in sources if source.suffix == ".c")
    swift = ["swiftc", "-O", "-swift-version", "6", "-warnings-as-errors", "-I", "c/swift", "-Xcc", "-Ic"]
    swift += ["-import-objc-header", header, *extra, "-o", "app.out", "c/swift/Ledger.swift"]
    swift += [source.name for source in sources if source.suffix == ".swift"]
    call(root, ["sh", "-c", f"{in_c} && {' '.join(swift)} *.o"], inside(folder))


def inside(folder):
    return Inside(binds={"/app": folder}, folder="/app")


def run(root, folder, *words):
    """Run the compiled app. Return its status and what it prints."""
    command = whole(root, ["./app.out", *words], inside(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_vectors_pass_in_swift(root, tmp_path):
    count = write_vectors(tmp_path)
    header = tmp_path / "vectors.h"
    header.write_text('#include "ldpkit.h"\nconst ldp_study *vector_study(unsigned index);\n')
    folder = tmp_path / "folder"
    sources = [tmp_path / "vectors.c", header, HERE / "Vectors.swift"]
    compiled_app(root, folder, "vectors.h", sources, "-Xlinker", "--wrap=ldp_random_begin")
    shutil.copy(tmp_path / "vectors.txt", folder)
    assert count > 1900
    assert run(root, folder, "vectors.txt", "journal") == (0, f"{count} of {count}\n")


def test_collector_stores_and_deletes_a_report_from_swift(root, tmp_path):
    with compiled_for("swift", tmp_path) as (collector, app):
        folder = tmp_path / "folder"
        compiled_app(root, folder, "study_sleep.h", [EXAMPLE / "Sleep.swift", *app.iterdir()])
        check_sample(lambda *words: run(root, folder, *words), collector)
