"""The install script upgrades places, and goes on where it was killed."""

import getpass
import os
import shutil
import subprocess
from hashlib import sha256

import pytest

from tests.deploy.containers import DEPLOY

SYSTEMCTL = """#!/bin/bash
case $1 in
  list-units) cat "$RUNNING" ;;
  stop) : > "$RUNNING" ;;
  start) shift; printf '%s\\n' "$@" > "$RUNNING" ;;
esac
"""
MOVED = {
    "OPT=/opt/ldpkit": "OPT={0}/opt",
    "PLACE=/var/lib/ldpkit": "PLACE={0}/place",
    "BACKUPS=/var/backups/ldpkit": "BACKUPS={0}/backups",
    "UNITS=/etc/systemd/system": "UNITS={0}/none",
    "OPT_MIB=1500": "OPT_MIB=1",
    "PLACE_MIB=500": "PLACE_MIB=1",
    "/run/ldpkit-install.lock": "{0}/lock",
    "[ -d /run/systemd/system ]": "true",
    "((EUID == 0))": "true",
    'runuser -u "$OWNER" -- env': "env",
    '-o "$OWNER" -g "$OWNER" ': "",
    "OWNER=ldpkit": "OWNER=$(id -un)",
}
# What ldpkit of a release does here: its database is a file that names the release.
LDPKIT = """#!/bin/bash
case "$1 $2" in
  "init "*) touch ldpkit.toml; echo {number} > db ;;
  "backup "*) [ ! -e fail-backup ] || exit 1; cp db "$3" ;;
  "migrate "*)
    [ ! -e kill-{number} ] || {{ rm kill-{number}; kill -9 $PPID; exit 1; }}
    [ ! -e fail-{number} ] || exit 1
    echo {number} > db ;;
esac
"""


def make_release(folder, number):
    dist = folder / f"dist{number}"
    dist.mkdir(exist_ok=True)
    wheels = [dist / f"{name}-{number}.0-py3-none-any.whl" for name in ("ldp_client", "ldpkit")]
    for wheel in wheels:
        wheel.write_text(wheel.name)
    digest = sha256(b"".join(wheel.read_bytes() for wheel in wheels)).hexdigest()[:12]
    made = folder / "opt" / "releases" / f"{number}.0-{digest}-collector"
    (made / "bin").mkdir(parents=True)
    (made / "complete").touch()
    program = made / "bin" / "ldpkit"
    program.write_text(LDPKIT.format(number=number))
    program.chmod(0o755)


class Host:
    """A machine whose folders are in a temporary one, with two releases at hand."""

    def __init__(self, folder):
        self.folder, self.place, self.node = folder, folder / "place", folder / "place-node-8001"
        self.running = folder / "running"
        script = (DEPLOY / "install.sh").read_text()
        for old, new in MOVED.items():
            assert old in script, old
            script = script.replace(old, new.format(folder))
        for name, text in (("install.sh", script), ("bin/systemctl", SYSTEMCTL)):
            self.write(name, text)
        for number in (1, 2):
            make_release(folder, number)
        self.running.write_text("")

    def write(self, name, program):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(program)
        file.chmod(0o755)

    def install(self, number, *options, code=0, **more):
        """Run install.sh for a release. Return what it says."""
        dist = self.folder / f"dist{number}"
        command = ["bash", self.folder / "install.sh", "install", "--from", dist, *options]
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "RUNNING": str(self.running), **more}
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def state(self):
        """The releases that the databases are of, of the collector and of the node, and which units run."""
        databases = [
            (place / "db").read_text().strip() for place in (self.place, self.node) if place.exists()
        ]
        return " ".join(databases), self.running.read_text()

    def backups(self):
        """{name: the release that the copied database is of}."""
        return {file.name: file.read_text().strip() for file in (self.folder / "backups").iterdir()}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


@pytest.mark.attack(19)
@pytest.mark.slow
def test_killed_upgrade_is_resumed(host):
    """An upgrade is killed while it migrates: the next run must go on from the state before."""
    host.install(1)
    host.running.write_text("ldpkit.service\n")
    (host.place / "kill-2").touch()
    host.install(2, code=-9)
    assert host.state() == ("1", "")
    assert "was interrupted and goes on" in host.install(2)
    assert host.state() == ("2", "ldpkit.service\n")
    assert {*host.backups().values()} == {"1"}
    # Once it is over there is nothing to go on with.
    assert "interrupted" not in host.install(2)
    assert not (host.folder / "opt" / "upgrading").exists()


