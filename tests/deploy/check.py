"""From nothing to a summary without a container engine: `make machines`, as root, with a Debian mirror.

The Containerfile's own steps run in Debian roots that debootstrap makes, then compose.yaml's services in
them, each with the user, the volumes and the read-only root that it states, on addresses of the loopback. A
study is published through the proxy, devices answer, and their summary is downloaded. Then the proxy and the
install script are tried.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import release
from schemas import Study
from tests import studies
from tests.deploy.containers import DEPLOY, SERVICES, START_SECONDS, Machine, build
from tests.deploy.roots import Inside, call, copy, debian, folder_of_roots, install, run, running
from tests.kit.collectors import device_report
from tests.kit.serving import held_port

ROOT = DEPLOY.parent
PORT = 8443
PEOPLE = 20
STUDY = studies.document({**studies.YES_NO, "text": "Have you ever?"}, id="habits")
DEVICES = """
import sys
from ldp_client import Device
for person in range(int(sys.argv[2])):
    device = Device(f"/tmp/devices/{person}", max_epsilon="2", collector=sys.argv[1])
    study = device.fetch("habits")
    device.consent(study)
    device.answer(study, {"ever": person % 2 == 0})
    assert device.flush().sent == 1
"""


def main() -> int:
    """Do all of it; an exit code."""
    # What runs in a root has a mount space of its own: nothing of this machine is mounted in the folder.
    with folder_of_roots("machines") as folder:
        print("making a Debian root and wheels", flush=True)
        base = debian(folder / "debian")
        wheels, pip = make_wheels(folder)
        print("making the images", flush=True)
        own = build(folder, base, folder / "context", pip)
        other = install(copy(base, folder / "other"), "postgresql", "nginx-light")
        machine = Machine(own, other, folder / "state", folder / "tls")
        certificate = make_certificate(machine)
        machine.write_hosts()
        with machine.up():
            print("trying a summary and the proxy", flush=True)
            try_summary(machine, certificate)
            try_proxy(machine, certificate)
        print("trying the install script", flush=True)
        try_installing(copy(base, folder / "installed"), wheels, pip)
    return 0


def make_wheels(folder: Path) -> tuple[Path, Inside]:
    """Make the build's context with wheels of the commit at hand; return their folder, and pip's settings.

    What they need is downloaded here, so that roots reach no package index.
    """
    context, needed = folder / "context", folder / "needed"
    wheels = context / "dist"
    wheels.mkdir(parents=True)
    (folder / "source").mkdir()
    release.committed(folder / "source")
    release.build_wheels(folder / "source", wheels)
    for file in ("constraints.txt", "deploy/container/place.sh"):
        (context / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, context / file)
    device, whole = (str(next(wheels.glob(f"{name}-*.whl"))) for name in ("ldp_client", "ldpkit"))
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(needed)]
    # The Python of the roots.
    download += ["--only-binary", ":all:", "--python-version", "3.11"]
    run([*download, "--constraint", str(ROOT / "constraints.txt"), device, f"{whole}[collector]"])
    return wheels, Inside({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/run/needed"}, {"/run/needed:ro": needed})


def make_certificate(machine: Machine) -> Path:
    """A certificate that signs itself, as docs/machines.md makes one for a trial."""
    machine.state.mkdir()
    machine.tls.mkdir()
    names = ",".join(f"DNS:{name}.example.org" for name in ("collector", "node-a", "node-b"))
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-days", "2", "-subj", "/CN=collector.example.org", "-addext", f"subjectAltName={names}"]
    certificate, key = machine.tls / "certificate.pem", machine.tls / "key.pem"
    run([*made, "-keyout", str(key), "-out", str(certificate)])
    os.chown(key, 10001, 10001)
    key.chmod(0o600)
    return certificate


def try_summary(machine: Machine, certificate: Path) -> None:
    """Publish a study through the proxy, answer as devices, and download the summary of what came."""
    folder, url = machine.state / "operator", f"https://collector.example.org:{PORT}"
    folder.mkdir()
    (folder / "study.json").write_text(json.dumps(STUDY))
    environment = {
        "PATH": "/opt/ldpkit/bin:/usr/bin:/bin",
        "SSL_CERT_FILE": "/etc/tls.pem",
        "LDPKIT_TOKEN": machine.call("collector", "ldpkit", "token").strip(),
    }
    binds = {"/etc/tls.pem:ro": certificate, "/mnt": folder}
    inside = Inside(environment, binds, tmpfs=["/tmp"], folder="/mnt")
    call(machine.own, ["ldpkit", "publish", "study.json", "--collector", url], inside)
    call(machine.own, ["python", "-c", DEVICES, url, str(PEOPLE)], inside)
    call(machine.own, ["ldpkit", "export", "habits", "--collector", url, "--out", "summary.json"], inside)
    assert json.loads((folder / "summary.json").read_text())["questions"]["ever"]["n"] == PEOPLE


def try_proxy(machine: Machine, certificate: Path) -> None:
    """What nginx lets through, what it stops, and that it keeps nothing."""
    for name in ("collector", "node-a", "node-b"):
        # How the engine would ask whether a service lives, at the address that it has here.
        _kind, *words = SERVICES[name]["healthcheck"]["test"]
        machine.call(name, *[str(word).replace("127.0.0.1", machine.address(name)) for word in words])

    def ask(method: str, path: str, body: bytes = b"", name: str = "collector", *headers: str) -> str:
        """The answer's status and media type."""
        place = f"{name}.example.org:{PORT}"
        command = ["curl", "--silent", "--cacert", str(certificate), "--output", "/dev/null"]
        command += ["--resolve", f"{place}:{machine.address('proxy')}", "--request", method]
        for header in ("Content-Type: application/json", *headers):
            command += ["--header", header]
        command += ["--write-out", "%{http_code} %{content_type}", "--data-binary", "@-"]
        done = subprocess.run([*command, f"https://{place}{path}"], input=body, capture_output=True)
        return done.stdout.decode().partition(";")[0]

    problem = "application/problem+json"
    report = device_report(Study(STUDY)).to_document()
    path = f"/v1/studies/habits/reports/{report['id']}"
    body = json.dumps(report).encode()
    assert ask("PUT", path, body) == "201 application/json"
    assert ask("PUT", path, body) == "200 application/json"
    assert ask("PUT", path, b"{}") == f"422 {problem}"
    assert ask("GET", "/metrics") == f"401 {problem}"
    assert ask("PUT", path, b"x" * ((1 << 20) + 1)) == "413 text/html"
    assert ask("GET", "/healthz", b"", "node-a") == "200 application/json"
    large = json.dumps({"x": "y" * (2 << 20)}).encode()
    # The node refuses it, not the proxy.
    key = f"Authorization: Bearer {machine.call('node-a', 'ldpkit', 'token').strip()}"
    assert ask("POST", "/v1/studies/habits/sum", large, "node-a", key) in (f"404 {problem}", f"422 {problem}")
    assert ask("GET", "/healthz", b"", "collector", "Host: other.example.org") == "421 text/html"
    # No log has a trace of a request.
    for name in ("proxy", "collector", "node-a"):
        said = machine.log(name).read_text(encoding="utf-8")
        assert not [trace for trace in (report["id"], "habits", "127.0.0.", "PUT ") if trace in said], name


