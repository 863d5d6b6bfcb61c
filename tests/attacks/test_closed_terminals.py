"""The terminal of a command that draws noise is closed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests import studies

HANGS_UP = """
import os, signal, sys, time
from pathlib import Path
from ldpkit import cli
from ldp_client.files import batch

perturb_people = batch.perturb_people

def hung_up(*given, **named):
    signal.raise_signal(signal.SIGHUP)
    time.sleep(300 if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else 0)
    return perturb_people(*given, **named)

batch.perturb_people = hung_up
sys.exit(cli.main(["perturb", "study.json", "answers.csv", "--out", "reports"]))
"""


@pytest.mark.parametrize(("prefix", "code"), [([], 129), (["nohup"], 0)])
def test_closing_the_terminal_leaves_no_partial_reports(tmp_path, prefix, code):
    """Partial reports of two runs together would leak more; under nohup the run continues."""
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO)))
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    # The tests themselves may run under nohup.
    command = ["env", "--default-signal=HUP", *prefix, sys.executable, "-c", HANGS_UP]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"study.json", "answers.csv", "nohup.out"}
    assert left == ({"reports"} if prefix else set())
