"""`make release` builds the same complete files each time, and no others."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import release
from tests import studies
from tests.kit.programs import need, output_of
from tests.portable import npm

REPOSITORY = release.ROOT
# What an app does.
APP = """
from ldp_client import Device, Study
from ldp_client.device.sending import Flushed
study = Study.from_json(open("../study.json").read())
device = Device("device", "9", require_consent=False)
print(len(device.answer(study, {"ever": "yes"})))
print(Flushed())
"""
MOST_BYTES = 320_000
PACKAGES = ("ldp_client", "ldpkit", "schemas", "summaries", "collector", "inference")
BUILDS = {f"ldp_client/{name}" for name in ("pyproject.toml", "package.json", "README.md", "LICENSE")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    need("git", "build")
    npm.install()
    folder = tmp_path_factory.mktemp("dist")
    assert release.main(folder) == 0
    return folder


def path_of(dist, pattern):
    (found,) = dist.glob(pattern)
    return found


def read(wheel):
    """The names in a wheel, and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
        return set(archive.namelist()), archive.read(name).decode()


@pytest.mark.slow
def test_same_commit_gives_the_same_bytes(dist, tmp_path, monkeypatch):
    stage, again = tmp_path / "stage", tmp_path / "again"
    stage.mkdir()
    again.mkdir()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(seconds := release.committed(stage)))
    for kind in ("--sdist", "--wheel"):
        release.run_build(kind, stage / release.DEVICE, again)
    release.fix_times(path_of(again, "*.tar.gz"), seconds)
    pack = ["npm", "pack", "--silent", "--pack-destination", str(again)]
    subprocess.run(pack, cwd=stage / release.JAVASCRIPT, check=True, stdout=subprocess.DEVNULL)
    for path in again.iterdir():
        assert path.read_bytes() == (dist / path.name).read_bytes(), path.name
    hashes = (dist / release.HASHES).read_text().splitlines()
    assert {line.split("  ")[1] for line in hashes} == {path.name for path in dist.iterdir()} - {
        release.HASHES
    }


@pytest.mark.slow
def test_device_wheel_is_self_contained(dist, tmp_path):
    wheel = path_of(dist, "ldp_client-*.whl")
    names, metadata = read(wheel)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"ldp_client"}
    assert "Requires-Python: >=3.11" in metadata
    assert wheel.stat().st_size <= MOST_BYTES
    assert all("extra ==" in line for line in metadata.splitlines() if line.startswith("Requires-Dist"))
    assert "ldp_client-0.1.0.dist-info/licenses/LICENSE" in names
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO)))
    folder = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        modules = [name for name in names if name.endswith(".py")]
        assert all(archive.read(name) == (REPOSITORY / name).read_bytes() for name in modules)
    printed = output_of(sys.executable, "-S", "-c", APP, cwd=folder)
    assert printed.splitlines() == ["32", "0 reports sent, 0 deleted"]


@pytest.mark.slow
def test_wheels_contain_every_module(dist):
    device, _ = read(path_of(dist, "ldp_client-*.whl"))
    whole, metadata = read(path_of(dist, "ldpkit-*.whl"))
    assert {name.partition("/")[0] for name in whole if ".dist-info" not in name} == {*PACKAGES[1:]}
    assert "Requires-Dist: ldp-client==0.1.0" in metadata
    for package in PACKAGES:
        tracked = output_of("git", "ls-files", package, cwd=REPOSITORY)
        assert {*tracked.split()} - BUILDS <= device | whole


@pytest.mark.slow
def test_npm_tarball_is_complete_and_needs_its_types(dist, tmp_path):
    with tarfile.open(path_of(dist, "ldpkit-*.tgz")) as archive:
        archive.extractall(tmp_path, filter="data")
    assert {"LICENSE", "README.md", "index.d.ts", "package.json"} <= set(os.listdir(tmp_path / "package"))
    (tmp_path / "package" / "index.d.ts").unlink()
    with tarfile.open(tmp_path / "without.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    with pytest.raises(SystemExit, match=r"index\.d\.ts"):
        release.run_publint([str(tmp_path / "without.tgz")])


@pytest.mark.slow
def test_bills_of_materials_list_installed_packages(dist):
    device = json.loads((dist / "ldp-client.cdx.json").read_text())
    whole = json.loads((dist / "ldpkit.cdx.json").read_text())
    assert device["metadata"]["component"]["name"] == "ldp-client"
    assert device.get("components", []) == []
    names = {one["name"] for one in whole["components"]}
    assert {"jax", "numpyro", "flask", "sqlalchemy", "ldp-client"} <= names
    assert not {"pytest", "ruff", "selenium"} & names


def test_release_with_differing_versions_is_rejected(tmp_path):
    assert release.unlike_versions(REPOSITORY) == []
    assert release.changes(REPOSITORY).startswith("## 0.1.0")
    for name in release.VERSIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace("ldp-client==0.1.0", "ldp-client==0.0.9"))
    (said,) = release.unlike_versions(tmp_path)
    assert "must need ldp-client==0.1.0" in said
    package = tmp_path / release.JAVASCRIPT / "package.json"
    package.write_text(package.read_text().replace('"version": "0.1.0"', '"version": "0.2.0"'))
    assert "js/package.json says version 0.2.0" in release.unlike_versions(tmp_path)
