"""Names have letters that standard output cannot encode, as on some systems: no traceback."""

import json
import subprocess
import sys

import pytest

from schemas import Study
from tests import studies

REGION = {"id": "region", "choices": ["睡眠", "Żywiec", "é"]}
STUDY = Study({**studies.document(studies.YES_NO, public=[REGION]), "title": "睡眠 é"})


def run(folder, *command, encoding):
    """A command in a process of its own, where standard output has that encoding."""
    (folder / "study.json").write_text(STUDY.to_json(), "utf-8")
    call = [sys.executable, "-m", "ldpkit.cli", *command]
    return subprocess.run(
        call, cwd=folder, env={"PYTHONIOENCODING": encoding, **paths()}, capture_output=True, check=False
    )


def paths():
    return {"PYTHONPATH": ":".join(one for one in sys.path if one), "HOME": "/nonexistent"}


@pytest.mark.parametrize(
    ("encoding", "title"), [("cp1252", r"\u7761\u7720 é"), ("ascii", r"\u7761\u7720 \xe9")]
)
def test_title_is_printed_with_escapes(tmp_path, encoding, title):
    done = run(tmp_path, "check", "study.json", encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert title in done.stdout.decode(encoding)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_reports_on_standard_output_are_utf_8(tmp_path, encoding):
    """Escapes would change the labels or break the JSON."""
    people = [{"ever": True, "region": region} for region in REGION["choices"]]
    (tmp_path / "answers.ndjson").write_text("".join(json.dumps(one) + "\n" for one in people), "utf-8")
    done = run(tmp_path, "perturb", "study.json", "answers.ndjson", "--out", "-", encoding=encoding)
    assert done.returncode == 0
    reports = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
    assert [report["public"]["region"] for report in reports] == REGION["choices"]


@pytest.mark.slow
def test_issuer_prints_names_in_utf_8(tmp_path):
    def issuer(*command):
        done = run(tmp_path, "issuer", *command, encoding="ascii")
        assert done.returncode == 0, done.stderr
        return done.stdout.decode("utf-8")

    issuer("init", ".", "--address", "https://issuer.example")
    stated = json.loads(issuer("key", "habits", "--public", "region=睡眠"))
    assert stated["tokens"]["keys"][0]["public"] == {"region": "睡眠"}
    (tmp_path / "people.csv").write_text("name,region\nŻaneta,睡眠\n", "utf-8")
    assert "\nŻaneta,睡眠," in issuer("invite", "habits", "--names", "people.csv", "--out", "-")