@pytest.fixture
def with_node(host):
    """A collector and a node of the first release, both running."""
    host.install(1)
    host.node.mkdir()
    (host.node / "ldpkit.toml").touch()
    (host.node / "db").write_text("1\n")
    host.running.write_text("ldpkit-node@8001.service\nldpkit.service\n")
    return host


@pytest.mark.slow
def test_node_whose_migration_failed_runs_after_resumed_upgrade(with_node):
    """The collector is migrated by then; its second backup may be the new release's and is named so."""
    host, running = with_node, with_node.running.read_text()
    (host.node / "fail-2").touch()
    assert f"rm {host.folder / 'opt' / 'upgrading'}; systemctl start" in host.install(2, code=1)
    assert host.state() == ("2 1", "")
    (host.node / "fail-2").unlink()
    host.install(2)
    assert host.state() == ("2 2", running)
    for name, release in host.backups().items():
        copied_by = name.removeprefix("place-").removeprefix("node-8001-")
        assert copied_by.startswith("2.0-") or release == "1", name
        assert ("-resumed-" in copied_by) == copied_by.startswith("2.0-")
    assert len(host.backups()) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said", "left"),
    [("fail-backup", "no backup of", "1 1"), ("fail-2", "not be migrated", "2 1")],
)
def test_kept_data_folders_are_backed_up_and_migrated(with_node, fault, said, left):
    """The programs are gone. One place fails at first: it is named, and the next run does all of them."""
    host = with_node
    shutil.rmtree(host.folder / "opt")
    host.running.write_text("")
    make_release(host.folder, 2)
    (host.node / fault).touch()
    words = host.install(2, code=1)
    assert said in words
    assert f"chown -R {getpass.getuser()}: {host.node}" in words
    assert host.state() == (left, "")
    assert not (host.folder / "opt" / "bin").exists()
    shutil.rmtree(host.folder / "backups")
    (host.node / fault).unlink()
    host.install(2)
    assert host.state() == ("2 2", "")
    backups = host.backups()
    assert " ".join(backups[name] for name in sorted(backups)) == left
    assert all("2.0-" in name and "-kept-" in name for name in backups)
    # Once there are programs, a run of the same release copies nothing.
    shutil.rmtree(host.folder / "backups")
    host.install(2)
    assert host.backups() == {}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("python", "change", "said"),
    [
        ("case $1 in -V) echo Python 3.9.2;; *) exit 1;; esac", "true", "is Python 3.9.2"),
        ('case "$2" in *ensurepip*) exit 1;; esac', "true", "apt install python3-venv"),
        ("", "sed -i s/^OPT_MIB=1$/OPT_MIB=999999999/ install.sh", "needs 999999999 MiB of free disk"),
        ("", "rm dist1/*.whl", "must have one wheel"),
    ],
)
def test_unready_machine_is_refused_before_anything_is_made(host, python, change, said):
    host.write("python", f"#!/bin/sh\n{python}\n")
    shutil.rmtree(host.folder / "opt")
    subprocess.run(change, shell=True, cwd=host.folder, check=True)
    refused = host.install(1, code=1, PYTHON=str(host.folder / "python"))
    assert said in refused.splitlines()[-1]
    assert not any((host.folder / name).exists() for name in ("opt", "place", "backups"))


@pytest.mark.processes
def test_database_option_is_refused_for_an_existing_place(host):
    """The option would be silently ignored, and reports would go into the old database."""
    url = "postgresql:///ldpkit"
    host.install(1, "--database", url)
    assert "--database is for a place that is yet to be made" in host.install(1, "--database", url, code=1)


# Makes an environment whose pip notes what it was to install.
PYTHON = """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/bash\necho "${@: -1}" >"%s/wanted"\n' "$3" >"$3/bin/pip"
echo '#!/bin/bash' >"$3/bin/ldpkit"
chmod 755 "$3"/bin/*
"""


@pytest.mark.slow
def test_upgrade_without_extras_option_keeps_installed_extras(host):
    """Otherwise the next run, even of the same release, removes the programs that fit and analyse."""
    host.write("python", PYTHON)
    for number, *options in ((1, "--extras", "collector,fit"), (1,), (2,)):
        host.install(number, *options, PYTHON=str(host.folder / "python"))
        wanted = host.folder / "opt" / "bin" / ".." / "wanted"
        assert wanted.read_text().endswith(f"ldpkit-{number}.0-py3-none-any.whl[collector,fit]\n")
