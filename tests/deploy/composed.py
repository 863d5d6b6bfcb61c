"""compose.yaml's services as commands in roots: a name is an address of the loopback, a volume a folder."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.building import Stage
from tests.deploy.roots import Inside, call, run, running

FILE = Path(__file__).resolve().parents[2] / "deploy" / "compose.yaml"
NOWHERE = "0.0.0.0"
START_SECONDS = 60
# What others' images start with.
ENTRIES = {"prometheus": ["prometheus"]}
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]


@dataclass(frozen=True)
class Machine:
    """Where services run.

    roots: by image name. last: the stage that image `ldpkit` ends with, whose variables hold unless a
    service says otherwise. state: a folder for volumes and logs. tls: the folder that stands for ./tls.
    """

    roots: dict[str, Path]
    last: Stage
    state: Path
    tls: Path

    def name_everybody(self) -> None:
        """Write /etc/hosts of every root, as an engine's name service would answer."""
        hosts = [f"{self.address(name)} {name}" for name in SERVICES]
        hosts += [f"{self.address('proxy')} {name}.example.org" for name in ("collector", "node-a", "node-b")]
        for root in self.roots.values():
            (root / "etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")

    def address(self, name: str) -> str:
        """Where a service listens, of loopback: all may have the ports that they are known by."""
        return f"127.0.19.{1 + [*SERVICES].index(name)}"

    def call(self, name: str, *command: str) -> str:
        """What a service prints that makes something and ends; or another command in its place."""
        root = self.roots[SERVICES[name]["image"]]
        return call(root, [*command] or self.command(name), self.inside(name))

    @contextmanager
    def up_in_order(self) -> Iterator[None]:
        """Have the services running, each once those that it waits for have ended or listen."""
        with ExitStack() as stack:
            self.call("secrets")
            stack.enter_context(self.up("database", 5432, start_postgresql(self)))
            for name in ("collector", "node-a", "node-b"):
                self.call(f"{name}-first")
                stack.enter_context(self.up(name, 8000))
            stack.enter_context(self.up("proxy", 8443))
            yield

    @contextmanager
    def up(self, name: str, port: int, command: list[str] | None = None) -> Iterator[None]:
        """Have one more service running."""
        root = self.roots[SERVICES[name]["image"]]
        with running(root, command or self.command(name), self.inside(name), self.log(name)):
            wait_for(self.address(name), port, self.log(name))
            yield

    def log(self, name: str) -> Path:
        """What a service has said."""
        return self.state / f"{name}.log"

    def command(self, name: str) -> list[str]:
        """Its entry point and its command; it listens on its own address alone, and not on all."""
        service, own = SERVICES[name], self.address(name)
        usual = self.last.last("ENTRYPOINT").words if _ours(service) else ENTRIES.get(name, [])
        command = [*map(str, [*service.get("entrypoint", usual), *service.get("command", [])])]
        command += [f"--web.listen-address={own}:9090"] if name == "prometheus" else []
        return [own if word == NOWHERE else word for word in command]

    def inside(self, name: str) -> Inside:
        """How it runs: as compose.yaml says, and nothing more."""
        service = SERVICES[name]
        variables = self.last.variables if _ours(service) else {}
        return Inside(
            environment=variables
            | {key: str(value) for key, value in service.get("environment", {}).items()},
            binds=dict(map(self._bind, service.get("volumes", []))),
            tmpfs=service.get("tmpfs", ()),
            user=service["user"],
            folder=self.last.last("WORKDIR").text if _ours(service) else "/",
            sealed=service["read_only"],
        )

    def _bind(self, volume: str) -> tuple[str, Path]:
        source, target, *mode = volume.split(":")
        if source == "./tls":
            found = self.tls
        elif source.startswith("."):
            found = self._own_copy((FILE.parent / source).resolve())
        else:
            found = self._volume(source, target)
        return ":".join([target, *mode]), found

    def _own_copy(self, file: Path) -> Path:
        """A file of the repository, but that it listens on one address alone and looks every 2 s."""
        text = file.read_text(encoding="utf-8")
        text = text.replace("listen 8443", f"listen {self.address('proxy')}:8443")
        text = text.replace("_interval: 2m", "_interval: 2s")
        made = self.state / file.name
        made.write_text(text, encoding="utf-8")
        return made

    def _volume(self, name: str, target: str) -> Path:
        """A volume's folder; a new one has the owner and mode of what the image has there."""
        folder = self.state / "volumes" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            original = self.roots["ldpkit"] / target.lstrip("/")
            run(["chown", f"--reference={original}", str(folder)])
            run(["chmod", f"--reference={original}", str(folder)])
        return folder


def wait_for(address: str, port: int, log: Path) -> None:
    """Wait until somebody listens there."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return socket.create_connection((address, port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.1)


def start_postgresql(machine: Machine) -> list[str]:
    """The database's command, by Debian's PostgreSQL; its cluster is made as the image would make it."""
    service = SERVICES["database"]
    root, inside = machine.roots[service["image"]], machine.inside("database")
    told = inside.environment
    programs = str(sorted((root / "usr/lib/postgresql").glob("*/bin"))[-1]).removeprefix(str(root))
    call(root, ["groupadd", "--gid", "10001", "ldpkit"])
    call(root, ["useradd", "--uid", "10001", "--gid", "10001", "ldpkit"])
    first = [f"{programs}/initdb", "-D", told["PGDATA"], "-U", told["POSTGRES_USER"]]
    first += [f"--pwfile={told['POSTGRES_PASSWORD_FILE']}", *told["POSTGRES_INITDB_ARGS"].split()]
    call(root, first, inside)
    asked = f"echo 'CREATE DATABASE {told['POSTGRES_DB']}'"
    alone = f"{programs}/postgres --single -D {told['PGDATA']} postgres"
    call(root, ["sh", "-c", f"{asked} | {alone}"], inside)
    own = machine.address("database")
    rules = machine.state / "volumes/postgresql/data/pg_hba.conf"
    rules.write_text(rules.read_text() + "host all all all scram-sha-256\n")
    return [f"{programs}/{service['command'][0]}", "-D", told["PGDATA"], "-h", own, *service["command"][1:]]


def _ours(service: dict[str, Any]) -> bool:
    return bool(service["image"] == "ldpkit")
