"""Faults in the core in C fail a vector: the conformance kit tells a wrong law from the right one."""

import os
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

from conformance.native import CORE, Port
from conformance.run import cases
from tests.kit.programs import need

# (file, name of the vectors, behaviour, before, after)
FAULTS = [
    (file, name, behaviour, *texts)
    for file, by_name in tomllib.loads(Path(__file__).with_name("faults.toml").read_text()).items()
    for name, faults in by_name.items()
    for behaviour, texts in faults.items()
]
# A fault may loop or crash.
SECONDS = 20


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    need("gcc")
    folder = tmp_path_factory.mktemp("objects")
    for source in CORE.glob("*.c"):
        build(source, folder / f"{source.stem}.o")
    return folder


@pytest.fixture(scope="module")
def asked():
    """{first word of a case: pairs of case and expected answer}."""
    found = {}
    for case, expected in cases():
        found.setdefault(case["case"].split()[0], []).append((case, expected))
    return found


def build(source, target):
    subprocess.run(["cc", "-std=c99", "-fPIC", "-w", "-I", str(CORE), "-c", "-o", target, source], check=True)


def linked(folder, library):
    subprocess.run(["cc", "-shared", "-o", library, *sorted(folder.glob("*.o"))], check=True)
    return library


def fails(library, pairs, tables):
    """Return whether a case fails, in a process of its own: a fault may crash it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS)
            port = Port(library)
            port.tables = tables
            status = int(any(port.answer(case) != expected for case, expected in pairs))
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] != 0


@pytest.fixture(scope="module")
def tables(library, asked):
    port = Port(library)
    for name in {name for _, name, *_ in FAULTS}:
        assert not fails(library, asked[name], port.tables)
        for case, _ in asked[name]:
            port.answer(case)
    return port.tables


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name", "behaviour", "before", "after"), FAULTS, ids=[fault[2] for fault in FAULTS]
)
def test_faulty_core_fails_a_vector(file, name, behaviour, before, after, objects, asked, tables, tmp_path):
    text = (CORE / file).read_text()
    assert text.count(before) == 1, behaviour
    source = tmp_path / file
    source.write_text(text.replace(before, after))
    shutil.copytree(objects, tmp_path / "objects")
    build(source, tmp_path / "objects" / f"{source.stem}.o")
    library = linked(tmp_path / "objects", tmp_path / "faulty.so")
    assert fails(library, asked[name], tables), behaviour
