"""`import ldpkit` is one door: every name is there and listed, and none is loaded before it is used."""

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

import ldpkit
from ldp_client import Device, mechanism_for
from ldp_client.documents.errors import MissingExtraError
from tests.kit.errors import raises

LIGHT = """
import sys
import ldpkit
ours = {"collector", "inference", "summaries", "schemas", "ldp_client", "numpy", "flask", "jax"}
assert not ours & {name.split(".")[0] for name in sys.modules}
assert set(ldpkit.__all__) <= set(dir(ldpkit))
ldpkit.Study, ldpkit.Device
ldpkit.ask.yes_no("a", epsilon=1)
assert not {"collector", "inference", "numpy"} & set(sys.modules)
"""


@pytest.mark.slow
def test_every_name_is_loaded_on_first_use(pytestconfig):
    command = [sys.executable, "-c", LIGHT]
    done = subprocess.run(command, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {*ldpkit._HOMES, "__version__"} == set(ldpkit.__all__)
    assert [name for name in ldpkit.__all__ if getattr(ldpkit, name) is None] == []
    assert ldpkit.Device is Device
    assert ldpkit.mechanism_for is mechanism_for


def test_wrong_name_and_missing_package_give_clear_errors(monkeypatch):
    with pytest.raises(AttributeError, match="has no attribute 'fits'"):
        _ = ldpkit.fits
    monkeypatch.setitem(sys.modules, "inference.design.plan", None)
    monkeypatch.delitem(vars(ldpkit), "plan", raising=False)
    with pytest.raises(ModuleNotFoundError):
        _ = ldpkit.plan
    absent = Mock(side_effect=ModuleNotFoundError("No module named 'jax'", name="jax"))
    monkeypatch.setattr(ldpkit, "import_module", absent)
    with raises(MissingExtraError, "extra.missing", "jax", "'ldpkit[inference]'"):
        _ = ldpkit.plan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "prefix"),
    [
        ("ldp_client.py", ["-c", "import ldpkit"], "ImportError"),
        ("inference/__init__.py", ["-m", "ldpkit", "status"], "ldpkit"),
    ],
)
def test_file_that_hides_a_package_is_named(name, words, prefix, pytestconfig, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("raise RuntimeError('this is the app')")
    command, environment = [sys.executable, *words], {**os.environ, "PYTHONPATH": str(pytestconfig.rootpath)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    package = name.partition("/")[0].removesuffix(".py")
    said = f"{tmp_path / name} hides the package {package} of ldpkit: rename it, or start elsewhere"
    assert done.stderr.splitlines()[-1] == f"{prefix}: {said}"
    assert prefix == "ImportError" or done.stderr.count("\n") == 1
