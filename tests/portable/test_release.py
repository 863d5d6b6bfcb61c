"""`make release` builds the same complete files each time, and no others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import release
from tests import studies
from tests.kit.programs import need
from tests.portable import npm

REPOSITORY = release.ROOT
NODE = """
import { mechanismFor, openDevice, parseStudy } from "ldpkit";
import { memoryLedger } from "ldpkit/ledgers/memory";
const study = await parseStudy(process.argv[2]);
const collector = "https://collect.example.org";
const device = await openDevice({ maxEpsilon: "9", collector, ledger: memoryLedger() });
const { body } = await device.answer(study, { ever: "yes" });
const { payloadSize } = mechanismFor(study.questions[0]);
console.log(JSON.stringify([Object.keys(JSON.parse(body).payloads), payloadSize]));
"""


# What an app does.
APP = """
from ldp_client import Device, Study
from ldp_client.device.verdicts import Flushed
study = Study.from_json(open("../study.json").read())
device = Device("device", "9", require_consent=False)
print(len(device.answer(study, {"ever": "yes"})))
print(Flushed())
"""
MOST_BYTES = 320_000


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


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
        return archive.read(name).decode()


@pytest.mark.slow
def test_the_same_commit_gives_the_same_bytes(dist, tmp_path):
    assert release.main(tmp_path / "again") == 0
    # A bill of materials has an id of its own each time; what is installed has not.
    first, again = [
        dict(reversed(line.split("  ")) for line in (folder / release.HASHES).read_text().splitlines())
        for folder in (dist, tmp_path / "again")
    ]
    assert first == again
    assert set(first) == {path.name for path in dist.iterdir()} - {release.HASHES}


@pytest.mark.slow
def test_device_wheel_is_self_contained(dist, tmp_path):
    """The wheel has one package, and needs no other."""
    wheel = path_of(dist, "ldp_client-*.whl")
    assert {name.partition("/")[0].partition("-")[0] for name in names_in(wheel)} == {"ldp_client"}
    metadata = metadata_of(wheel)
    assert "Requires-Python: >=3.11" in metadata
    assert wheel.stat().st_size <= MOST_BYTES
    assert all("extra ==" in line for line in metadata.splitlines() if line.startswith("Requires-Dist"))
    assert "ldp_client-0.1.0.dist-info/licenses/LICENSE" in names_in(wheel)
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO)))
    folder = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    done = subprocess.run(
        [sys.executable, "-S", "-c", APP], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["32", "0 reports sent, 0 deleted"], done.stderr


def test_wheel_has_the_sources_as_they_are(dist):
    with zipfile.ZipFile(path_of(dist, "ldp_client-*.whl")) as archive:
        modules = [name for name in names_in(archive.filename) if name.endswith(".py")]
        assert all(archive.read(name) == (REPOSITORY / name).read_bytes() for name in modules)
    assert "ldp_client/device/device.py" in modules


def test_complete_wheel_depends_on_the_device_wheel(dist):
    wheel = path_of(dist, "ldpkit-*.whl")
    packages = {name.partition("/")[0] for name in names_in(wheel) if ".dist-info" not in name}
    assert packages == {"ldpkit", "schemas", "summaries", "collector", "inference"}
    metadata = metadata_of(wheel)
    assert "Requires-Python: >=3.11" in metadata
    assert "Requires-Dist: ldp-client==0.1.0" in metadata
    for part in (
        "collector/words/de.json",
        "collector/assets/page.js",
        "inference/results/templates/report.html.j2",
    ):
        assert part in names_in(wheel)


def pip(interpreter, dist, target, *packages):
    """Run pip of this Python on these packages of dist/: (its exit status, its output)."""
    command = [
        interpreter,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--no-cache-dir",
        "--find-links",
        dist,
    ]
    options = ["--disable-pip-version-check", "--target", target]
    done = subprocess.run([*command, *options, *packages], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_complete_wheel_installs_on_this_python(dist, tmp_path):
    for name, module in (("ldpkit", "ldpkit"), ("ldp-client", "ldp_client")):
        status, said = pip(sys.executable, dist, tmp_path, name)
        assert status == 0, said
        assert (tmp_path / module / "__init__.py").exists()


@pytest.mark.parametrize(
    "package", ["ldp_client", "ldpkit", "schemas", "summaries", "collector", "inference"]
)
def test_wheels_contain_every_module(dist, package):
    """Each file of a package is in a wheel, except files used only for building."""
    wheel = "ldp_client" if package == "ldp_client" else "ldpkit"
    inside = set(names_in(path_of(dist, f"{wheel}-*.whl")))
    files = [path for path in (REPOSITORY / package).rglob("*") if path.is_file()]
    listed = {path.relative_to(REPOSITORY).as_posix() for path in files}
    listed = {
        name for name in listed if not {"__pycache__"} & set(name.split("/")) and ".egg-info/" not in name
    }
    builds = {
        "ldp_client/pyproject.toml",
        "ldp_client/package.json",
        "ldp_client/README.md",
        "ldp_client/LICENSE",
    }
    assert listed - builds <= inside


def test_npm_tarball_works_in_node(dist, tmp_path):
    modules = tmp_path / "node_modules" / "ldpkit"
    modules.mkdir(parents=True)
    with tarfile.open(path_of(dist, "ldpkit-*.tgz")) as archive:
        archive.extractall(tmp_path, filter="data")
    shutil.copytree(tmp_path / "package", modules, dirs_exist_ok=True)
    assert {"LICENSE", "README.md", "index.d.ts", "package.json"} <= set(os.listdir(modules))
    (tmp_path / "use.mjs").write_text(NODE)
    document = json.dumps(studies.document(studies.YES_NO))
    found = json.loads(npm.node("use.mjs", document, cwd=tmp_path))
    assert found == [["ever"], 1]


def test_release_without_types_is_rejected(dist, tmp_path):
    with tarfile.open(path_of(dist, "ldpkit-*.tgz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "package" / "index.d.ts").unlink()
    with tarfile.open(tmp_path / "without.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    with pytest.raises(SystemExit, match=r"index\.d\.ts"):
        release.run_publint([str(tmp_path / "without.tgz")])


def test_the_npm_package_names_the_repository_that_builds_it(tmp_path, monkeypatch):
    package = shutil.copy(REPOSITORY / release.JAVASCRIPT / "package.json", tmp_path)
    before = json.loads(Path(package).read_text())
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    release.state_repository(Path(package))
    assert json.loads(Path(package).read_text()) == before
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://code.example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "people/ldpkit")
    release.state_repository(Path(package))
    stated = {
        "type": "git",
        "url": "git+https://code.example.org/people/ldpkit.git",
        "directory": "js",
    }
    assert json.loads(Path(package).read_text()) == {**before, "repository": stated}


def test_only_publishing_jobs_get_tokens_after_all_checks():
    jobs = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text())["jobs"]
    trusted = {name for name, job in jobs.items() if job["permissions"].get("id-token") == "write"}
    assert trusted == {"python", "npm"}
    assert all(jobs[name]["needs"] == "build" and "environment" in jobs[name] for name in trusted)
    runs = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert runs.index(".ci/run") < runs.index("make release")
    assert os.access(REPOSITORY / ".ci/run", os.X_OK)
    # It installs Debian's packages.
    assert jobs["build"]["container"]["image"].startswith("debian:")
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@(v\d+|release/v1)", one) for one in used)


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
    for name in release.VERSIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace("ldp-client==0.1.0", "ldp-client==0.0.9"))
    (said,) = release.unlike_versions(tmp_path)
    assert "must need ldp-client==0.1.0" in said
    shutil.copy(REPOSITORY / "pyproject.toml", project)
    package = tmp_path / release.JAVASCRIPT / "package.json"
    package.write_text(package.read_text().replace('"version": "0.1.0"', '"version": "0.2.0"'))
    assert "js/package.json says version 0.2.0" in release.unlike_versions(tmp_path)


def test_release_notes_are_the_newest_versions_changes():
    assert release.changes(REPOSITORY).startswith("## 0.1.0")
    stated = tomllib.loads((REPOSITORY / "ldp_client" / "pyproject.toml").read_text())
    assert stated["project"]["dependencies"] == []


@pytest.mark.needs("git")
def test_mistakes_before_a_release_are_reported(tmp_path, capsys):
    """An uncommitted change is left out, and a folder in dist/ belongs to a developer."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "new.py").write_text("")
    release.tell_uncommitted(tmp_path)
    assert capsys.readouterr().err == "not committed, and left out of the release: new.py\n"
    (tmp_path / "dist" / "mine").mkdir(parents=True)
    assert release.main(tmp_path / "dist") == 1
    assert "move away mine" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["mine"]
