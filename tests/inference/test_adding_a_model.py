"""docs/adding-a-model.md: its edits, made to a copy of the repository, give a model that is fitted."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n# ([^\n]*)\n(.*?)```", re.DOTALL)
EDIT = re.compile(r'(\S+), below "(.*)"')
FITTED = """
from dataclasses import replace
import numpy as np
from inference.design.calibration import prior_truths
from inference.design.simulation import simulate
from inference.fitting import fit_question
from inference.models import model_for
from ldp_client import mechanism_for
from schemas import Study

question = {
    "id": "flood", "ask": "number", "bounds": ["0", "10"],
    "mechanism": {"name": "laplace", "epsilon": "8"},
    "model": {"name": "logistic", "prior": {"loc": {"distribution": "normal", "loc": "4", "scale": "1"}}},
}
head = {"format": "ldpkit.study/1", "id": "survey", "version": 1, "title": "A survey"}
study = Study({**head, "questions": [question]})
question = study.questions[0]
truth = replace(prior_truths(question, 1, seed=2)[0], parameters={"loc": 4.0, "scale": 1.0})
summary = simulate(question, mechanism_for(question), truth, 5000, np.random.default_rng(1))
model = model_for(question, summary)
found = fit_question(study, question, model, 5000, seed=1, method="gaussian_approx")
print(*(np.median(found.draws[name]) for name in ("loc", "scale")))
"""


@pytest.mark.slow
def test_fit_of_added_model_finds_the_simulated_truth(tmp_path):
    # 1. Make the page's edits to a copy of the repository.
    for name in ("schemas", "ldp_client", "js", "summaries", "inference"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = BLOCK.findall((REPOSITORY / "docs" / "adding-a-model.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for title, text in blocks:
        if edit := EDIT.fullmatch(title):
            file, anchor = tmp_path / edit[1], edit[2] + "\n"
            before = file.read_text(encoding="utf-8")
            assert before.count(anchor) == 1
            file.write_text(before.replace(anchor, anchor + text), encoding="utf-8")
        else:
            (tmp_path / title).write_text(text, encoding="utf-8")
    # 2. Fit there.
    command, environment = [sys.executable, "-c", FITTED], {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [*map(float, done.stdout.split())] == pytest.approx([4.0, 1.0], abs=0.3)
