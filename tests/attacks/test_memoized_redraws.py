"""A batch answers memoized questions repeatedly: the redrawn answers together reveal the truth."""

import json
import subprocess

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.memoized import Remembering
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

STUDY = Study(studies.document(studies.YES_NO, studies.MEMOIZED))
ANSWERS = {"ever": True, "habit": True}


def mechanisms():
    return {question.id: mechanism_for(question) for question in STUDY.questions}


def never(_size):
    raise AssertionError("noise was drawn")


def test_memoized_question_is_refused_for_single_reports():
    with raises(InputError, "core.memoized", "habit"):
        perturb_answers(STUDY, mechanisms(), ANSWERS, never)


def test_memoized_question_is_refused_in_bulk():
    with raises(InputError, "core.memoized", "habit"):
        perturb_many(mechanisms()["habit"], np.ones(60, bool), never)


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_memoized_question_is_refused_for_a_file(tmp_path, capsys, sample_one_question):
    (tmp_path / "study.json").write_text(
        json.dumps({**STUDY.document, "sample_one_question": True} if sample_one_question else STUDY.document)
    )
    (tmp_path / "answers.csv").write_text("ever,habit\nyes,yes\n")
    out = tmp_path / "reports.ndjson"
    assert (
        main(["perturb", str(tmp_path / "study.json"), str(tmp_path / "answers.csv"), "--out", str(out)]) == 3
    )
    assert "habit is memoized" in capsys.readouterr().err
    assert not out.exists()


def test_remembering_mechanism_repeats_its_permanent_answer():
    """60 reports of one device reveal no more than its permanent answer, which is kept."""
    remembering = {**mechanisms(), "habit": Remembering(mechanisms()["habit"], None)}
    perturb_answers(STUDY, remembering, ANSWERS)
    kept = remembering["habit"].answer
    for _ in range(60):
        perturb_answers(STUDY, remembering, ANSWERS)
    assert remembering["habit"].answer == kept


@pytest.mark.needs("node")
def test_memoized_question_is_refused_in_javascript():
    script = f"""
    globalThis.crypto ??= (await import("node:crypto")).webcrypto;
    const port = "{(JAVASCRIPT / "index.js").as_uri()}";
    const {{ parseStudy }} = await import(port);
    const perturbAnswers = await (await import("{npm.PERTURBING.as_uri()}")).perturbingBy(port);
    const study = await parseStudy({json.dumps(json.dumps(STUDY.document))});
    try {{
      await perturbAnswers(study, {{ ever: true, habit: true }});
    }} catch ({{ code, field }}) {{
      console.log(code, field);
    }}
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "input habit", done.stderr
