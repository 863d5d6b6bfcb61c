"""Algorithm 2 for data holders: moments from their first reports, and the second study."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from inference.models.from_reports import holder_statistics
from inference.projection import second_study as second
from inference.projection.second_study import moments_of
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from summaries import summarize
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of

# Bounds several times too wide.
FIELDS = {
    "age": (40.0, 8.0, ("-100", "200")),
    "dose": (3.0, 1.0, ("-20", "20")),
    "rate": (70.0, 9.0, ("-80", "160")),
}


def first_study(epsilon="0.5", delta="1e-7", share="0.25", norm="1", **changes):
    fields = [{"id": name, "bounds": list(bounds)} for name, (_, _, bounds) in FIELDS.items()]
    mechanism = {"name": "table_statistics", "epsilon": epsilon, "delta": delta, "share": share}
    model = {"name": "linear_regression", **changes.pop("model", {})}
    question = {
        "id": "stay",
        "ask": "table",
        "features": fields[:-1],
        "norm": norm,
        "response": fields[-1],
        "mechanism": {key: value for key, value in {**mechanism, **changes}.items() if value is not None},
        "model": model,
    }
    return Study(studies.document(copy.deepcopy(question), respondent="holder"))


def tables(sizes, seed=1):
    random = np.random.default_rng(seed)
    return [{name: random.normal(mean, sd, n) for name, (mean, sd, _) in FIELDS.items()} for n in sizes]


def statistics_of(study, some):
    question = study.questions[0]
    part = summarize(study, reports_of(study, some)).questions["stay"]
    return holder_statistics(mechanism_for(question), part)


def reports_file(study, some, folder):
    path = folder / "first.ndjson"
    path.write_text("".join(report.to_json() + "\n" for report in reports_of(study, some)))
    return path


def test_moments_match_all_records_within_uncertainty():
    study = first_study()
    for seed in range(5):
        rows = moments_of(study.questions[0], statistics_of(study, tables([60_000, 30_000], seed)), 90_000)
        for name, (mean, sd, _) in FIELDS.items():
            for found, true in ((rows[f"mean[{name}]"], mean), (rows[f"sd[{name}]"], sd)):
                assert abs(found["mean"] - true) < 6 * found["sd"]
                assert 0 < found["sd"] < 0.5 * sd


def test_a_norm_that_cuts_most_records_is_refused():
    study = first_study("8", "1e-3", norm="0.1")
    with raises(InputError, "derive.norm_too_small", "0.1"):
        moments_of(study.questions[0], statistics_of(study, tables([3000])), 3000)


@pytest.mark.slow
def test_the_second_study_spends_the_rest_on_narrower_bounds(tmp_path):
    prior = {"sd": {"distribution": "half_normal", "scale": "5"}}
    centre = {"centre": {"distribution": "normal", "loc": "70", "scale": "5"}}
    study = first_study(count_share="0.1", model={"prior": {**prior, **centre}})
    path = reports_file(study, tables([200_000, 100_000]), tmp_path)
    found, (projected,) = second.second_study(study, path, "again", seed=3)
    question = found.questions[0]
    assert (found.id, found.version, found.respondent, question.ask) == ("again", 1, "holder", "table")
    assert question.mechanism.name == "table_statistics"
    assert (str(question.mechanism.epsilon), str(question.mechanism.delta)) == ("1.5", "0.0000003")
    assert (str(question.mechanism.count_share), question.mechanism.share) == ("0.1", None)
    assert found.document["questions"][0]["model"]["prior"] == prior
    feature, response, _ = projected.thresholds.projection
    for field, threshold in zip((*question.features, question.response), (feature, feature, response)):
        mean, sd, _ = FIELDS[field.id]
        low, high = map(float, field.bounds)
        assert (high - low) / 2 == pytest.approx(threshold * sd, rel=0.2)
        assert (low + high) / 2 == pytest.approx(mean, abs=0.5 * sd)
    mechanism_for(question)
    again, _ = second.second_study(study, path, "again", seed=3)
    assert again.to_json() == found.to_json()


def test_study_that_cannot_be_projected_is_rejected(tmp_path):
    for changes in ({"intercept": False}, {"average": 3}):
        with raises(StudyError, "study.share_needs_means", field="questions[0].mechanism.share"):
            first_study(**changes)
    with pytest.raises(StudyError):
        first_study(name="table_normal_equations")
    study = first_study()
    path = reports_file(study, tables([100]), tmp_path)
    with raises(InputError, "derive.no_budget_share", study.id):
        second.second_study(first_study(share=None), path, "again")
