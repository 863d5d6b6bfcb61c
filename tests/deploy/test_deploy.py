"""What `deploy/` says fits together: commands, options, settings, ports, files, and the check of it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from collector.nodes.node import MOST_DRAWING_BYTES
from collector.settings import Settings, refuse_unknown_variables
from collector.studies import MOST_ORIGINS
from tests.deploy.containers import DEPLOY, IMAGE, SERVICES, instructions
from tests.kit.commands import parsed

ROOT = DEPLOY.parent
OURS = [service for service in SERVICES.values() if service["image"] == "ldpkit"]
UNITS = sorted((DEPLOY / "systemd").iterdir())
INSTALL = DEPLOY / "install.sh"
PROXY = (DEPLOY / "container" / "nginx.conf").read_text()


def test_compose_starts_commands_that_exist_with_options_that_they_have():
    starting = [service for service in OURS if "entrypoint" not in service]
    assert len(starting) == 3
    for service in [*starting, {"command": json.loads(IMAGE["CMD"])}]:
        options = parsed([*map(str, service["command"])])
        assert (options["host"], options["port"]) == ("0.0.0.0", 8000)
    assert json.loads(IMAGE["ENTRYPOINT"]) == ["ldpkit"]
    for service in OURS:
        given = {name: str(value) for name, value in service.get("environment", {}).items()}
        Settings.load({**given, "LDPKIT_CONFIG": ""})
        refuse_unknown_variables(given)
    targets = set(re.findall(r"proxy_pass http://([\w-]+):(\d+);", PROXY))
    assert targets == {("collector", "8000"), ("node-a", "8000"), ("node-b", "8000")}
    (job,) = yaml.safe_load((DEPLOY / "container/prometheus.yml").read_text())["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["collector:8000"]
    assert f'up{{job="{job["job_name"]}"}}' in (ROOT / "docs/monitoring/alerts.yml").read_text()


def test_install_script_calls_commands_that_exist():
    called = re.findall(r'/ldpkit"? ((?:init|token|migrate|backup)\b[^|;&>)<\n]*)', INSTALL.read_text())
    assert {line.split()[0].strip('"') for line in called} == {"init", "token", "migrate", "backup"}
    for line in called:
        plain = line.replace('${database:+--database "$database"}', "--database x")
        plain = re.sub(r'"?\$\w+"?', "x", plain).replace("\\", "").rstrip('." ')
        assert parsed(shlex.split(plain)) is not None, line


def test_no_deployment_file_contains_secret():
    """Passwords, tokens and keys are named by files in a volume, and by nothing else."""
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASS|TOKEN|SECRET|KEY", name):
                assert str(value).startswith("/var/lib/ldpkit-secrets/"), name
        assert not re.search(r"://[^/@\s]+:[^/@\s]+@", " ".join(map(str, service.get("command", []))))
    copied = [text for word, text in instructions() if word in ("COPY", "ENV")]
    assert not re.search("toml|secret|key|token", " ".join(copied))
    assert (DEPLOY / "Containerfile.dockerignore").read_text().split()[0] == "*"


def test_every_service_is_sealed():
    """Also, its files exist and its volumes are declared."""
    declared = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["volumes"]
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["user"] == IMAGE["USER"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        outside = "outside" in service["networks"]
        assert outside == ("ports" in service), name
        assert {*service.get("depends_on", [])} <= SERVICES.keys(), name
        for source in (volume.split(":")[0] for volume in service.get("volumes", [])):
            exists = source == "./tls" or (DEPLOY / source).resolve().is_file()
            assert exists if source.startswith(".") else source in declared, source


@pytest.mark.processes
@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_systemd_units_are_valid_and_start_existing_commands(file, tmp_path):
    said = dict(re.findall(r"^(\w+)=(.*)$", file.read_text(), flags=re.M))
    program, *words = said["ExecStart"].replace("%i", "8001").split()
    assert program == "/opt/ldpkit/bin/ldpkit"
    assert parsed(words)["host"] == "127.0.0.1"
    assert said["WorkingDirectory"] == f"/var/lib/{said['StateDirectory']}"
    assert said["User"] == "ldpkit"
    assert {"ProtectSystem": "strict", "NoNewPrivileges": "yes", "UMask": "0077"}.items() <= said.items()
    if shutil.which("systemd-analyze"):
        # It looks for the program, and for the unit's own name.
        copied = tmp_path / file.name.replace("@", "@8001")
        copied.write_text(file.read_text().replace(program, "/bin/true"))
        command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copied)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
def test_install_script_rejects_non_root_and_unknown_arguments(tmp_path):
    script = tmp_path / "install.sh"
    script.write_text(INSTALL.read_text().replace("EUID == 0", "EUID == 12345"))
    for arguments, code, words in (
        (["install", "--from", "dist"], 1, "only root can install"),
        (["uninstall"], 2, "install.sh install --from DIST"),
        (["install", "--from"], 2, "install.sh install --from DIST"),
    ):
        done = subprocess.run(["bash", str(script), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == code, arguments
        assert words in done.stderr


@pytest.mark.slow
def test_a_container_makes_its_secrets_once_for_itself_alone_and_prints_none(tmp_path):
    programs, secrets, place, node = (tmp_path / name for name in ("bin", "secrets", "place", "node"))
    for folder in (programs, secrets, place, node):
        folder.mkdir()
    command = programs / "ldpkit"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ldpkit "$@"\n')
    command.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PLACE_SECRETS": str(secrets), "PYTHONPATH": str(ROOT)}

    def start(what):
        """Run place.sh as a container's first start would; what it prints."""
        script, folder = DEPLOY / "container" / "place.sh", node if what == "node" else place
        done = subprocess.run(
            [script, what], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def contents():
        return {file: file.read_bytes() for folder in (place, secrets, node) for file in folder.iterdir()}

    said = start("secrets") + start("collector")
    # A key that was made, and not written down before the container was ended.
    (secrets / "prometheus").unlink()
    said += start("collector") + start("node")
    assert (node / "node.address").read_text().startswith("https://NODE#")
    made = contents()
    names = ("postgresql", "grafana", "prometheus")
    assert {file.name for file in made} >= {*names, "pgpass", "node.key", "ldpkit.toml"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in made)
    assert made[secrets / "pgpass"] == b"*:*:*:ldpkit:" + made[secrets / "postgresql"] + b"\n"
    for secret in (made[secrets / name].decode().strip() for name in names):
        assert len(secret) >= 40
        assert secret not in said
    for what in ("secrets", "collector", "node"):
        start(what)
    kept = contents()
    assert [file for file in made if "sqlite3" not in file.name and kept[file] != made[file]] == []


@pytest.mark.processes
def test_an_upgrade_works_on_each_places_own_database():
    """A variable of the caller's environment used to win, so that one database was used for every place."""
    script = INSTALL.read_text()
    first = script[: script.index("has_systemd()")]
    # Only root may run a command as another.
    command = f'{first}\nrunuser() {{ shift 3; "$@"; }}\nas_owner / env'
    environment = {**os.environ, "LDPKIT_DATABASE": "sqlite:////another", "LDPKIT_CONFIG": "/another.toml"}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "HOME=/var/lib/ldpkit" in done.stdout.splitlines()
    assert "LDPKIT_" not in done.stdout


def longest_body(block):
    """The bytes of the longest body that a block lets through."""
    return int(re.search(r"client_max_body_size (\d+)m;", block)[1]) << 20


def most_of(block, zone):
    """How many bytes the requests of a zone may have together."""
    return int(re.search(rf"limit_conn {zone} (\d+);", block)[1]) * longest_body(block)


@pytest.mark.parametrize("name", ["nginx.conf", "container/nginx.conf"])
def test_proxies_take_bodies_and_headers_and_note_nothing(name):
    text = (DEPLOY / name).read_text()
    blocks = dict(re.findall(r"location ~ (\S+) \{([^}]*)\}", text))
    (closing,) = {pattern for pattern in blocks if pattern.endswith("/sum$")}
    assert re.search(closing, "/v1/studies/commute/sum")
    assert not re.search(closing, "/v1/studies/habits/shares/sum")
    assert longest_body(blocks[closing]) >= MOST_DRAWING_BYTES
    assert longest_body(text) >= Settings.body_limit
    # Pages name the issuers of all studies in a header.
    kilobytes = int(re.search(r"proxy_buffer_size (\d+)k;", text)[1])
    assert kilobytes << 10 >= 4 * MOST_ORIGINS
    assert f"proxy_buffers 4 {kilobytes}k;" in text
    timeouts = re.findall(r"client_(?:header|body)_timeout (\d+)s;", text.partition("location")[0])
    assert max(map(int, timeouts)) <= 10
    assert "proxy_request_buffering on;" in text
    assert re.search(r"access_log off;", text)
    assert not re.search(r"access_log (?!off)|X-Forwarded-For|error_log \S+ (?!emerg)", text)


@pytest.mark.attack(15)
def test_concurrent_bodies_fit_into_the_proxy_folder():
    """Someone fills the proxy's memory with requests that never end, or with unread exports."""
    locations = re.findall(r"location ([^{]*)\{([^}]*)\}", PROXY)
    common = re.sub(r"location [^{]*\{[^}]*\}", "", PROXY)
    long_ones = [block for _, block in locations if "limit_conn closings" in block]
    assert len(long_ones) == 2
    # Each node has places of its own.
    bound = most_of(common, "all") + sum(most_of(block, "closings") for block in long_ones)
    (folder,) = SERVICES["proxy"]["tmpfs"]
    size = int(re.search(r"size=(\d+)m", folder)[1]) << 20
    assert bound <= size <= 2 * bound
    assert most_of(common, "each") * 10 < size
    # No other block that takes long bodies keeps them: it asks about the key, or is that question.
    others = [block for _, block in locations if "client_max_body_size" in block and block not in long_ones]
    assert all("auth_request /key;" in one or "proxy_pass_request_body off;" in one for one in others)
    exports = [block for name, block in locations if "/export$" in name]
    assert [block for block in exports if "proxy_max_temp_file_size 0;" in block] == exports != []


@pytest.mark.slow
@pytest.mark.needs("debootstrap", "openssl", "build", "curl")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can enter another Debian: sudo make machines")
def test_debian_roots_install_and_take_reports():
    """Containers and the install script for real: Debian roots, the Containerfile's own steps, a summary."""
    command = [sys.executable, "-m", "tests.deploy.check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
