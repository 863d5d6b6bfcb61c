"""What `deploy/` says fits together: commands, options, settings, ports, files, and the check of it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from collector.settings import Settings, refuse_unknown_variables
from tests.deploy import building, composed
from tests.kit.commands import parsed
from tests.kit.errors import raises

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SERVICES = composed.SERVICES
OURS = {name: one for name, one in SERVICES.items() if one["image"] == "ldpkit"}
LAST = building.read()[-1]
UNITS = sorted((DEPLOY / "systemd").iterdir())
SCRIPTS = [DEPLOY / "install.sh", DEPLOY / "container" / "place.sh"]
PROXY = (DEPLOY / "container" / "nginx.conf").read_text()
PORT = "8000"


def unit(file):
    """A unit's settings, the last of each name."""
    return dict(re.findall(r"^(\w+)=(.*)$", file.read_text(), flags=re.M))


def served(words):
    """What `ldpkit serve` makes of a command line; raises an error for what it does not know."""
    return parsed([one.replace("%i", "8001") for one in words])


# The `ldpkit` command lines in a shell script.
CALLED = re.compile(r"(?<![\w./-])(?:\S*/)?ldpkit\"? ((?:init|token|migrate|backup|serve)\b[^|;&>)<\n]*)")


def test_compose_starts_commands_that_exist_with_options_that_they_have():
    starting = [one for one in OURS.values() if "entrypoint" not in one]
    assert len(starting) == 3
    for service in [*starting, {"command": LAST.last("CMD").words}]:
        said = served(map(str, service["command"]))
        assert (said["host"], said["port"]) == (composed.NOWHERE, int(PORT))
    assert LAST.last("ENTRYPOINT").words == ["ldpkit"]
    with pytest.raises((SystemExit, click.UsageError)):
        served(["serve", "--ports", "8000"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_valid_shell_and_call_commands_that_exist(script):
    text = script.read_text()
    shell = text.splitlines()[0].removeprefix("#!").split()[-1].rpartition("/")[2]
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(script, os.X_OK)
    called = [line for line in CALLED.findall(text) if not line.startswith("serve$")]
    assert {line.split()[0].strip('"') for line in called} >= {"init", "token"}
    for line in called:
        plain = line.replace('${database:+--database "$database"}', "--database x").replace('"$@"', "")
        plain = re.sub(r'"?\$\w+"?|\$\{\w+\}', "x", plain).replace("\\", "").rstrip('." ')
        assert parsed(shlex.split(plain)) is not None, line


def test_given_settings_exist():
    for service in OURS.values():
        given = {name: str(value) for name, value in service.get("environment", {}).items()}
        Settings.load({**given, "LDPKIT_CONFIG": ""})
        refuse_unknown_variables(given)
    with raises(Exception, "settings.unknown_variable"):
        refuse_unknown_variables({"LDPKIT_BODY_LIMITS": "10"})


def test_no_deployment_file_contains_secret():
    """Passwords, tokens and keys are named by files in a volume, and by nothing else."""
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASS|TOKEN|SECRET|KEY", name):
                assert str(value).startswith("/var/lib/ldpkit-secrets/"), name
        assert not re.search(r"://[^/@\s]+:[^/@\s]+@", " ".join(map(str, service.get("command", []))))
    copied = [step.text for stage in building.read() for step in stage.steps if step.word in ("COPY", "ENV")]
    assert not re.search("toml|secret|key|token", " ".join(copied))
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    assert len(ignored) == 4


def test_every_service_is_sealed():
    """Also, its files exist and its volumes are declared."""
    declared = yaml.safe_load(composed.FILE.read_text())["volumes"]
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["user"] == LAST.last("USER").text, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        outside = "outside" in service["networks"]
        assert outside == ("ports" in service), name
        assert {*service.get("depends_on", [])} <= SERVICES.keys(), name
        for source in (volume.split(":")[0] for volume in service.get("volumes", [])):
            exists = source == "./tls" or (DEPLOY / source).resolve().is_file()
            assert exists if source.startswith(".") else source in declared, source


def test_ports_and_names_agree():
    targets = set(re.findall(r"proxy_pass http://([\w-]+):(\d+);", PROXY))
    assert targets == {("collector", PORT), ("node-a", PORT), ("node-b", PORT)}
    (published,) = SERVICES["proxy"]["ports"]
    assert set(re.findall(r"listen (\d+)", PROXY)) == {published.split(":")[1]}
    watched = yaml.safe_load((DEPLOY / "container/prometheus.yml").read_text())
    (job,) = watched["scrape_configs"]
    assert job["static_configs"][0]["targets"] == [f"collector:{PORT}"]
    alerts = (ROOT / "docs/monitoring/alerts.yml").read_text()
    assert f'up{{job="{job["job_name"]}"}}' in alerts
    assert LAST.last("EXPOSE").text == PORT
    assert f"127.0.0.1:{PORT}/healthz" in LAST.last("HEALTHCHECK").text
    asked = json.loads(LAST.last("HEALTHCHECK").text.partition("CMD ")[2])
    for service in OURS.values():
        checked = service["healthcheck"]
        assert checked == {"disable": True} or checked["test"] == ["CMD", *asked]
    assert job["authorization"]["credentials_file"] == "/var/lib/ldpkit-secrets/prometheus"


def test_proxy_settings_match_guide():
    """The settings in deploy/nginx.conf have been measured; those of compose must not be laxer."""
    guide = (ROOT / "deploy/nginx.conf").read_text()
    # Compose's location gives a part of the path a name, and takes the same paths.
    proxy = PROXY.replace("(?P<study>[^/]+)", "[^/]+")
    own = {re.sub(r"\s*;.*", "", line).strip() for line in proxy.splitlines()}
    for line in guide.splitlines():
        said = re.sub(r"\s*;.*", "", line).strip()
        if re.match(r"(access_log|client_|send_|keepalive|proxy_(?!pass)|location)", said):
            assert said in own, said
    assert "X-Forwarded-For" not in PROXY
    assert re.search(r"error_log stderr emerg;", PROXY)
    assert not re.search(r"access_log (?!off)", PROXY)


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_systemd_units_are_valid_and_start_existing_commands(file, tmp_path):
    said = unit(file)
    program, *words = said["ExecStart"].split()
    assert program == "/opt/ldpkit/bin/ldpkit"
    arguments = served(words)
    assert arguments["host"] == "127.0.0.1"
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


def test_install_script_rejects_non_root_and_unknown_arguments(tmp_path):
    script = tmp_path / "install.sh"
    script.write_text((DEPLOY / "install.sh").read_text().replace("EUID == 0", "EUID == 12345"))
    for arguments, code, words in (
        (["install", "--from", "dist"], 1, "only root can install"),
        (["uninstall"], 2, "install.sh install --from DIST"),
        (["install", "--from"], 2, "install.sh install --from DIST"),
        ([], 2, "install.sh install --from DIST"),
    ):
        done = subprocess.run(["bash", str(script), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == code, arguments
        assert words in done.stderr


SECRETS = ("postgresql", "grafana", "prometheus")


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

    said = start("secrets")
    # A key that was made, and not written down before the container was ended.
    said += start("collector")
    (secrets / "prometheus").unlink()
    said += start("collector") + start("node")
    # A node whose first start was stopped before its address was noted.
    (node / "node.address").unlink()
    said += start("node")
    assert (node / "node.address").read_text().startswith("https://NODE#")
    made = contents()
    assert {file.name for file in made} >= {*SECRETS, "pgpass", "node.key", "ldpkit.toml"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in made)
    assert made[secrets / "pgpass"] == b"*:*:*:ldpkit:" + made[secrets / "postgresql"] + b"\n"
    for secret in (made[secrets / name].decode().strip() for name in SECRETS):
        assert len(secret) >= 40
        assert secret not in said
    for what in ("secrets", "collector", "node"):
        start(what)
    kept = contents()
    assert [file for file in made if "sqlite3" not in file.name and kept[file] != made[file]] == []


def test_an_upgrade_works_on_each_places_own_database():
    """A variable of the caller's environment used to win, so that one database was used for every place."""
    script = (ROOT / "deploy/install.sh").read_text()
    first = script[: script.index("has_systemd()")]
    # Only root may run a command as another.
    command = f'{first}\nrunuser() {{ shift 3; "$@"; }}\nas_owner / env'
    environment = {**os.environ, "LDPKIT_DATABASE": "sqlite:////another", "LDPKIT_CONFIG": "/another.toml"}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "HOME=/var/lib/ldpkit" in done.stdout.splitlines()
    assert "LDPKIT_" not in done.stdout


UNITS_OF_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def bytes_of(words):
    number, unit = re.fullmatch(r"(\d+)([kmg]?)", words).groups()
    return int(number) * UNITS_OF_BYTES[unit]


def most_of(block, zone):
    """How many bytes the requests of a zone may have together."""
    (number,) = re.findall(rf"limit_conn {zone} (\d+);", block)
    (size,) = re.findall(r"client_max_body_size (\w+);", block)
    return int(number) * bytes_of(size)


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
    size = bytes_of(re.search(r"size=(\w+)", folder)[1])
    assert bound <= size <= 2 * bound
    assert most_of(common, "each") * 10 < size
    # No other block that takes long bodies keeps them: it asks about the key, or is that question.
    others = [block for _, block in locations if "client_max_body_size" in block and block not in long_ones]
    assert all("auth_request /key;" in one or "proxy_pass_request_body off;" in one for one in others)
    exports = [block for name, block in locations if "/export$" in name]
    assert [block for block in exports if "proxy_max_temp_file_size 0;" in block] == exports != []


@pytest.mark.slow
@pytest.mark.needs("debootstrap", "openssl", "build")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can enter another Debian: sudo make machines")
def test_debian_roots_install_and_take_reports():
    """Containers and the install script for real: Debian roots, the Containerfile's own steps, a summary."""
    command = [sys.executable, "-m", "tests.deploy.check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("a summary", "the proxy", "both nodes", "Prometheus", "the install script"):
        assert f"{step}: " in done.stdout
