"""The Containerfile and compose.yaml in Debian roots, for machines without a container engine.

A service's name is an address of the loopback, and a volume is a folder.
"""

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.roots import PATH, Inside, call, copy, run, running

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
START_SECONDS = 60


def instructions() -> list[tuple[str, str]]:
    """The Containerfile's instructions: a word, and the rest of its text."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Containerfile").read_text("utf-8"), flags=re.M)
    lines = filter(None, map(str.strip, text.replace("\\\n", "").splitlines()))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


# Of each word the last instruction, which holds for the image.
IMAGE = dict(instructions())


def pairs(text: str) -> dict[str, str]:
    """NAME=value words as names and values."""
    return {name: value for name, _, value in (word.partition("=") for word in text.split())}


def build(folder: Path, base: Path, context: Path, pip: Inside) -> Path:
    """Run every step of the Containerfile. Return the last stage's root.

    Args:
        folder: gets a root for each stage.
        base: a Debian root, which stands for the image that every stage begins with.
        context: the folder that COPY reads.
        pip: how pip reaches packages.
    """
    root, roots, variables = base, dict[str, Path](), dict[str, str]()
    for word, text in instructions():
        if word == "FROM":
            name = text.partition(" AS ")[2] or "image"
            root = roots[name] = copy(base, folder / name)
            variables = {"PATH": PATH}
        elif word in ("ARG", "ENV"):
            variables |= pairs(text)
        elif word == "RUN":
            call(root, ["/bin/sh", "-c", text], Inside({**pip.environment, **variables}, pip.binds))
        elif word == "COPY":
            options = pairs(" ".join(re.findall(r"--(\S+)", text)))
            *names, target = [path for path in text.split() if not path.startswith("--")]
            source, into = roots.get(options.get("from", ""), context), root / target.lstrip("/")
            for path in [path for name in names for path in sorted(source.glob(name.lstrip("/")))]:
                copied = into / path.name if target.endswith("/") else into
                copied.parent.mkdir(parents=True, exist_ok=True)
                if path.is_dir():
                    shutil.copytree(path, copied, symlinks=True, dirs_exist_ok=True)
                else:
                    shutil.copy(path, copied)
                    os.chmod(copied, int(options.get("chmod", "0644"), 8))
    return root


@dataclass(frozen=True)
class Machine:
    """Where services run.

    Attributes:
        own: the root of our image.
        other: the root that stands for all other images.
        state: a folder for volumes and logs.
        tls: the folder that stands for ./tls.
    """

    own: Path
    other: Path
    state: Path
    tls: Path

    def write_hosts(self) -> None:
        """Write /etc/hosts of both roots, as an engine's name service would answer."""
        hosts = [f"{self.address(name)} {name}" for name in SERVICES]
        hosts += [f"{self.address('proxy')} {name}.example.org" for name in ("collector", "node-a", "node-b")]
        for root in (self.own, self.other):
            (root / "etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")

    def address(self, name: str) -> str:
        """Where a service listens, of loopback: all may have the ports that they are known by."""
        return f"127.0.19.{1 + [*SERVICES].index(name)}"

    def call(self, name: str, *command: str) -> str:
        """What a service prints that makes something and ends; or another command in its place."""
        return call(self._root(name), [*command] or self._command(name), self._inside(name))

    @contextmanager
    def up(self) -> Iterator[None]:
        """Have the services running, each once those that it waits for have ended or listen."""
        with ExitStack() as stack:
            self.call("secrets")
            stack.enter_context(self._running("database", 5432, self._start_postgresql()))
            for name in ("collector", "node-a", "node-b"):
                self.call(f"{name}-first")
                stack.enter_context(self._running(name, 8000, self._command(name)))
            stack.enter_context(self._running("proxy", 8443, self._command("proxy")))
            yield

    @contextmanager
    def _running(self, name: str, port: int, command: list[str]) -> Iterator[None]:
        log, deadline = self.log(name), time.monotonic() + START_SECONDS
        with running(self._root(name), command, self._inside(name), log):
            while socket.socket().connect_ex((self.address(name), port)):
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.1)
            yield

    def log(self, name: str) -> Path:
        """What a service has said."""
        return self.state / f"{name}.log"

    def _root(self, name: str) -> Path:
        return self.own if SERVICES[name]["image"] == "ldpkit" else self.other

    def _command(self, name: str) -> list[str]:
        """Its entry point and its command; it listens on its own address alone, and not on all."""
        service = SERVICES[name]
        entry = service.get("entrypoint") or json.loads(IMAGE["ENTRYPOINT"])
        command = [*map(str, [*entry, *service.get("command", [])])]
        return [self.address(name) if word == "0.0.0.0" else word for word in command]

    def _inside(self, name: str) -> Inside:
        """How it runs: as compose.yaml says, and nothing more."""
        service = SERVICES[name]
        is_own = service["image"] == "ldpkit"
        given = {key: str(value) for key, value in service.get("environment", {}).items()}
        return Inside(
            environment={**(pairs(IMAGE["ENV"]) if is_own else {}), **given},
            binds=dict(map(self._bind, service.get("volumes", []))),
            tmpfs=service.get("tmpfs", ()),
            user=service["user"],
            folder=IMAGE["WORKDIR"] if is_own else "/",
            sealed=service["read_only"],
        )

    def _bind(self, volume: str) -> tuple[str, Path]:
        source, target, *mode = volume.split(":")
        if source == "./tls":
            found = self.tls
        elif source.startswith("."):
            # The proxy's settings, but that it listens on one address alone.
            found = self.state / Path(source).name
            text = (DEPLOY / source).read_text(encoding="utf-8")
            found.write_text(text.replace("listen 8443", f"listen {self.address('proxy')}:8443"))
        else:
            found = self.state / "volumes" / source
            if not found.exists():
                # A new volume has the owner and mode of what the image has there.
                found.mkdir(parents=True)
                original = self.own / target.lstrip("/")
                run(["chown", f"--reference={original}", str(found)])
                run(["chmod", f"--reference={original}", str(found)])
        return ":".join([target, *mode]), found

    def _start_postgresql(self) -> list[str]:
        """The database's command, by Debian's PostgreSQL; its cluster is made as the image would make it."""
        root, inside, service = self.other, self._inside("database"), SERVICES["database"]
        told = inside.environment
        programs = str(sorted((root / "usr/lib/postgresql").glob("*/bin"))[-1]).removeprefix(str(root))
        call(root, ["groupadd", "--gid", "10001", "ldpkit"])
        call(root, ["useradd", "--uid", "10001", "--gid", "10001", "ldpkit"])
        first = [f"{programs}/initdb", "-D", told["PGDATA"], "-U", told["POSTGRES_USER"]]
        first += [f"--pwfile={told['POSTGRES_PASSWORD_FILE']}", *told["POSTGRES_INITDB_ARGS"].split()]
        call(root, first, inside)
        alone = f"{programs}/postgres --single -D {told['PGDATA']} postgres"
        call(root, ["sh", "-c", f"echo 'CREATE DATABASE {told['POSTGRES_DB']}' | {alone}"], inside)
        rules = self.state / "volumes/postgresql/data/pg_hba.conf"
        rules.write_text(rules.read_text() + "host all all all scram-sha-256\n")
        postgres, *options = service["command"]
        return [f"{programs}/{postgres}", "-D", told["PGDATA"], "-h", self.address("database"), *options]
