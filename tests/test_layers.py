"""Imports point one way, and what runs on a device loads nothing heavy."""

import json
import os
import sys

import pytest

from tests import studies
from tests.kit.programs import output_of

pytestmark = pytest.mark.processes

# -I -S: no site-packages at all, so nothing could hide a dependency.
BARE = """
import sys
sys.path.insert(0, {root!r})
before = set(sys.modules)
import ldp_client
loaded = {{name.split(".")[0] for name in set(sys.modules) - before}}
foreign = loaded - set(sys.stdlib_module_names) - {{"ldp_client"}}
assert not foreign, foreign
heavy = loaded & {{"sqlite3", "urllib", "http", "ssl", "typing", "dataclasses", "fractions", "asyncio"}}
heavy |= loaded & {{"json", "re", "enum", "collections"}}
assert not heavy, heavy
"""
ANSWERING = """
import sys
sys.path.insert(0, {root!r})
from ldp_client import Device, Study
device = Device("device", "9", "https://collector.example")
study = Study.from_json(open({root!r} + "/tests/golden/studies/smallest.json").read())
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


@pytest.mark.parametrize("code", [BARE, ANSWERING], ids=["import", "answer"])
def test_device_library_loads_no_third_party_and_no_heavy_module(code, pytestconfig, tmp_path):
    root = str(pytestconfig.rootpath)
    output_of(sys.executable, "-I", "-S", "-c", code.format(root=root), cwd=tmp_path)


ANY_APP = """
import json
from ldp_client import Device
from ldp_client.documents.study import Study
with open("survey.json") as file:
    document, answers = json.load(file)
device = Device("folder", "9", require_consent=False)
print(device.answer(Study(document), answers))
"""


def test_all_kinds_are_answered_by_the_standard_library_alone_beside_any_app(pytestconfig, tmp_path):
    """The app's modules have names of our packages."""
    for name in ("schemas", "collector", "inference", "summaries"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is the app')")
    (tmp_path / "ldp_client").symlink_to(pytestconfig.rootpath / "ldp_client")
    (tmp_path / "survey.json").write_text(json.dumps([studies.document(), studies.ANSWERS]))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    printed = output_of(sys.executable, "-S", "-c", ANY_APP, cwd=tmp_path, env=environment)
    assert len(printed.strip()) == 32


def test_import_layers_hold(pytestconfig):
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    assert "4 kept, 0 broken" in output_of(sys.executable, "-c", code, cwd=pytestconfig.rootpath)
