"""The JavaScript port as a package: small, typed, without dependencies."""

import json
import re
import subprocess

import pytest

from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

MOST_BYTES = 17_000
TYPESCRIPT_OPTIONS = ("--noEmit", "--strict", "--target", "es2022", "--module", "nodenext")


@pytest.fixture(scope="module", autouse=True)
def packages():
    npm.install()


def test_it_is_small():
    command = [npm.ESBUILD, JAVASCRIPT / "index.js", "--bundle", "--minify", "--format=esm"]
    bundle = subprocess.run(command, check=True, capture_output=True).stdout
    assert 8_000 < len(bundle) <= MOST_BYTES


def test_its_types_say_how_it_is_used():
    npm.node(npm.TYPESCRIPT, *TYPESCRIPT_OPTIONS, "usage.ts")


def test_its_types_name_what_it_exports():
    typed = re.findall(r"export (?:class|function) (\w+)", (JAVASCRIPT / "index.d.ts").read_text())
    script = f"console.log(Object.keys(await import('{JAVASCRIPT / 'index.js'}')).join())"
    exported = npm.node("--input-type=module", "-e", script)
    assert sorted(typed) == sorted(exported.strip().split(","))


def test_it_imports_nothing_but_itself():
    package = json.loads((JAVASCRIPT / "package.json").read_text())
    assert "dependencies" not in package
    sources = [file.read_text() for file in JAVASCRIPT.rglob("*.js")]
    imported = [name for source in sources for name in re.findall(r'from "([^"]+)"', source)]
    assert len(imported) > 20
    assert all(name.startswith("./") or name.startswith("../") for name in imported)
