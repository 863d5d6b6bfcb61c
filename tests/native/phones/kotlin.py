"""The wrapper in Kotlin on a JVM: vectors, misuse, and a report that a collector stores and deletes."""

import os
import shutil
import subprocess
from pathlib import Path

from conformance.native import CORE
from tests.native.example import EXAMPLE
from tests.native.phones.compilers import kotlin, kotlin_library
from tests.native.phones.sample import check_sample, compiled_for
from tests.native.phones.vectors import write_vectors

HERE = Path(__file__).parent
FLAGS = ("-std=c99", "-O2", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror")


def compiled_app(folder, sources, *extra):
    """Compile Kotlin files with the wrapper, and C files with the core. extra: more flags for C."""
    java = Path(shutil.which("java")).resolve().parents[1] / "include"
    glue = [*CORE.glob("*.c"), CORE / "posix" / "device.c", CORE / "kotlin" / "ldpkit_jni.c"]
    include = [f"-I{path}" for path in (CORE, CORE / "posix", java, java / "linux", folder)]
    in_c = [*glue, *(source for source in sources if source.suffix == ".c")]
    command = ["cc", *FLAGS, *extra, *include, "-shared", "-o", folder / "libldpkit.so", *in_c]
    subprocess.run(command, check=True)
    in_kotlin = [CORE / "kotlin" / "Ledger.kt", *(source for source in sources if source.suffix == ".kt")]
    subprocess.run([*kotlin(), "-d", folder / "classes", *in_kotlin], check=True)


def java(folder, *words):
    """Run a compiled class. Return its status and what it prints."""
    path = f"{folder / 'classes'}{os.pathsep}{kotlin_library()}"
    command = ["java", "-Xcheck:jni", "-cp", path, f"-Djava.library.path={folder}", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_vectors_pass_in_kotlin(tmp_path):
    count = write_vectors(tmp_path)
    sources = [tmp_path / "vectors.c", HERE / "vectors_jni.c", HERE / "Vectors.kt"]
    compiled_app(tmp_path, sources, "-Wl,--wrap=ldp_random_begin")
    assert count > 1900
    assert java(tmp_path, "VectorsKt", "vectors.txt", "journal") == (0, f"{count} of {count}\n")


def test_collector_stores_and_deletes_a_report_from_kotlin(tmp_path):
    with compiled_for("kotlin", tmp_path) as (collector, app):
        sources = [EXAMPLE / "Sleep.kt", *app.glob("*.kt"), *app.glob("*.c")]
        compiled_app(tmp_path, sources, f"-I{app}")
        check_sample(lambda *words: java(tmp_path, "SleepKt", *words), collector)
