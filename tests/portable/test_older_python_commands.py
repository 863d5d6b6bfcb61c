"""The `ldpkit` command of the device library, on each Python that it has."""

import json
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests import studies
from tests.portable.platforms import REPOSITORY, interpreters, older_pythons

PYTHONS = [*older_pythons(), *interpreters("3.10"), Path(sys.executable)]
COMMAND = "import sys; from ldp_client.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What an installation writes about the package, without one: where other Pythons find it."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "ldp_client-0.dist-info"
    about.mkdir()
    (folder / "ldp_client").symlink_to(REPOSITORY / "ldp_client")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ldp-client\nVersion: 0\n")
    (about / "entry_points.txt").write_text(distribution("ldp-client").read_text("entry_points.txt"))
    return folder


@pytest.fixture
def ldpkit(installed, tmp_path):
    """A function interpreter, arguments → the finished command."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def run(interpreter, *arguments):
        command = [interpreter, "-c", COMMAND, *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize("interpreter", PYTHONS, ids=lambda path: path.name)
def test_a_gateways_commands_work(ldpkit, tmp_path, interpreter):
    study = tmp_path / "study.json"
    study.write_text(json.dumps(studies.document(studies.YES_NO, studies.CHOICE, **studies.ASKER)))
    (tmp_path / "answers.ndjson").write_text('{"ever": "yes", "occupation": "worker"}\n')
    checked = ldpkit(interpreter, "study", "check", study)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "epsilon 2 (their sum)" in checked.stdout
    done = ldpkit(interpreter, "perturb", study, "answers.ndjson", "--out", "reports.ndjson")
    assert (done.returncode, len((tmp_path / "reports.ndjson").read_text().splitlines())) == (0, 1)
    done = ldpkit(interpreter, "study", "check", "none.json")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    listed = ldpkit(interpreter, "--help").stdout
    assert "withdraw" in listed
    old = interpreter.name in ("python3.9", "python3.10")
    assert ("come with pip install ldpkit" in " ".join(listed.split()), "serve" in listed) == (old, not old)
