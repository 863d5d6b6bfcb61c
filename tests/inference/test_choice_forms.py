"""Which form of its likelihood each mechanism's reports take, and that each puts its mass on the truth."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from inference import fit
from inference.models import model_for
from inference.models.from_reports import MOST_BITS, SmallSamples
from inference.models.replicates import supports
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldpkit.cli import main
from schemas import Report, Study
from summaries import QuestionSummary, Summary, summarize
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.simulation import seeded

MECHANISMS = ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard")


def study_of(name: str, choices: int, epsilon: str = "4") -> Study:
    mechanism = {"name": name, "epsilon": epsilon}
    if name == "memoized":
        mechanism |= {"of": "sue", "instantaneous_epsilon": "3"}
    return Study(studies.document({**studies.CHOICE, "choices": {"count": choices}, "mechanism": mechanism}))


def reports_of(study: Study, answers):
    question = study.questions[0]
    mechanisms = {question.id: mechanism_for(question)}
    random = seeded(study.digest, answers)
    if question.mechanism.name == "memoized":  # of devices that report once
        payloads = [mechanisms[question.id].randomise(int(a), random) for a in answers]
        return [
            Report(f"{i:032x}", study.id, study.version, study.digest, {question.id: payload})
            for i, payload in enumerate(payloads)
        ]
    return [perturb_answers(study, mechanisms, {question.id: int(a)}, random) for a in answers]


def joint(model, shares) -> float:
    with jax.enable_x64(True):
        return float(log_density(model.program, (), dict(model.data), {"p": jnp.asarray(shares)})[0])


def standing(k: int, first: float) -> np.ndarray:
    """Shares of which the first choice has `first` and the others the rest, equally."""
    return np.where(np.arange(k) == 0, first, (1 - first) / (k - 1))


@pytest.mark.slow
@pytest.mark.parametrize("choices", [5, 20])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_form_of_likelihood_prefers_the_truth(name: str, choices: int) -> None:
    """60 % of 1,500 people say choice 0: the posterior prefers that by far to 40 % and to 80 %."""
    study = study_of(name, choices)
    answers = np.where(np.arange(1500) < 900, 0, 1 + np.arange(1500) % (choices - 1))
    reports = reports_of(study, answers)
    summary = summarize(study, reports).questions["occupation"]
    few = SmallSamples(study)
    list(few.watch(reports))
    for rows in {id(r): r for r in (None, few.rows("occupation"))}.values():
        model = model_for(study.questions[0], summary, rows)
        at = {share: joint(model, standing(choices, share)) for share in (0.4, 0.6, 0.8)}
        assert at[0.6] > at[0.4] + 5
        assert at[0.6] > at[0.8] + 5
        assert model.initial["p"][0] == pytest.approx(0.6, abs=0.2)


def test_notes_state_the_form_of_the_likelihood() -> None:
    def note(name: str, choices: int, rows=None) -> str:
        study = study_of(name, choices)
        mechanism = mechanism_for(study.questions[0])
        size = REDUCTIONS[name].size(mechanism)
        summary = QuestionSummary(0, np.zeros(size, dtype=np.int64))
        return model_for(study.questions[0], summary, rows).notes[0]

    assert "exact" in note("hadamard", 40)
    assert "exact" in note("oue", 12)
    assert "normal" in note("oue", 13)
    assert "each of the 3 reports" in note("oue", 13, np.zeros((3, 2), dtype=np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "sue", "subset_selection", "olh", "memoized"])
def test_rows_and_patterns_give_the_same_posterior(name: str, monkeypatch) -> None:
    """Up to a constant: the exact form of the reports against the exact form of their patterns."""
    monkeypatch.setattr("inference.models.from_reports.keeps_patterns", lambda _: False)
    study = study_of(name, 9)
    reports = reports_of(study, np.arange(200) % 9)
    few = SmallSamples(study)
    list(few.watch(reports))
    summary = summarize(study, reports).questions["occupation"]
    exact, patterns = (
        model_for(study.questions[0], summary, rows) for rows in (few.rows("occupation"), None)
    )
    shares = np.random.default_rng(0).dirichlet(np.ones(9), 4)
    gaps = [joint(exact, p) - joint(patterns, p) for p in shares]
    assert np.ptp(gaps) < 1e-6


@pytest.mark.slow
def test_dependent_hashes_of_few_choices_are_no_misfit() -> None:
    """Sets of all five choices come eight times as often as if hashes were independent."""
    choices, n = 5, 60_000
    study = study_of("olh", choices, "2")
    mechanism, random = mechanism_for(study.questions[0]), np.random.default_rng(1)
    payloads = perturb_many(mechanism, random.integers(choices, size=n), NotForRealAnswers(random.bytes))
    part = QuestionSummary.of(mechanism, payloads)

    def model_of(part: QuestionSummary) -> str:
        summary = Summary(study.id, study.version, study.digest, {"occupation": part})
        found = fit(study, summary, method="gaussian_approx")["occupation"]
        return found.verdict.fit.state

    assert model_of(part) == "good"
    # One report in ten that supports every choice is none of the mechanism's.
    values = part.values.copy()
    values[-1] += n // 10
    assert model_of(QuestionSummary(n + n // 10, values)) == "bad"


def test_many_reports_are_not_kept() -> None:
    study = study_of("oue", 4000)
    report = reports_of(study, [7])[0]
    few = SmallSamples(study)
    assert len(list(few.watch([report] * (MOST_BITS // 4000)))) == MOST_BITS // 4000
    assert few.rows("occupation") is not None
    list(few.watch([report]))
    assert few.rows("occupation") is None


def fitted(arguments: list[str], out) -> dict:
    assert main(["fit", *arguments, "--out", str(out), "--seed", "3", "--method", "gaussian_approx"]) in (
        0,
        4,
    )
    return json.loads((out / "posterior.json").read_text())["questions"]["occupation"]


@pytest.mark.slow
def test_the_command_line_keeps_few_reports_as_python_does(tmp_path) -> None:
    """Both give the exact posterior of a file of reports; its summary gives the normal form."""
    study = study_of("oue", 14)
    reports = reports_of(study, np.arange(60) % 5)
    paths = {name: str(tmp_path / name) for name in ("study.json", "reports.ndjson", "summary.json")}
    texts = [
        study.to_json(),
        "".join(f"{one.to_json()}\n" for one in reports),
        summarize(study, reports).to_json(),
    ]
    for path, text in zip(paths.values(), texts, strict=True):
        Path(path).write_text(text)
    python = fit(study, reports, 3, method="gaussian_approx")["occupation"].to_document()
    command = fitted([paths["study.json"], paths["reports.ndjson"]], tmp_path / "reports")
    assert "each of the 60 reports" in command["notes"][0]
    assert command["notes"] == python["notes"]
    assert command["parameters"] == python["parameters"]
    summarized = fitted([paths["study.json"], paths["summary.json"]], tmp_path / "summary")
    assert "normal" in summarized["notes"][0]
    assert summarized["parameters"] != python["parameters"]


@pytest.mark.slow
@pytest.mark.parametrize(("choices", "epsilon"), [(2, "0.05"), (13, "20"), (10_000, "1")])
@pytest.mark.parametrize("name", MECHANISMS)
def test_extreme_studies_start_at_finite_density(name: str, choices: int, epsilon: str) -> None:
    """No report, one, and a thousand million for one choice: the start has a finite density and slope."""
    question = study_of(name, choices, epsilon).questions[0]
    mechanism = mechanism_for(question)
    size = REDUCTIONS[name].size(mechanism)
    # Of subset selection's patterns only those of its size can be counted.
    last = (1 << mechanism.size) - 1 if name == "subset_selection" and choices == 2 else size - 1
    for n, place in [(0, 0), (1, last), (10**9, last)]:
        values = np.zeros(size, dtype=np.int64)
        values[place] = n
        model = model_for(question, QuestionSummary(n, values))
        with jax.enable_x64(True):
            start = jnp.asarray(model.initial["p"])
            value, slope = jax.value_and_grad(
                lambda p, model=model: log_density(model.program, (), dict(model.data), {"p": p})[0]
            )(start)
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("name", ["oue", "sue", "subset_selection", "olh"])
def test_replicates_have_moments_of_real_reports(name: str) -> None:
    """Sums of supports: mean and spread over many simulated studies, against the mechanism's own reports."""
    study = study_of(name, 16, "2")
    mechanism = mechanism_for(study.questions[0])
    n, shares, random = 300, standing(16, 0.4), np.random.default_rng(5)
    size = REDUCTIONS[name].size(mechanism)
    sums = []
    for _ in range(300):
        answers = random.choice(16, size=n, p=shares)
        sums.append(
            REDUCTIONS[name].reduce(
                mechanism, perturb_many(mechanism, answers, NotForRealAnswers(random.bytes))
            )[:size]
        )
    found = supports(mechanism, np.zeros(16), n)
    drawn = np.stack([found.draw({"p": shares}, random) for _ in range(300)])
    away = (drawn.mean(axis=0) - np.mean(sums, axis=0)) / (np.std(sums, axis=0) * (2 / 300) ** 0.5)
    assert np.abs(away).max() < 6
    assert drawn.std(axis=0) == pytest.approx(np.std(sums, axis=0), rel=0.3)


@pytest.mark.slow
def test_reports_modelled_one_by_one_are_checked_for_misfit() -> None:
    """Honest reports of 400 people fit; 400 reports of the same set do not."""
    study = study_of("subset_selection", 16)
    reports = reports_of(study, np.arange(400) % 16)
    found = fit(study, reports, seed=2)["occupation"]
    assert "each of the 400 reports" in found.diagnostics.notes[0]
    assert found.predictive is not None
    assert found.predictive.observed == pytest.approx(
        summarize(study, reports).questions["occupation"].values / 400
    )
    assert not found.predictive.misfit
    some = reports[0].payloads
    same = [Report(one.id, one.study, one.version, one.digest, some) for one in reports]
    assert fit(study, same, seed=2)["occupation"].predictive.misfit
