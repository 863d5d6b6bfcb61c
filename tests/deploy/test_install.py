"""The install script upgrades places, and goes on where it was killed."""

import getpass
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
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


@pytest.fixture
def install(tmp_path):
    """Runs install.sh for one of two releases, with its folders in a temporary one."""
    script = (DEPLOY / "install.sh").read_text()
    for old, new in MOVED.items():
        assert old in script, old
        script = script.replace(old, new.format(tmp_path))
    for name, text in (("install.sh", script), ("bin/systemctl", SYSTEMCTL)):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    for number in (1, 2):
        make_release(tmp_path, number)

    def run(number, *options, **more):
        script, dist = tmp_path / "install.sh", tmp_path / f"dist{number}"
        command = ["bash", str(script), "install", "--from", str(dist), *options]
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "RUNNING": str(tmp_path / "running"), **more}
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    return run


@pytest.mark.attack(19)
@pytest.mark.slow
def test_killed_upgrade_is_resumed(install, tmp_path):
    """An upgrade is killed while it migrates: the next run must go on from the state before."""
    database, running = tmp_path / "place" / "db", tmp_path / "running"
    running.write_text("")
    assert install(1).returncode == 0
    running.write_text("ldpkit.service\n")
    (tmp_path / "place" / "kill-2").touch()
    assert install(2).returncode == -9
    assert (database.read_text(), running.read_text()) == ("1\n", "")
    again = install(2)
    assert again.returncode == 0, again.stderr
    assert "was interrupted and goes on" in again.stdout
    assert (database.read_text(), running.read_text()) == ("2\n", "ldpkit.service\n")
    assert {file.read_text() for file in (tmp_path / "backups").iterdir()} == {"1\n"}
    # Once it is over there is nothing to go on with.
    assert "interrupted" not in install(2).stdout
    assert not (tmp_path / "opt" / "upgrading").exists()


BOTH = "ldpkit-node@8001.service\nldpkit.service\n"


@pytest.fixture
def with_node(install, tmp_path):
    """A collector and a node of the first release, both running; the folder of each."""
    running = tmp_path / "running"
    running.write_text("")
    assert install(1).returncode == 0
    node = tmp_path / "place-node-8001"
    node.mkdir()
    (node / "ldpkit.toml").touch()
    (node / "db").write_text("1\n")
    running.write_text(BOTH)
    return tmp_path / "place", node


@pytest.mark.slow
def test_node_whose_migration_failed_runs_after_resumed_upgrade(install, tmp_path, with_node):
    """The collector is migrated by then; its second backup may be the new release's and is named so."""
    place, node = with_node
    (node / "fail-2").touch()
    failed = install(2)
    assert failed.returncode == 1
    assert f"rm {tmp_path / 'opt' / 'upgrading'}; systemctl start" in failed.stderr
    assert [(one / "db").read_text() for one in (place, node)] == ["2\n", "1\n"]
    assert (tmp_path / "running").read_text() == ""
    (node / "fail-2").unlink()
    assert install(2).returncode == 0
    assert [(one / "db").read_text() for one in (place, node)] == ["2\n", "2\n"]
    assert (tmp_path / "running").read_text() == BOTH
    for backup in (tmp_path / "backups").iterdir():
        release = backup.name.removeprefix("place-").removeprefix("node-8001-")
        assert release.startswith("2.0-") or backup.read_text() == "1\n", backup.name
        assert ("-resumed-" in release) == release.startswith("2.0-")
    assert len(list((tmp_path / "backups").iterdir())) == 4


