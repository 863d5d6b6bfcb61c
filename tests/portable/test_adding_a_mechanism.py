"""docs/adding-a-mechanism.md: its edits, made to a copy of the repository, run it from device to page."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests import studies
from tests.kit.programs import output_of
from tests.portable.npm import REPOSITORY

BLOCK = re.compile(r"```(?:python|json|js)\n(?:#|//) ([^\n]*)\n(.*?)```", re.DOTALL)
EDIT = re.compile(r'(\S+), below "(.*)"')
COPIED = ("schemas", "ldp_client", "js", "summaries", "inference", "collector", "ldpkit", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "fits", "collector", "node_modules")
BLOCKS = dict(BLOCK.findall((REPOSITORY / "docs" / "adding-a-mechanism.md").read_text(encoding="utf-8")))
STUDY = """
from ldp_client import mechanism_for
from ldp_client.explain import in_words
from schemas import Study
from schemas.javascript import write
from tests import studies

own = {"mechanism": {"name": "truth_or_any", "epsilon": "1"}}
m = mechanism_for(Study(studies.document({**studies.CHOICE, **own})).questions[0])
assert in_words(m) == "The true answer is sent with probability 0.5761, else another one."
write()
print(m.threshold)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository with the page's new files and edits."""
    root = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        shutil.copytree(REPOSITORY / name, root / name, ignore=LEFT_OUT)
    for title, text in BLOCKS.items():
        if edit := EDIT.fullmatch(title):
            file, anchor = root / edit[1], f"\n{edit[2]}\n"
            before = "\n" + file.read_text(encoding="utf-8")
            assert before.count(anchor) == 1
            file.write_text(before.replace(anchor, anchor + text)[1:], encoding="utf-8")
        elif title.endswith((".py", ".js")):
            (root / title).write_text(text, encoding="utf-8")
    return root


def python(root, text):
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return output_of(sys.executable, "-c", text, cwd=root, env=environment)


@pytest.mark.slow
@pytest.mark.needs("node")
def test_new_mechanism_has_its_stated_law_and_the_same_bytes_in_javascript(copy):
    """JavaScript needs only the new sampler. A changed payload is found."""
    *_, drawn, threshold = python(copy, BLOCKS["check"] + BLOCKS["vector"] + STUDY).splitlines()
    draws = json.loads(drawn)
    assert {draw["payload"] for draw in draws} == {"00", "01", "02"}
    study = studies.document({**studies.CHOICE, "mechanism": {"name": "truth_or_any", "epsilon": "1"}})
    study["questions"][0]["choices"] = ["red", "green", "blue"]
    vectors = {"studies": {"colour": {"study": study, "integers": {"threshold": threshold}}}, "draws": draws}
    for payload, status in ((draws[0]["payload"], 0), ("03", 1)):
        draws[0]["payload"] = payload
        (copy / "tests/golden/vectors/truth_or_any.json").write_text(json.dumps(vectors))
        done = subprocess.run(
            ["node", "vectors.test.mjs"], cwd=copy / "tests/js", capture_output=True, check=False
        )
        assert done.returncode == status, done.stdout


PIPELINE = """
import json, random
from pathlib import Path
from ldp_client import mechanism_for
from ldpkit.cli import main
from schemas import Study
from tests import studies
from ldpkit.auditing.auditing import audit_mechanism

own = {"mechanism": {"name": "truth_or_any", "epsilon": "2"}}
document = studies.document({**studies.CHOICE, **own})
Path("study.json").write_text(json.dumps(document))
drawn = random.Random(1).choices(["student", "worker", "teacher"], [6, 3, 1], k=3000)
Path("answers.csv").write_text("\\n".join(["occupation", *drawn]))
assert main(["perturb", "study.json", "answers.csv", "--out", "reports.ndjson"]) == 0
assert main(["summarize", "study.json", "reports.ndjson", "--out", "summary.json"]) == 0
assert main(["fit", "study.json", "summary.json", "--out", "fit", "--method", "gaussian_approx"]) == 0
page = Path("fit/report.html").read_text()
assert "truth_or_any" in page and "The true answer is sent with probability" in page
found = json.loads(Path("fit/posterior.json").read_text())["questions"]["occupation"]
middle = found["parameters"]["p[student]"]
assert abs(middle["mean"] - 0.6) < 5 * middle["sd"] < 0.25, middle

# A mechanism that tells the truth more often than its p says fails.
question = Study(studies.document({**studies.CHOICE, **own, "choices": {"count": 3}})).questions[0]
mechanism = mechanism_for(question)
audited = lambda: audit_mechanism(mechanism, question, 20000).checks
failed = lambda: [one.name for one in audited() if not one.passed]
assert failed() == []
mechanism.threshold += 1 << 28
assert "supported choices follow the stated law" in failed()
"""


@pytest.mark.slow
def test_new_mechanism_works_from_device_to_report_page_and_is_audited(copy):
    python(copy, PIPELINE)
