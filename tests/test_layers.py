"""Imports point one way, and what runs on a device loads nothing heavy."""

import ast
import subprocess
import sys
from collections import Counter
from itertools import chain

import pytest

BARE = """
import sys
from collections import Counter
from itertools import chain
sys.path.insert(0, {root!r})
before = set(sys.modules)
import {module}
loaded = {{name.split(".")[0] for name in set(sys.modules) - before}}
foreign = loaded - set(sys.stdlib_module_names) - {{"ldp_client"}}
assert not foreign, foreign
heavy = loaded & {{"sqlite3", "urllib", "http", "ssl", "typing", "dataclasses", "fractions", "asyncio"}}
heavy |= loaded & {{"json", "re", "enum", "collections"}}
assert not heavy, heavy
"""


def test_a_bare_import_loads_no_third_party_and_no_heavy_module(pytestconfig):
    """-I -S: no site-packages at all, so nothing could hide a dependency."""
    code = BARE.format(root=str(pytestconfig.rootpath), module="ldp_client")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


ANSWERING = """
import sys
sys.path.insert(0, {root!r})
from ldp_client import Device, Study
device = Device("device", "9", "https://collector.example")
study = Study.from_json(open({study!r}).read())
device.consent(study)
entered = set()
sys.setprofile(lambda frame, _event, _value: entered.add(frame.f_code.co_filename))
device.answer(study, {{"ever": "yes"}})
sys.setprofile(None)
entered = {{path for path in entered if "ldp_client" in path}}
assert len(entered) <= 15, entered
heavy = {{"ssl", "http", "urllib.request", "dataclasses", "random", "logging"}} & set(sys.modules)
assert not heavy, heavy
"""


def test_answer_enters_few_files_and_loads_no_network_module(pytestconfig, tmp_path):
    study = pytestconfig.rootpath / "tests" / "golden" / "studies" / "smallest.json"
    code = ANSWERING.format(root=str(pytestconfig.rootpath), study=str(study))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_apps_may_use_module_names_of_our_packages(pytestconfig, tmp_path):
    for name in ("schemas", "collector", "inference", "summaries"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is the app')")
    (tmp_path / "ldp_client").symlink_to(pytestconfig.rootpath / "ldp_client")
    document = pytestconfig.rootpath / "tests" / "golden" / "studies" / "smallest.json"
    code = (
        "from ldp_client import Device\nfrom ldp_client.documents.study import Study\n"
        f"study = Study.from_json(open({str(document)!r}).read())\n"
        "device = Device('folder', '9', require_consent=False)\n"
        "print(device.answer(study, {question.id: 'yes' for question in study.questions}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip()) == 32


def test_the_device_needs_the_standard_library_only(pytestconfig, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(pytestconfig.rootpath)!r})\n"
        "from ldp_client import Device\nfrom schemas import Study\nfrom tests import studies\n"
        f"device = Device({str(tmp_path)!r}, '9', require_consent=False)\n"
        "device.answer(Study(studies.document()), studies.ANSWERS)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_import_layers_hold(pytestconfig):
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()"]
    done = subprocess.run(command, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    "package", ["ldpkit", "schemas", "ldp_client", "summaries", "collector", "inference"]
)
def test_public_names_exist(package):
    module = __import__(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.slow
def test_module_names_are_bound_once(pytestconfig):
    """A second definition of a name would silently replace the first."""
    twice = {}
    for package in ("ldp_client", "schemas", "collector", "inference", "summaries", "ldpkit"):
        for file in sorted((pytestconfig.rootpath / package).rglob("*.py")):
            names = Counter(chain.from_iterable(map(bound, ast.parse(file.read_text()).body)))
            twice |= {(file, name): times for name, times in names.items() if times > 1 and name != "_"}
    assert twice == {}


def bound(statement):
    """The names that a statement of a module gives something to."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
