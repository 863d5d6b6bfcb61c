"""The wrappers in Kotlin, on a JVM, and in Swift, in a Debian root: vectors, misuse, and the sample app."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.native import CORE
from ldpkit.cli import main
from tests.deploy.roots import Inside, call, whole
from tests.kit.collectors import Server
from tests.native.phones.compilers import kotlin, kotlin_library, swift_root
from tests.native.phones.vectors import write_vectors

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
EXAMPLE = CORE.parent / "examples" / "native"
STUDY = EXAMPLE / "study.json"
WARNINGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wno-unused-variable", "-Werror")
# The linker puts the vectors' bytes in place of random ones.
RECORDED = "--wrap=ldp_random_begin"


class Kotlin:
    """An app in a folder: Kotlin files, of which the first has `main`, and C files, with wrapper and core."""

    vectors, sample = ("Vectors.kt", "vectors_jni.c"), "Sleep.kt"

    def __init__(self, folder, sources, link=""):
        self.folder, self.main = folder, f"{sources[0].stem}Kt"
        java = Path(shutil.which("java")).resolve().parents[1] / "include"
        include = {CORE, CORE / "posix", java, java / "linux", *(source.parent for source in sources)}
        flags = [*WARNINGS, "-fPIC", "-shared", *(f"-I{path}" for path in include)]
        in_c = [*CORE.glob("*.c"), CORE / "posix" / "device.c", CORE / "kotlin" / "ldpkit_jni.c"]
        in_c += [source for source in sources if source.suffix == ".c"]
        linked = [f"-Wl,{link}"] if link else []
        subprocess.run(["cc", *flags, *linked, "-o", folder / "libldpkit.so", *in_c], check=True)
        in_kotlin = [CORE / "kotlin" / "Ledger.kt", *(source for source in sources if source.suffix == ".kt")]
        subprocess.run([*kotlin(), "-d", folder / "classes", *in_kotlin], check=True)

    def start(self, *words):
        path = f"{self.folder / 'classes'}{os.pathsep}{kotlin_library()}"
        return ["java", "-Xcheck:jni", "-cp", path, f"-Djava.library.path={self.folder}", self.main, *words]


class Swift:
    """An app in a folder, which the root has as /app: Swift and C files with the wrapper and the core."""

    vectors, sample = ("Vectors.swift",), "Sleep.swift"

    def __init__(self, folder, sources, link=""):
        self.root, self.folder = swift_root(), folder
        self.inside = Inside(binds={"/app": folder}, folder="/app")
        shutil.copytree(CORE, folder / "c")
        for source in sources:
            shutil.copy(source, folder)
        in_c = [source.name for source in sources if source.suffix == ".c"]
        (header,) = [source.name for source in sources if source.suffix == ".h"]
        compiled = ["gcc", *WARNINGS, "-Ic", "-Ic/posix", "-c", "c/*.c", "c/posix/*.c", *in_c]
        swift = ["swiftc", "-O", "-swift-version", "6", "-warnings-as-errors", "-I", "c/swift", "-Xcc", "-Ic"]
        swift += ["-import-objc-header", header, *(["-Xlinker", link] if link else []), "-o", "app.out"]
        swift += ["c/swift/Ledger.swift", *(source.name for source in sources if source.suffix == ".swift")]
        call(self.root, ["sh", "-c", f"{' '.join(compiled)} && {' '.join(swift)} *.o"], self.inside)

    def start(self, *words):
        return whole(self.root, ["./app.out", *words], self.inside)


def run(app, *words):
    done = subprocess.run(app.start(*words), cwd=app.folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "built").mkdir()
    return tmp_path / "built"


@pytest.mark.parametrize("language", [Kotlin, Swift])
def test_vectors_pass(language, folder, tmp_path):
    count = write_vectors(tmp_path)
    assert count > 1900
    (tmp_path / "vectors.h").write_text(
        '#include "ldpkit.h"\nconst ldp_study *vector_study(unsigned index);\n'
    )
    sources = [*(HERE / name for name in language.vectors), tmp_path / "vectors.c", tmp_path / "vectors.h"]
    app = language(folder, sources, RECORDED)
    shutil.copy(tmp_path / "vectors.txt", folder)
    assert run(app, "vectors.txt", "journal") == (0, f"{count} of {count}\n")


@pytest.mark.parametrize("language", [Kotlin, Swift])
def test_sample_app_answers_sends_and_withdraws(language, folder, tmp_path):
    with Server(tmp_path) as collector:
        name = language.__name__.lower()
        command = ["compile", str(STUDY), "--to", name, "--collector", collector.url]
        assert main([*command, "--out", str(tmp_path / "app")]) == 0
        app = language(folder, [EXAMPLE / language.sample, *(tmp_path / "app").iterdir()])

        def exported():
            return collector.read("/v1/studies/sleep/export").count("ldpkit.report/1")

        # 1. The collector does not know the study yet.
        assert run(app, "journal", "answer", "7.5", "yes") == (1, "0 done, 1 waiting\n")
        # 2. It knows it now, and nobody answers twice.
        assert collector.request("POST", "/v1/studies", json.loads(STUDY.read_text())) == 201
        status, output = run(app, "journal", "answer", "7.5", "yes")
        assert status
        assert "ANSWERED" in output.upper()
        assert exported() == 0
        # 3. The report is sent once, and then withdrawn.
        assert run(app, "journal", "send") == (0, "1 done, 0 waiting\n")
        assert run(app, "journal", "send") == (0, "0 done, 0 waiting\n")
        assert exported() == 1
        assert run(app, "journal", "withdraw") == (0, "1 done, 0 waiting\n")
        assert exported() == 0
