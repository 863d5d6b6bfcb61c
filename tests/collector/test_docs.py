"""The statements of docs/operate.md are true, and so is what problems advise."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields

import pytest

from collector import problems
from collector.settings import Settings
from ldp_client.device.requests import FINAL
from tests.kit.collectors import REPOSITORY
from tests.kit.commands import parsed

TEXT = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")


def test_page_names_every_setting():
    """tests/test_site.py compares the page that has their defaults."""
    section = TEXT.split("## Settings\n")[1].split("\n#")[0]
    assert {field.name for field in fields(Settings)} <= set(re.findall(r"`(\w+)`", section))


def test_every_documented_command_parses():
    lines = re.findall(r"^(?:LDPKIT_\S+ |ExecStart=\S*/)?ldpkit ([^#\n]+)", TEXT, re.MULTILINE)
    commands = [shlex.split(line) for line in lines]
    assert {command[0] for command in commands} >= {"serve", "keys", "backup", "export"}
    for command in commands:
        if command[0] not in ("answer", "fit", "check", "keygen", "sign"):
            assert parsed(command) is not None


SHIM = """#!/bin/sh
# The page's port may be in use here, and nobody sits at a terminal: nothing else of it is changed.
case "$1" in
  serve) set -- "$@" --port {port} ;;
  export) set -- "$@" --collector http://127.0.0.1:{port} ;;
  delete) set -- "$@" --yes --collector http://127.0.0.1:{port} ;;
  publish|status|close|open|invite|keys|upkeep)
    set -- "$@" --collector http://127.0.0.1:{port} ;;
  answer) set -- "$@" --yes ;;
esac
exec {python} -m ldpkit "$@"
"""
SESSION = ("On a laptop", "Keys", "Tickets", "How long reports are kept", "Backups, deletion")


def session_lines(heading):
    """Return the lines of a section's shell block."""
    section = re.split(r"\n##+ ", TEXT.split(f"## {heading}\n")[1])[0]
    return "".join(re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL))


def run_beside_a_server(script, options):
    """Run a shell script while a server runs; return what it prints."""
    with subprocess.Popen(["sh", "-c", "exec ldpkit serve"], stderr=subprocess.PIPE, **options) as server:
        try:
            assert "listens on" in server.stderr.readline()
            done = subprocess.run(["sh", "-exc", script], capture_output=True, check=False, **options)
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.needs("curl")
def test_documented_session_runs_as_written(tmp_path, port):
    """An empty folder, two terminals, and every line of these sections in their order."""
    shim = tmp_path / "bin" / "ldpkit"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(port=port, python=sys.executable))
    shim.chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    (place / "people.csv").write_text("name\nAda\nBo\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LDPKIT_")}
    environment |= {"PATH": f"{shim.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    environment["PYTHONPATH"] = str(REPOSITORY)
    first, rest = session_lines(SESSION[0]).split("ldpkit serve\n")
    assert first == "pip install 'ldpkit[collector]'\nldpkit init\n"
    script = rest + "".join(map(session_lines, SESSION[1:]))
    script = script.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{port}")
    options = {"cwd": place, "env": environment, "text": True}
    subprocess.run(["sh", "-ec", "ldpkit init"], check=True, capture_output=True, **options)
    said = run_beside_a_server(script, options)
    assert "\nreports\t1\n" in said
    assert "1 report of habits deleted" in said
    # The session ends with the study's deletion: nobody is invited to that.
    restore = "ldpkit restore backup-1.sqlite3"
    assert f"run `{restore}`" in TEXT
    subprocess.run(["sh", "-ec", restore], check=True, capture_output=True, **options)
    (place / "ldpkit.toml").unlink()
    making = session_lines("If `ldpkit.toml` is lost")
    # The session ended with a study that everybody may answer.
    inviting = "ldpkit invite habits --count 1 --out one.csv\n"
    inviting += "ldpkit invite habits --revoke-all\nldpkit invite habits --count 500\n"
    subprocess.run(["sh", "-exc", making], capture_output=True, check=True, **options)
    said = run_beside_a_server(f'export LDPKIT_TOKEN="$(ldpkit token)"\n{inviting}ldpkit status', options)
    assert said.count("\n") == 502
    assert "habits\tversion 1\t… to …\t1 report\n" in said
    assert (place / "ldpkit.toml").stat().st_mode & 0o077 == 0
    assert (place / "backup-1.sqlite3").stat().st_mode & 0o077 == 0


def test_problems_match_their_table_and_device_behaviour():
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    for status in {kind.status for kind in kinds if kind.retry_after is not None} - {425}:
        assert f"| {status}, `Retry-After` |" in TEXT
    final = [kind for kind in kinds if "drop" in kind.advice.lower()]
    assert {kind.name for kind in final} == set(FINAL)
    assert all("if `digest` is" in kind.advice for kind in final)
