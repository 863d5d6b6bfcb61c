"""The install script in a Debian root: what it makes, an upgrade, and what it leaves."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
import subprocess
import time
import urllib.request
import zipfile
from dataclasses import replace
from pathlib import Path

from tests.deploy.building import REPOSITORY
from tests.deploy.roots import Inside, call, install, pip_settings, run, running, whole

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
    refused(root, replace(inside, user="65534"), "only root", "install", "--from", "/srv/dist")
    # What a stopped installation leaves.
    (root / "opt/ldpkit/releases" / release_of(wheels) / "bin").mkdir(parents=True)
    say(root, inside, "install", "--from", "/srv/dist")
    settings = (root / PLACE / "ldpkit.toml").read_bytes()
    first = (root / "opt/ldpkit/bin").readlink()
    say(root, inside, "install", "--from", "/srv/dist")
    same(settings, (root / PLACE / "ldpkit.toml").read_bytes(), "settings after a second installation")
    try_unit(root)
    # The other release's programs are the same: pip need not install them again.
    releases = root / "opt/ldpkit/releases"
    shutil.copytree(releases / release_of(wheels), releases / release_of(others), symlinks=True)
    say(root, inside, "install", "--from", "/srv/others")
    same(len(list((root / "var/backups/ldpkit").iterdir())), 1, "backups after an upgrade")
    same((root / "opt/ldpkit/bin").readlink() == first, False, "whether the upgrade kept the old release")
    try_unit(root)
    same((root / PLACE / "ldpkit.sqlite3").exists(), True, "whether the data are left")
    same(settings, (root / PLACE / "ldpkit.toml").read_bytes(), "settings after all")


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
    port = free_port()
    command = [port if word == "8000" else word for word in said["ExecStart"].split()]
    with running(root, command, inside, log):
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/healthz"):
            if time.monotonic() > deadline:
                raise SystemExit(f"the unit's command does not answer:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)


def free_port() -> str:
    """A port that nobody on this machine listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def answers(url: str) -> bool:
    """Whether somebody answers there."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def other_wheels(wheels: Path, folder: Path) -> Path:
    """The same wheels with other bytes, as another release has."""
    folder.mkdir()
    for wheel in wheels.glob("*.whl"):
        copied = folder / wheel.name
        copied.write_bytes(wheel.read_bytes())
        with zipfile.ZipFile(copied, "a") as file:
            file.comment = b"another release"
    return folder


def say(root: Path, inside: Inside, *arguments: str) -> str:
    """What the script prints."""
    return call(root, [SCRIPT, *arguments], inside)


def refused(root: Path, inside: Inside, words: str, *arguments: str) -> None:
    """Raises SystemExit unless the script refuses with a last line that has these words."""
    done = subprocess.run(
        whole(root, [SCRIPT, *arguments], inside), capture_output=True, text=True, check=False
    )
    if done.returncode != 1 or words not in done.stderr.splitlines()[-1]:
        raise SystemExit(f"not refused with {words!r}: {done.returncode}\n{done.stdout}{done.stderr}")


def same(found: object, wanted: object, what: str) -> None:
    """Raises SystemExit where two things differ."""
    if found != wanted:
        raise SystemExit(f"{what}: {found!r}, and not {wanted!r}")
