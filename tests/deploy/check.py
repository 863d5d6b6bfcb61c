"""From nothing to a summary without a container engine: `make machines`, as root, with a Debian mirror.

The Containerfile's own steps run in Debian roots that debootstrap makes, then compose.yaml's services in
them, each with the user, the volumes and the read-only root that it states, on addresses of the loopback. A
study is published through the proxy, devices answer, and their summary is downloaded. Then the proxy, both
nodes, Prometheus and the install script are tried. Grafana is in no Debian root: what is provisioned for it
is read by tests alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import release
from tests.deploy.building import REPOSITORY, build, read
from tests.deploy.composed import SERVICES, Machine
from tests.deploy.installing import try_installing
from tests.deploy.roots import copy, debian, install, pip_settings, refuse_unready, whole
from tests.deploy.trying import try_nodes, try_proxy, try_summary, try_watching


def main() -> int:
    """Do all of it, or with --bare run `make test` on a Debian that has Python and make; an exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bare", action="store_true", help="`make test` where only Python and make are")
    arguments = parser.parse_args()
    refuse_unready()
    # So that the folder of roots goes, as it does after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # What runs in a root has a mount space of its own: nothing of this machine is mounted in the folder.
    with tempfile.TemporaryDirectory(prefix="ldpkit-machines-") as name:
        folder = Path(name)
        with told("a Debian root"):
            base = debian(folder / "debian")
        if arguments.bare:
            with told("make test"):
                return test_in(install(base, "python3", "python3-venv", "make"))
        with told("the wheels"):
            wheels = wheels_into(folder / "context")
        check_compose(folder, base)
        with told("the install script"):
            try_installing(copy(base, folder / "installed"), wheels)
    return 0


def test_in(root: Path) -> int:
    """Run `make test` of the commit at hand in a root. Tests that need an absent program skip themselves."""
    place = root / "srv/ldpkit"
    place.mkdir(parents=True)
    release.committed(place)
    inside = replace(pip_settings(), folder="/srv/ldpkit")
    return subprocess.run(whole(root, ["make", "test"], inside), check=False).returncode


@contextmanager
def told(what: str) -> Iterator[None]:
    """Say how long a step took."""
    start = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - start:.0f} s", flush=True)


def wheels_into(context: Path) -> Path:
    """The build's context, with wheels of the commit at hand; the folder that has these."""
    out = context / "dist"
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        release.committed(Path(name))
        release.build_wheels(Path(name), out)
    for file in ("constraints.txt", "deploy/container/place.sh"):
        (context / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / file, context / file)
    return out


def check_compose(folder: Path, base: Path) -> None:
    """The images, the services, and what is asked of them."""
    with told("the images"):
        machine = images(folder, base)
    certificate = make_certificate(machine.tls)
    machine.name_everybody()
    steps = {
        "a summary": try_summary,
        "the proxy": try_proxy,
        "both nodes": try_nodes,
        "Prometheus": try_watching,
    }
    with machine.up_in_order():
        for name, step in steps.items():
            with told(name):
                step(machine, certificate)


def images(folder: Path, base: Path) -> Machine:
    """Our image by the Containerfile's steps; one root of Debian's packages stands for all others."""
    names = {service["image"] for service in SERVICES.values()}
    with ThreadPoolExecutor(1) as beside:
        other = copy(base, folder / "stand-in")
        waiting = beside.submit(install, other, "postgresql", "nginx-light", "prometheus")
        own = build(folder, base, folder / "context", pip_settings())
        waiting.result()
    state, tls = folder / "state", folder / "tls"
    state.mkdir()
    tls.mkdir()
    others = {name: other for name in names if name != "ldpkit" and not name.startswith("grafana/")}
    return Machine({"ldpkit": own, **others}, read()[-1], state, tls)


def make_certificate(tls: Path) -> Path:
    """A certificate that signs itself, as docs/machines.md makes one for a trial."""
    names = ",".join(f"DNS:{name}.example.org" for name in ("collector", "node-a", "node-b"))
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-days", "2", "-subj", "/CN=collector.example.org", "-addext", f"subjectAltName={names}"]
    certificate, key = tls / "certificate.pem", tls / "key.pem"
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    os.chown(key, 10001, 10001)
    key.chmod(0o600)
    return certificate


if __name__ == "__main__":
    sys.exit(main())
