"""The install script in a Debian root: what it makes, an upgrade, and what it leaves."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
import urllib.request
import zipfile
from dataclasses import replace
from pathlib import Path

from tests.deploy.building import REPOSITORY
from tests.deploy.roots import Inside, call, install, pip_settings, run, running, whole
from tests.ports import held_port

SCRIPT = "/srv/ldpkit/deploy/install.sh"
PLACE = "var/lib/ldpkit"
UNIT = REPOSITORY / "deploy/systemd/ldpkit.service"
START_SECONDS = 60


def try_installing(root: Path, wheels: Path) -> None:
    """Everything that the script does, but for systemd itself, which runs in no root.

    The unit's command runs as the unit's user in its folder instead, on a root that cannot be written to.
    """
    others = other_wheels(wheels, root.parent / "others")
    pip = pip_settings()
    inside = Inside(
        environment=pip.environment,
        binds={
            **pip.binds,
            "/srv/ldpkit/deploy:ro": REPOSITORY / "deploy",
            "/srv/ldpkit/constraints.txt:ro": REPOSITORY / "constraints.txt",
            "/srv/dist:ro": wheels,
            "/srv/others:ro": others,
        },
    )
    install(root, "python3", "python3-venv")
    place, releases = root / PLACE, root / "opt/ldpkit/releases"
    first = [SCRIPT, "install", "--from", "/srv/dist"]
    done = subprocess.run(
        whole(root, first, replace(inside, user="65534")), capture_output=True, text=True, check=False
    )
    assert (done.returncode, "only root" in done.stderr.splitlines()[-1]) == (1, True), done.stderr
    # What a stopped installation leaves.
    (releases / release_of(wheels) / "bin").mkdir(parents=True)
    call(root, first, inside)
    settings, programs = (place / "ldpkit.toml").read_bytes(), (root / "opt/ldpkit/bin").readlink()
    call(root, first, inside)
    assert (place / "ldpkit.toml").read_bytes() == settings
    try_unit(root)
    # The other release's programs are the same: pip need not install them again.
    shutil.copytree(releases / release_of(wheels), releases / release_of(others), symlinks=True)
    call(root, [SCRIPT, "install", "--from", "/srv/others"], inside)
    assert len(list((root / "var/backups/ldpkit").iterdir())) == 1
    assert (root / "opt/ldpkit/bin").readlink() != programs
    try_unit(root)
    assert (place / "ldpkit.sqlite3").exists()
    assert (place / "ldpkit.toml").read_bytes() == settings


def release_of(wheels: Path) -> str:
    """What the script calls a release's folder."""
    device, whole = (next(wheels.glob(f"{name}-*.whl")) for name in ("ldp_client", "ldpkit"))
    digest = hashlib.sha256(device.read_bytes() + whole.read_bytes()).hexdigest()
    return f"{whole.name.split('-')[1]}-{digest[:12]}-collector"


def try_unit(root: Path) -> None:
    """The unit's command as its user: it answers, and nothing of the root but its state can be written to."""
    said = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(encoding="utf-8"), flags=re.M))
    user = run(["chroot", str(root), "id", "-u", said["User"]]).strip()
    folder = said["WorkingDirectory"]
    state = {folder: root / folder.lstrip("/")}
    inside = Inside(binds=state, tmpfs=["/tmp"], user=user, folder=folder, sealed=True)
    log = root.parent / "unit.log"
    with held_port() as port:
        command = [str(port) if word == "8000" else word for word in said["ExecStart"].split()]
        with running(root, command, inside, log):
            deadline = time.monotonic() + START_SECONDS
            while not answers(f"http://127.0.0.1:{port}/healthz"):
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.2)


def answers(url: str) -> bool:
    """Whether somebody answers there."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def other_wheels(wheels: Path, folder: Path) -> Path:
    """The same wheels with other bytes, as another release has."""
    shutil.copytree(wheels, folder)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel, "a") as file:
            file.comment = b"another release"
    return folder
