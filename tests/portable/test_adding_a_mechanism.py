"""docs/adding-a-mechanism.md: its edits, made to a copy of the repository, give a mechanism that passes."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.portable import npm
from tests.portable.platforms import REPOSITORY

BLOCK = re.compile(r"```(?:python|json)\n(?:#|//) ([^\n]*)\n(.*?)```", re.DOTALL)
EDIT = re.compile(r'(\S+), below "(.*)"')
COPIED = ("schemas", "ldp_client", "summaries", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "js", "golden", "collector", "node_modules")


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
        elif title.endswith(".py"):
            (root / title).write_text(text, encoding="utf-8")
    return root


def python(root, text):
    command = [sys.executable, "-c", text]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_exact_law_is_the_stated_one(blocks, copy):
    python(copy, dict(blocks)["check"])


def test_its_vectors_are_the_same_on_micropython(blocks, copy, tmp_path):
    text = dict(blocks)["vector"]
    here = json.loads(python(copy, text))
    assert {draw["bytes"] for draw in here} == {8}
    assert {draw["payload"] for draw in here} == {"00", "01", "02"}
    npm.install()
    assert json.loads(npm.node("micropython.mjs", copy, npm.MICROPYTHON, tmp_path, text)) == here


def test_reports_are_counted(copy):
    assert python(
        copy,
        "from summaries import summarize; from schemas import Study; from tests import studies\n"
        "from ldp_client import mechanism_for; from ldp_client.answering import perturb_answers\n"
        "m = {'name': 'truth_or_any', 'epsilon': '1'}\n"
        "study = Study(studies.document({**studies.CHOICE, 'mechanism': m}))\n"
        "mechanisms = {'occupation': mechanism_for(study.questions[0])}\n"
        "reports = [perturb_answers(study, mechanisms, {'occupation': 'worker'}) for _ in range(50)]\n"
        "print(summarize(study, reports).questions['occupation'].values.sum())",
    ).split() == ["50"]


def test_people_read_what_it_does(copy):
    said = python(
        copy,
        "from schemas import Study; from tests import studies; from ldp_client import mechanism_for\n"
        "m = {'name': 'truth_or_any', 'epsilon': '1'}\n"
        "study = Study(studies.document({**studies.CHOICE, 'mechanism': m}))\n"
        "print(mechanism_for(study.questions[0]).in_words())",
    )
    assert said == "The true answer is sent with probability 0.5761, else another one.\n"
