"""docs/adding-a-mechanism.md: its edits, made to a copy of the repository, run it from device to page."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests import studies
from tests.portable import npm
from tests.portable.platforms import REPOSITORY

BLOCK = re.compile(r"```(?:python|json|js)\n(?:#|//) ([^\n]*)\n(.*?)```", re.DOTALL)
EDIT = re.compile(r'(\S+), below "(.*)"')
COPIED = ("schemas", "ldp_client", "js", "summaries", "inference", "collector", "ldpkit", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "golden", "collector", "node_modules")

# What `make schemas` does for a board: ldp_client/package.json lists the new file too.
BOARD = "from schemas.board import write; write()"
STUDY = """
from ldp_client import mechanism_for
from schemas import Study
from tests import studies

own = {"mechanism": {"name": "truth_or_any", "epsilon": "1"}}
m = mechanism_for(Study(studies.document({**studies.CHOICE, **own})).questions[0])
"""


@pytest.fixture(scope="module")
def blocks():
    return BLOCK.findall((REPOSITORY / "docs" / "adding-a-mechanism.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def copy(blocks, tmp_path_factory):
    """A copy of the repository with the page's new file and edits."""
    root = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        shutil.copytree(REPOSITORY / name, root / name, ignore=LEFT_OUT)
    for title, text in blocks:
        edit = EDIT.fullmatch(title)
        if edit:
            file, anchor = root / edit[1], f"\n{edit[2]}\n"
            before = "\n" + file.read_text(encoding="utf-8")
            assert before.count(anchor) == 1
            file.write_text(before.replace(anchor, anchor + text)[1:], encoding="utf-8")
        elif title.endswith((".py", ".js")):
            (root / title).write_text(text, encoding="utf-8")
    return root


def python(root, text):
    command = [sys.executable, "-c", text]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_new_mechanisms_exact_law_is_the_stated_one(blocks, copy):
    python(copy, dict(blocks)["check"])


@pytest.fixture(scope="module")
def draws(blocks, copy):
    found = json.loads(python(copy, dict(blocks)["vector"]))
    assert {draw["bytes"] for draw in found} == {8}
    assert {draw["payload"] for draw in found} == {"00", "01", "02"}
    return found


def test_new_mechanisms_vectors_match_on_micropython(blocks, copy, draws, tmp_path):
    npm.install()
    python(copy, BOARD)
    text = dict(blocks)["vector"]
    assert json.loads(npm.node("micropython.mjs", copy, npm.MICROPYTHON, tmp_path, text)) == draws


def test_browser_needs_only_the_new_sampler(copy, draws, tmp_path):
    python(copy, "from schemas.javascript import write; write()")
    study = studies.document({**studies.CHOICE, "mechanism": {"name": "truth_or_any", "epsilon": "1"}})
    study["questions"][0]["choices"] = ["red", "green", "blue"]
    integers = {"threshold": python(copy, STUDY + "print(m.threshold)").strip()}
    vectors = {"studies": {"colour": {"study": study, "integers": integers}}, "draws": draws}
    (tmp_path / "truth_or_any.json").write_text(json.dumps(vectors))
    port = copy / "js" / "index.js"
    found = json.loads(npm.node("run_vectors.mjs", port, tmp_path, "truth_or_any"))
    assert found == {"truth_or_any": []}
    vectors["draws"][0]["payload"] = "03"
    (tmp_path / "truth_or_any.json").write_text(json.dumps(vectors))
    assert json.loads(npm.node("run_vectors.mjs", port, tmp_path, "truth_or_any"))["truth_or_any"]


PIPELINE = """
import contextlib, io, json, random
from pathlib import Path
from ldpkit.cli import main
from tests import studies
from tests.ldp_client.devices import consenting

own = {"mechanism": {"name": "truth_or_any", "epsilon": "2"}}
document = studies.document({**studies.CHOICE, **own})
Path("study.json").write_text(json.dumps(document))
drawn = random.Random(1).choices(["student", "worker", "teacher"], [6, 3, 1], k=3000)
Path("answers.ndjson").write_text("".join(json.dumps({"occupation": one}) + "\\n" for one in drawn))
assert main(["perturb", "study.json", "answers.ndjson", "--out", "reports.ndjson"]) == 0

from schemas import Study
device = consenting("phone", "4")
device.answer(Study(document), {"occupation": "worker"})
(queued,) = device.ledger.queued()
with open("reports.ndjson", "a") as file:
    file.write(queued.body + "\\n")

assert main(["summarize", "study.json", "reports.ndjson", "--out", "summary.json"]) == 0
assert main(["fit", "study.json", "summary.json", "--out", "fit", "--method", "gaussian_approx"]) == 0
page = Path("fit/report.html").read_text()
assert "truth_or_any" in page and "The true answer is sent with probability" in page
found = json.loads(Path("fit/posterior.json").read_text())["questions"]["occupation"]
assert found["n"] == 3001
middle = found["parameters"]["p[student]"]
assert abs(middle["mean"] - 0.6) < 5 * middle["sd"] < 0.25, middle
"""


def test_new_mechanism_works_from_device_to_report_page(copy):
    python(copy, PIPELINE)


def test_new_mechanism_has_a_description(copy):
    said = python(copy, STUDY + "from ldp_client.explain import in_words; print(in_words(m))")
    assert said == "The true answer is sent with probability 0.5761, else another one.\n"


AUDIT = """
from tests.privacy.checks.auditing import audit_mechanism

for count in (3, 1000):
    question = Study(studies.document({**studies.CHOICE, **own, "choices": {"count": count}})).questions[0]
    found = audit_mechanism(mechanism_for(question), question, 20000, None)
    assert len(found.checks) > 3
    print(*[check.name for check in found.checks if not check.passed], sep="\\n", end="")
    (coin,) = [check for check in found.checks if "coin is exactly" in check.name]
    assert coin.made and coin.detail.endswith(f", or else any of {count} choices"), coin.detail
    m = mechanism_for(question)
    m.threshold += 2
    wrong = [check.name for check in audit_mechanism(m, question, 20000, None).checks if not check.passed]
    assert "the sampler's coin is exactly p" in wrong, wrong
"""


def test_audit_passes_the_new_mechanism(copy):
    """The coin decides between the truth and a uniform choice: p is not the coin's probability."""
    assert not python(copy, STUDY + AUDIT)
