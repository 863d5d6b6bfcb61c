"""A second study keeps all words of the first, but not bounds, norm and budget; the search for thresholds."""

import json
from copy import deepcopy
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from inference.models.holder_regression import holder_statistics
from inference.projection import second_study, thresholds
from inference.projection.thresholds import MOST_BIAS, Auxiliary, Projection, data_sets, find_thresholds
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from summaries import summarize
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of
from tests.kit.secure_sum import QUESTIONS, build_study

WORDS = {"en": "Hours a week", "de": "Stunden je Woche"}
UNIT = {"en": "hours", "de": "Stunden"}
SPREADS = {"age": (1.0, 0.5), "weight": (80.0, 10.0), "rate": (5.0, 3.0)}


def first_study(budget=("0.2", "2e-7", "0.2"), **more):
    """A secure sum of the spreads of three fields. budget: its ε, its δ, and their share of both rounds."""
    document = build_study("spread", devices=1000, max_faulty=50).document
    question = document["questions"][0]
    bounds = {"age": ["-10", "10"], "weight": ["0", "200"], "rate": ["-80", "80"]}
    fields = [{"id": name, "bounds": ends} for name, ends in bounds.items()]
    asked = {
        **question,
        "features": fields[:2],
        "response": fields[2],
        "mechanism": {**question["mechanism"], **dict(zip(("epsilon", "delta", "share"), budget))},
    }
    return Study({**document, "questions": [asked], **more})


def write_posterior(study, folder, uncertainty=0.0):
    rows = {}
    for name, (mean, sd) in SPREADS.items():
        rows[f"mean[{name}]"] = {"mean": mean, "sd": uncertainty}
        rows[f"sd[{name}]"] = {"mean": sd, "sd": uncertainty}
    text = json.dumps({"study_digest": study.digest, "questions": {"spread": {"parameters": rows}}})
    (folder / "posterior.json").write_text(text)
    return rows


# A search for thresholds takes seconds.
@pytest.mark.slow
@pytest.mark.attack(8)
def test_second_study_keeps_words_units_languages_and_sections(tmp_path):
    """Have people asked in a second round without the words, units and languages that they agreed to."""
    document = first_study().document
    (question,) = document["questions"]
    question["text"] = {"en": "About your work", "de": "Zu Ihrer Arbeit"}
    for field in (*question["features"], question["response"]):
        field |= {"text": WORDS, "unit": UNIT}
    document |= {"languages": ["en", "de"], "purpose": {"en": "To know.", "de": "Zum Wissen."}}
    work, before = ({"title": {"en": name, "de": name}, "questions": []} for name in ("Work", "Before"))
    work["questions"], before["questions"] = ["spread"], ["ever"]
    ever = {"id": "ever", "text": WORDS, **QUESTIONS["ever"]}
    study = Study({**document, "questions": [question, ever], "sections": [work, before]})
    write_posterior(study, tmp_path)
    again, _ = second_study.second_study(study, tmp_path, "again")
    kept = [deepcopy(each) for each in (again.document, {**document, "sections": [work]})]
    for each in kept:
        (asked,) = each["questions"]
        for field in (*asked["features"], asked["response"]):
            del field["bounds"]
        # What a projection decides.
        for part, names in ((asked, ("norm", "mechanism", "model")), (each, ("id", "version"))):
            for name in names:
                part.pop(name, None)
    assert kept[0] == kept[1]
    for language in ("en", "de"):
        fields = again.shown_in(language).questions[0].fields
        assert {(field.text, field.unit) for field in fields} == {(WORDS[language], UNIT[language])}
    assert set(again.document["questions"][0]["mechanism"]) == {"name", "epsilon", "delta"}


@pytest.mark.parametrize("share", ["0.3", "0.999"])
def test_the_rest_is_rounded_down(share):
    found = second_study.rest_of_budget(first_study(("0.1", "1e-8", share)).questions[0])
    left = (1 - Fraction(share)) / Fraction(share)
    for value, spent in zip(found, ("0.1", "1e-8")):
        exact = left * Fraction(spent)
        assert exact * (1 - Fraction(1, 10**11)) <= Fraction(value) <= exact


def test_an_uncertain_posterior_widens_the_bounds(tmp_path):
    study = first_study()
    rows = write_posterior(study, tmp_path, uncertainty=3.0)
    mean, sd = second_study.field_spread(study.questions[0].features[0], rows)
    assert (mean, sd) == (1.0, pytest.approx(sqrt(3.5**2 + 9)))


def test_a_posterior_of_another_study_is_refused(tmp_path):
    write_posterior(first_study(), tmp_path)
    with raises(InputError, "derive.posterior_of_other_study"):
        second_study.second_study(first_study(("0.3", "2e-7", "0.2")), tmp_path, "again")
    (tmp_path / "posterior.json").write_text("{}")
    with raises(InputError, "derive.no_posterior", "spread"):
        second_study.second_study(first_study(), tmp_path, "again")
    with raises(InputError, "derive.no_marginals_question", "marginals"):
        second_study.second_study(build_study("rating"), tmp_path, "again")


# Mean, sd, and bounds that are several times too wide.
FIELDS = {
    "age": (40.0, 8.0, ("-100", "200")),
    "dose": (3.0, 1.0, ("-20", "20")),
    "rate": (70.0, 9.0, ("-80", "160")),
}


