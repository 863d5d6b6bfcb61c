"""Debian roots in folders, and commands inside them: a container engine's work by mounts and chroot."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STOP_SECONDS = 30
# A mount space and process numbers of its own, so that nothing is left of either.
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
UNPRIVILEGED = ("setpriv", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")


@dataclass(frozen=True)
class Inside:
    """How a command runs in a root.

    environment: all of it. binds: folders and files of this machine by their paths in the root; a path that
    ends in :ro cannot be written to. tmpfs: empty folders. user: uid:gid, without privileges; None is root.
    sealed: whether the root itself cannot be written to.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    binds: Mapping[str, Path] = field(default_factory=dict)
    tmpfs: Sequence[str] = ()
    user: str | None = None
    folder: str = "/"
    sealed: bool = False


def refuse_unready() -> None:
    """Say what is missing before anything is made."""
    if os.geteuid() != 0:
        sys.exit("only root can enter another Debian: run it with sudo")
    missing = [
        name for name in ("debootstrap", "unshare", "chroot", "openssl", "curl") if shutil.which(name) is None
    ]
    if missing:
        sys.exit(f"install what is missing: {', '.join(missing)}")


@contextmanager
def folder_of_roots(name: str) -> Iterator[Path]:
    """A new folder for roots, which goes when the program ends, also by SIGTERM."""
    refuse_unready()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix=f"ldpkit-{name}-") as folder:
        yield Path(folder)


def debian(folder: Path, suite: str = SUITE) -> Path:
    """A minimal Debian in a new folder."""
    run(["debootstrap", "--variant=minbase", suite, str(folder), MIRROR])
    # As in images: packages start no service, and dpkg does not wait for the disk.
    (folder / "etc/dpkg/dpkg.cfg.d/speed").write_text("force-unsafe-io\n")
    policy = folder / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    (folder / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    return folder


def copy(root: Path, folder: Path) -> Path:
    """The same root in another folder."""
    run(["cp", "-a", "--reflink=auto", str(root), str(folder)])
    return folder


def install(root: Path, *packages: str) -> Path:
    """Have Debian packages in a root."""
    names = " ".join(map(shlex.quote, packages))
    call(root, ["sh", "-c", f"apt-get update -qq && apt-get install -qq -y --no-install-recommends {names}"])
    return root


def run(command: Sequence[str]) -> str:
    """What a command prints. Raises SystemExit with all that it said where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)[:400]} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def call(root: Path, command: Sequence[str], inside: Inside | None = None) -> str:
    """What a command in a root prints. Raises SystemExit where it fails."""
    return run(whole(root, command, inside or Inside()))


@contextmanager
def running(root: Path, command: Sequence[str], inside: Inside, log: Path) -> Iterator[None]:
    """A command that runs in a root until the block ends, and is then asked to end."""
    with log.open("ab") as output:
        process = subprocess.Popen(whole(root, command, inside), stdout=output, stderr=output)
    try:
        yield
    finally:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for child in children.read_text().split() if process.poll() is None else []:
            os.kill(int(child), signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def whole(root: Path, command: Sequence[str], inside: Inside) -> list[str]:
    """The command line that makes the mounts, enters the root and runs the command there as process 1."""
    own = shlex.quote(str(root))
    lines = ["set -e", f"mount --bind {own} {own}"]
    for path, source in inside.binds.items():
        target, _, mode = path.partition(":")
        point = _point(root, target, source)
        lines.append(f"mount --bind {shlex.quote(str(source))} {point}")
        lines += [f"mount -o remount,bind,ro {point}"] if mode == "ro" else []
    for path in inside.tmpfs:
        target, _, options = path.partition(":")
        lines.append(f"mount -t tmpfs -o {options or 'mode=1777'} none {_point(root, target)}")
    lines += [f"mount --rbind /dev {_point(root, '/dev')}", f"mount -t proc none {_point(root, '/proc')}"]
    if inside.sealed:
        lines.append(f"mount -o remount,bind,ro {own}")
    variables = {
        "PATH": PATH,
        "HOME": inside.folder,
        "DEBIAN_FRONTEND": "noninteractive",
        **inside.environment,
    }
    entered = ["chroot", str(root)]
    if inside.user is not None:
        uid, _, gid = inside.user.partition(":")
        entered += [*UNPRIVILEGED, f"--reuid={uid}", f"--regid={gid or uid}"]
    entered += ["env", "-i", f"--chdir={inside.folder}"]
    entered += [f"{name}={value}" for name, value in variables.items()]
    return [*ALONE, "sh", "-c", "\n".join([*lines, f"exec {shlex.join([*entered, *command])}"])]


def _point(root: Path, target: str, source: Path | None = None) -> str:
    """Where to mount, made unless it is there. The path is the root's own, never through its links."""
    inside = Path(run(["chroot", str(root), "realpath", "-m", target]).strip())
    point = root / inside.relative_to("/")
    if source is not None and source.is_file():
        point.parent.mkdir(parents=True, exist_ok=True)
        point.touch()
    else:
        point.mkdir(parents=True, exist_ok=True)
    return shlex.quote(str(point))