@pytest.fixture
def kept(tmp_path, with_node):
    """The two places of the first release, whose programs were taken away; the second release is at hand."""
    shutil.rmtree(tmp_path / "opt")
    (tmp_path / "running").write_text("")
    make_release(tmp_path, 2)
    return with_node


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said", "left"),
    [("fail-backup", "no backup of", ["1\n", "1\n"]), ("fail-2", "not be migrated", ["2\n", "1\n"])],
)
def test_kept_data_folders_are_backed_up_and_migrated(install, tmp_path, kept, fault, said, left):
    """One of them fails at first: it is named, and the next run does all of them."""
    (kept[1] / fault).touch()
    failed = install(2)
    assert failed.returncode == 1
    assert said in failed.stderr
    assert f"chown -R {getpass.getuser()}: {kept[1]}" in failed.stderr
    assert [(one / "db").read_text() for one in kept] == left
    assert not (tmp_path / "opt" / "bin").exists()
    shutil.rmtree(tmp_path / "backups")
    (kept[1] / fault).unlink()
    assert install(2).returncode == 0
    assert [(one / "db").read_text() for one in kept] == ["2\n", "2\n"]
    backups = sorted((tmp_path / "backups").iterdir())
    assert [file.read_text() for file in backups] == left
    assert all("2.0-" in file.name and "-kept-" in file.name for file in backups)
    # Once there are programs, a run of the same release copies nothing.
    shutil.rmtree(tmp_path / "backups")
    assert install(2).returncode == 0
    assert not list((tmp_path / "backups").iterdir())


# A Python that is too old, and one that can make no environment.
OLD = "#!/bin/sh\ncase $1 in -V) echo Python 3.9.2;; *) exit 1;; esac\n"
BARE = '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\n'


@pytest.mark.parametrize(
    ("python", "change", "said"),
    [
        (None, "", "needs Python 3.11 or newer: apt install python3"),
        (OLD, "", "is Python 3.9.2"),
        (BARE, "", "apt install python3-venv"),
        ("#!/bin/sh\n", "OPT_MIB=999999999", "opt needs 999999999 MiB of free disk"),
        ("#!/bin/sh\n", "rm dist1/*.whl", "must have one wheel"),
    ],
)
def test_unready_machine_is_refused_before_anything_is_made(install, tmp_path, python, change, said):
    if python:
        (tmp_path / "python").write_text(python)
        (tmp_path / "python").chmod(0o755)
    shutil.rmtree(tmp_path / "opt")
    script = tmp_path / "install.sh"
    if change.startswith("OPT_MIB"):
        script.write_text(script.read_text().replace("OPT_MIB=1\n", f"{change}\n"))
    elif change:
        subprocess.run(change, shell=True, cwd=tmp_path, check=True)
    refused = install(1, PYTHON=str(tmp_path / "python"))
    assert (refused.returncode, said in refused.stderr.splitlines()[-1]) == (1, True), refused.stderr
    assert not any((tmp_path / name).exists() for name in ("opt", "place", "backups"))


def test_database_option_is_refused_for_an_existing_place(install, tmp_path):
    """The option would be silently ignored, and reports would go into the old database."""
    (tmp_path / "running").write_text("")
    url = "postgresql:///ldpkit"
    assert install(1, "--database", url).returncode == 0
    refused = install(1, "--database", url)
    assert refused.returncode == 1
    assert "--database is for a place that is yet to be made" in refused.stderr


# Makes an environment whose pip notes what it was to install.
PYTHON = """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/bash\necho "${@: -1}" >"%s/wanted"\n' "$3" >"$3/bin/pip"
echo '#!/bin/bash' >"$3/bin/ldpkit"
chmod 755 "$3"/bin/*
"""


@pytest.mark.slow
def test_upgrade_without_extras_option_keeps_installed_extras(install, tmp_path):
    """Otherwise the next run, even of the same release, removes the programs that fit and analyse."""
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "running").write_text("")
    for number, *options in ((1, "--extras", "collector,fit"), (1,), (2,)):
        done = install(number, *options, PYTHON=str(python))
        assert done.returncode == 0, done.stderr
        wanted = tmp_path / "opt" / "bin" / ".." / "wanted"
        assert wanted.read_text().endswith(f"ldpkit-{number}.0-py3-none-any.whl[collector,fit]\n")