def holder_study(prior=None, norm="1", **mechanism):
    fields = [{"id": name, "bounds": list(bounds)} for name, (_, _, bounds) in FIELDS.items()]
    noise = {"name": "table_statistics", "epsilon": "0.5", "delta": "1e-7", "share": "0.25", **mechanism}
    question = {
        "id": "stay",
        "ask": "table",
        "features": fields[:-1],
        "norm": norm,
        "response": fields[-1],
        "mechanism": {name: value for name, value in noise.items() if value is not None},
        "model": {"name": "linear_regression", **({"prior": prior} if prior else {})},
    }
    return Study(studies.document(question, respondent="holder"))


def reports_of_tables(study, sizes, seed=1):
    random = np.random.default_rng(seed)
    tables = [{name: random.normal(mean, sd, n) for name, (mean, sd, _) in FIELDS.items()} for n in sizes]
    return reports_of(study, tables)


def moments(study, sizes, seed=1):
    (question,) = study.questions
    part = summarize(study, reports_of_tables(study, sizes, seed)).questions["stay"]
    return second_study.moments_of(question, holder_statistics(mechanism_for(question), part), sum(sizes))


def test_moments_match_all_records_within_uncertainty():
    for seed in range(5):
        rows = moments(holder_study(), [60_000, 30_000], seed)
        for name, (mean, sd, _) in FIELDS.items():
            for found, true in ((rows[f"mean[{name}]"], mean), (rows[f"sd[{name}]"], sd)):
                assert abs(found["mean"] - true) < 6 * found["sd"]
                assert 0 < found["sd"] < 0.5 * sd
    with raises(InputError, "derive.norm_too_small", "0.1"):
        moments(holder_study(epsilon="8", delta="1e-3", norm="0.1"), [3000])


def reports_file(study, sizes, folder):
    path = folder / "first.ndjson"
    path.write_text("".join(f"{report.to_json()}\n" for report in reports_of_tables(study, sizes)))
    return path


@pytest.mark.slow
def test_the_second_study_spends_the_rest_on_narrower_bounds(tmp_path):
    prior = {"sd": {"distribution": "half_normal", "scale": "5"}}
    centre = {"centre": {"distribution": "normal", "loc": "70", "scale": "5"}}
    study = holder_study({**prior, **centre}, count_share="0.1")
    path = reports_file(study, [200_000, 100_000], tmp_path)
    found, (projected,) = second_study.second_study(study, path, "again", seed=3)
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
    again, _ = second_study.second_study(study, path, "again", seed=3)
    assert again.to_json() == found.to_json()


def test_study_that_cannot_be_projected_is_rejected(tmp_path):
    for changes in ({"intercept": False}, {"average": 3}):
        with raises(StudyError, "study.share_needs_means", field="questions[0].mechanism.share"):
            holder_study(**changes)
    with pytest.raises(StudyError):
        holder_study(name="table_normal_equations")
    study = holder_study()
    path = reports_file(study, [100], tmp_path)
    with raises(InputError, "derive.no_budget_share", study.id):
        second_study.second_study(holder_study(share=None), path, "again")


def central_noise(sigma=4.22):
    """Noise of a secure sum at ε = 1, δ = 1e-6: σ/Δ times the sensitivity of svec(vvᵀ), √8 R²."""
    return lambda norm: sigma * sqrt(8) * norm**2


def expected_error(d, n, noise, projection):
    feature, response, norm = projection
    return np.mean([data.errors(feature, norm, [response], [noise(norm)]) for data in data_sets(d, n, 0)])


@pytest.mark.slow
def test_projection_beats_bounds_that_are_too_wide():
    """Bounds of 3 sd made 5 times too wide, one round with the whole ε, against 80 % of it."""
    d, n, wide = 5, 2000, 5
    found = find_thresholds(d, n, central_noise(4.22 / 0.8))
    assumed = expected_error(d, n, central_noise(), Projection(3.0 * wide, 3.0 * wide, sqrt(d)))
    assert found.error < assumed / 4


@pytest.mark.slow
def test_projection_alone_is_a_small_part_of_the_error(monkeypatch):
    """Intervals that ignore projection are therefore nearly right; each side is tested alone."""
    found = find_thresholds(3, 20_000, central_noise())
    feature, response, norm = found.projection
    silent = central_noise(0.0)
    least = expected_error(3, 20_000, silent, Projection(50.0, 50.0, 50.0 * sqrt(3)))
    for side in (Projection(feature, 50.0, norm), Projection(50.0, response, 50.0 * sqrt(3))):
        assert expected_error(3, 20_000, silent, side) - least <= MOST_BIAS * found.error
    monkeypatch.setattr(thresholds, "MOST_BIAS", np.inf)
    greedy = find_thresholds(3, 20_000, central_noise())
    assert greedy.error < found.error
    assert greedy.projection.response < response


def test_projection_shrinks_slopes_as_theory_says():
    """d = 1, only x clipped at c: E[clip(x) x] / E[clip(x)²] by Stein's lemma is P(|x| < c) over that."""
    x = np.random.default_rng(4).normal(size=(10**6, 1))
    factor = 0.6827 / np.mean(np.clip(x, -1, 1) ** 2)
    data = Auxiliary(x, 0.8 * x[:, 0], np.array([0.8]), 10**6, np.zeros((3, 3)))
    found = data.estimates(1.0, 1.0, [50.0], [0.0])[0, 1, 0]
    assert found == pytest.approx(factor * 0.8, rel=0.005)