def try_installing(root: Path, wheels: Path, pip: Inside) -> None:
    """Install, again, and another release, with what the unit would run; systemd itself runs in no root."""
    others = shutil.copytree(wheels, root.parent / "others")
    for wheel in others.glob("*.whl"):
        with zipfile.ZipFile(wheel, "a") as file:
            file.comment = b"another release"
    binds = {
        "/srv/ldpkit/deploy:ro": DEPLOY,
        "/srv/ldpkit/constraints.txt:ro": ROOT / "constraints.txt",
        "/srv/first:ro": wheels,
        "/srv/other:ro": others,
    }
    inside = replace(pip, binds={**pip.binds, **binds})
    install(root, "python3", "python3-venv")
    place, programs, releases = root / "var/lib/ldpkit", root / "opt/ldpkit/bin", []
    for wheels_there in ("/srv/first", "/srv/first", "/srv/other"):
        call(root, ["/srv/ldpkit/deploy/install.sh", "install", "--from", wheels_there], inside)
        releases.append((programs.readlink(), (place / "ldpkit.toml").read_bytes()))
        try_unit(root)
    first, again, other = releases
    assert first == again
    assert (other[0] != first[0], other[1] == first[1]) == (True, True)
    assert len(list((root / "var/backups/ldpkit").iterdir())) == 1
    assert (place / "ldpkit.sqlite3").exists()


def try_unit(root: Path) -> None:
    """The unit's command as its user: it answers, and nothing of the root but its state can be written to."""
    unit = (DEPLOY / "systemd/ldpkit.service").read_text(encoding="utf-8")
    said = dict(re.findall(r"^(\w+)=(.*)$", unit, flags=re.M))
    user = run(["chroot", str(root), "id", "-u", said["User"]]).strip()
    folder = said["WorkingDirectory"]
    state = {folder: root / folder.lstrip("/")}
    inside = Inside(binds=state, tmpfs=["/tmp"], user=user, folder=folder, sealed=True)
    with held_port() as port:
        command = [str(port) if word == "8000" else word for word in said["ExecStart"].split()]
        with running(root, command, inside, root.parent / "unit.log"):
            asking = ["--silent", "--fail", "--retry", str(START_SECONDS), "--retry-delay", "1"]
            run(["curl", *asking, "--retry-connrefused", f"http://127.0.0.1:{port}/healthz"])


if __name__ == "__main__":
    sys.exit(main())
