"""Plan an analysis, then fit it: a scale was planned as a softmax, and fitted as an ordered logit."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.program import Assembled
from inference.analyses.reports import columns_in, table_of_reports
from inference.design.possible_reports import possible_of_study
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Question, Study
from tests import studies
from tests.kit.errors import raises

SCALE = {**studies.CHOICE, "id": "tired", "choices": ["never", "seldom", "often"], "ordered": True}
MEMOIZED = {"name": "memoized", "of": "randomized_response", "epsilon": "3", "instantaneous_epsilon": "2"}
HADAMARD = {"name": "hadamard", "epsilon": "2"}
KINDS = {
    "yes or no": studies.YES_NO,
    "yes, no or neither": {**studies.YES_NO, "refusal": True},
    "choice": studies.CHOICE,
    "choice or neither": {**studies.CHOICE, "refusal": True},
    "scale": SCALE,
    "scale in blocks": {**SCALE, "mechanism": HADAMARD},
    "scale or neither": {**SCALE, "refusal": True},
    "number": studies.NUMBER,
}
PUBLIC = [
    {"id": "region", "choices": ["north", "south"]},
    {"id": "k", "bounds": ["18", "20"], "step": "1"},
]


def answer_of(question: Question, place: int) -> object:
    if question.ask == "number":
        return 1 + place % 5
    return question.choices[place % len(question.choices)] if question.choices else place % 2 == 0


def both(asked: dict[str, object], formula: str) -> tuple[Assembled, Assembled]:
    """The model of all that may come, and that of a few reports."""
    study = Study(studies.document(asked, public=PUBLIC))
    mechanisms, source = mechanisms_of(study), NotForRealAnswers(Random(2).randbytes)
    (question,) = study.questions
    reports = [
        perturb_answers(
            study,
            mechanisms,
            {
                question.id: answer_of(question, at),
                "region": ("north", "south")[at % 2],
                "k": 18 + at % 3,
            },
            source,
        )
        for at in range(60)
    ]
    came = table_of_reports(study, reports, columns_in(study, formula))
    return tuple(assemble(table, formula) for table in (possible_of_study(study, formula, None).table, came))


def names_in(analysis: Assembled) -> list[str]:
    start = {name: np.asarray(value, np.float64)[None, None] for name, value in analysis.initial().items()}
    return [analysis.outcome.name, *analysis.parameters(start)]


# A number is no predictor.
ASKED = [(kind, "{} ~ region + k") for kind in KINDS]
ASKED += [(kind, "region ~ {} + k") for kind in KINDS if kind != "number"]


@pytest.mark.parametrize(("kind", "formula"), ASKED)
def test_planned_model_matches_fitted_model(kind: str, formula: str) -> None:
    planned, fitted = both(KINDS[kind], formula.format(KINDS[kind]["id"]))
    assert names_in(planned) == names_in(fitted)


@pytest.mark.parametrize("mechanism", [SCALE["mechanism"], MEMOIZED, HADAMARD])
def test_scale_is_planned_with_one_effect_for_all_levels(mechanism: dict[str, str]) -> None:
    study = Study(studies.document({**SCALE, "mechanism": mechanism}, public=PUBLIC))
    planned = assemble(possible_of_study(study, "tired ~ region", None).table, "tired ~ region")
    assert names_in(planned) == ["ordered", "region[south]", "threshold[never]", "threshold[seldom]"]


def test_plan_rejects_record_regression(tmp_path, capsys) -> None:
    record = {**studies.LINEAR, "id": "health", "mechanism": {"name": "sampled_products", "epsilon": "2"}}
    study = Study(studies.document({key: record[key] for key in record if key != "norm"}, public=PUBLIC))
    with raises(InputError, "formula.question_not_analysable", "health"):
        possible_of_study(study, "health ~ region", None)
    path = tmp_path / "study.json"
    path.write_text(json.dumps(study.document))
    out = ["--out", str(tmp_path / "plan")]
    assert main(["plan", str(path), "--formula", "health ~ region", *out]) == 3
    assert "health asks for a record" in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("option", ["--level", "--contamination"])
def test_nan_option_is_not_reported_as_two_values(option, capsys) -> None:
    assert main(["fit", "study.json", "reports.ndjson", "--out", "out", option, "nan"]) in (2, 3)
    assert "two values" not in capsys.readouterr().err
