"""A wrong, unmixed or uninformative fit is never called usable; a sound one is.

Fits are made by the Gaussian approximation, which compiles little. What the sampler returns is spoilt where a
case is about chains. All results but their pages and figures are made as `ldpkit fit` makes them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from inference import fit
from inference.results import report
from inference.results.verdict import CARE
from inference.results.verdict import USABLE as USABLE_WORD
from inference.sampling import gaussian_approximation
from ldp_client import mechanism_for
from ldp_client.bulk import perturb_many
from ldpkit.cli import main
from schemas import Report, Study
from tests import studies
from tests.kit.modes import fit_without_derivatives
from tests.statistics import seeded

USABLE, NOT_USABLE = 0, 4


@dataclass(frozen=True)
class Case:
    """A question and what people answer. The rest is what goes wrong on the way to a posterior.

    told: the question that their devices read, where it is another one. arrives: what becomes of payloads.
    spoils: what becomes of the sampler's draws.
    """

    question: dict[str, Any]
    answers: Callable[..., Any]
    told: dict[str, Any] | None = None
    arrives: Callable[..., Any] = np.asarray
    spoils: Callable[..., Any] | None = None
    slow: bool = False


def asked(question, mechanism, epsilon):
    return {**question, "mechanism": {"name": mechanism, "epsilon": epsilon}}


def yes(share, people, epsilon="1", **prior):
    model = {"name": "bernoulli", **({"prior": {"p": prior}} if prior else {})}
    question = {**studies.with_epsilon(studies.YES_NO, epsilon), "model": model}
    return Case(question, lambda random: random.random(people) < share)


def jobs(mechanism, *shares, people=3000, **more):
    question = asked(studies.CHOICE, mechanism, "1")
    return Case(question, lambda random: random.choice(studies.CHOICE["choices"], people, p=shares), **more)


def number(law, answers, top="12", epsilon="4", **more):
    question = {**asked(studies.NUMBER, "laplace", epsilon), "bounds": ["0", top], "model": {"name": law}}
    return Case(question, answers, slow=True, **more)


def refusing(people, epsilon):
    """A yes or no, and a fifth who prefer not to say."""

    def answers(random):
        found = (random.random(people) < 0.3).astype(object)
        found[random.random(people) < 0.2] = None
        return found

    return Case({**studies.with_epsilon(studies.YES_NO, epsilon), "refusal": True}, answers)


def products(people):
    """A record that is asked by signs of sampled products."""
    fields = [{"id": "smokes", "ask": "yes_no"}, {"id": "married", "ask": "yes_no"}]
    question = {key: value for key, value in studies.LOGISTIC.items() if key != "norm"} | {"features": fields}

    def answers(random):
        smokes, married = random.random(people) < 0.4, random.random(people) < 0.6
        affair = random.random(people) < 1 / (1 + np.exp(1 - smokes))
        return {"smokes": smokes, "married": married, "affair": affair}

    return Case(asked(question, "sampled_products", "1"), answers, slow=True)


def command_of(name, folder):
    """The command that fits a case, whose files are written here."""
    case = CASES[name]
    study = Study(studies.document(case.question))
    told = Study(studies.document(case.told)) if case.told else study
    answers = case.answers(np.random.default_rng(list(repr((name,)).encode())))
    made = perturb_many(mechanism_for(told.questions[0]), answers, seeded(name), "refusal" in case.question)
    reports = (
        Report(f"{place:032}", study.id, 1, study.digest, {study.questions[0].id: bytes(payload)})
        for place, payload in enumerate(case.arrives(np.array(made, np.uint8)))
    )
    (folder / "evidence").write_text("".join(report.to_json() + "\n" for report in reports))
    (folder / "study.json").write_text(study.to_json())
    files = [str(folder / name) for name in ("study.json", "evidence")]
    return ["fit", *files, "--out", str(folder / "out"), "--method", "gaussian_approx"]


def spoilt(change, site=0, case=None):
    """Sound reports, of whose draws one site (chains, draws, …) is changed."""

    def spoils(sampled):
        name = list(sampled.sites)[site]
        sites = {**sampled.sites, name: change(np.array(sampled.sites[name]))}
        return replace(sampled, sites=sites, mixing=None, chained=True)

    return replace(case or yes(0.3, 3000), spoils=spoils)


def stuck_everywhere(draws):
    draws[:] = draws[0, 0]
    return draws


def chain_apart(draws):
    draws[0] = draws[0] * 0.8
    return draws


def not_a_number(draws):
    draws[0, 0] = np.nan
    return draws


def diverging(sampled):
    flags = np.zeros_like(sampled.diverging)
    flags[0, :5] = True
    return replace(sampled, diverging=flags, mixing=None, chained=True)


def two_peaks(random):
    return np.concatenate([random.normal(19, 1, 4000), random.normal(41, 1, 4000)])


def zeros(random):
    """More than a third 0, and others about 4.4."""
    return np.where(random.random(20_000) < 0.35, 0.0, random.gamma(4, 1.1, 20_000))


def first_repeated(payloads):
    return np.concatenate([np.repeat(payloads[:1], 20, axis=0), payloads[20:]])


SCALE = {**studies.ONE_OF, "ordered": True, "choices": ["never", "seldom", "often"]}

BAD = {
    # Where nothing was learnt, or nothing came.
    "30 reports that noise drowns": yes(0.3, 30, "0.1"),
    "30 numbers that noise drowns": number(
        "exponential", lambda random: random.exponential(3, 30), epsilon="0.1"
    ),
    "a regression of 100 people": products(100),
    # False reports.
    "reports that no answers can give": replace(
        yes(1, 600), arrives=lambda payloads: payloads[payloads[:, 0] == 1]
    ),
    "reports of a larger epsilon": replace(yes(0.1, 3000), told=studies.with_epsilon(studies.YES_NO, "4")),
    "bits of another mechanism": replace(
        jobs("sue", 0.2, 0.5, 0.3), told=asked(studies.CHOICE, "oue", "1"), slow=True
    ),
    "one number twenty times": replace(
        number("exponential", lambda random: random.exponential(3, 4000)), arrives=first_repeated
    ),
    # A wrong prior, or a wrong law.
    "a prior that rules the truth out": yes(0.6, 3000, distribution="uniform", low="0", high="0.1"),
    "a prior far from the truth": yes(0.6, 10_000, distribution="beta", a="500", b="4500"),
    "two peaks under a normal law": Case(studies.with_epsilon(studies.AGE, "4"), two_peaks, slow=True),
    "even answers under an exponential law": number(
        "exponential", lambda random: random.uniform(6, 12, 8000)
    ),
    "an exponential number under a normal law": number(
        "normal", lambda random: random.exponential(3, 20_000)
    ),
    "a heap under a normal law": number(
        "normal",
        lambda random: np.where(random.random(20_000) < 0.4, 2.0, random.normal(7, 1.5, 20_000)),
        epsilon="8",
    ),
    "counts of unlike people under a Poisson law": number(
        "poisson", lambda random: random.negative_binomial(2, 0.25, 8000).astype(float), top="20"
    ),
    # Spoilt draws.
    "chains that all stand still": spoilt(stuck_everywhere),
    "one of two parameters stands still": spoilt(stuck_everywhere, 1, refusing(5000, "1")),
    "a chain elsewhere": spoilt(chain_apart),
    "chains that walk slowly": spoilt(lambda draws: np.sort(draws, axis=1)),
    "a draw that is no number": spoilt(not_a_number),
    "transitions that diverge": replace(yes(0.3, 3000), spoils=diverging),
}

GOOD = {
    "a yes or no": yes(0.3, 3000),
    "a rare yes": yes(0.02, 10_000),
    "a share of nobody": yes(0, 5000),
    "a yes or no under much noise": yes(0.3, 10_000, "0.2"),
    "few people under little noise": yes(0.3, 200, "4"),
    "a prior near the truth": yes(0.3, 3000, distribution="beta", a="3", b="7"),
    "a yes or no that some refuse": refusing(5000, "1"),
    "choices by randomized response": jobs("randomized_response", 0.15, 0.6, 0.25),
    "choices of which one is common": jobs("randomized_response", 0.9, 0.08, 0.02, people=5000),
    "choices of which one is nobody's": jobs("randomized_response", 0.6, 0.4, 0, people=5000),
    "choices by unary encoding": jobs("oue", 0.15, 0.6, 0.25),
    "choices by subset selection": jobs("subset_selection", 0.15, 0.6, 0.25, slow=True),
    "choices by local hashing": jobs("olh", 0.15, 0.6, 0.25, slow=True),
    "choices by Hadamard codes": jobs("hadamard", 0.15, 0.6, 0.25, slow=True),
    "a scale": Case(
        SCALE, lambda random: random.choice(SCALE["choices"], 5000, p=[0.5, 0.3, 0.2]), slow=True
    ),
    # No report shows that the law is wrong, so the mean as clipped leads.
    "zeros under a normal law": number("normal", zeros, top="24"),
    "a normal number": Case(
        studies.with_epsilon(studies.AGE, "4"), lambda random: random.normal(30, 5, 4000), slow=True
    ),
    "an exponential number": number("exponential", lambda random: random.exponential(3, 4000)),
    "a count": number("poisson", lambda random: random.poisson(6, 4000).astype(float), top="20"),
    "failures before a success": number(
        "geometric", lambda random: random.geometric(0.25, 4000) - 1.0, top="20"
    ),
    "a logistic regression": products(20_000),
}
CASES = {**BAD, **GOOD}
ROWS = [pytest.param(name, marks=[pytest.mark.slow] * case.slow) for name, case in CASES.items()]


@pytest.fixture(autouse=True)
def without_pages(monkeypatch):
    """Pages and figures decide nothing, and take a third of the time. Names of folders are the same ones.

    Derivatives are not compiled, which takes most of the rest.
    """
    fit_without_derivatives(monkeypatch)
    monkeypatch.setattr(report, "save_report", lambda *_arguments, **_options: None)


def code_of(name, where, monkeypatch):
    """What `ldpkit fit` ends with, where the sampler returns draws as the case spoils them."""
    draw, spoils = gaussian_approximation.draw, CASES[name].spoils
    if spoils is not None:
        monkeypatch.setattr(
            gaussian_approximation, "draw", lambda *arguments, **options: spoils(draw(*arguments, **options))
        )
    return main(command_of(name, where))


def test_twenty_fits_and_more_are_bad_and_as_many_are_sound():
    assert min(len(BAD), len(GOOD)) >= 20


@pytest.mark.parametrize("name", ROWS)
def test_only_a_sound_fit_ends_as_usable(name, tmp_path, monkeypatch):
    assert code_of(name, tmp_path, monkeypatch) == (NOT_USABLE if name in BAD else USABLE)


@pytest.mark.slow
def test_headline_of_zeros_under_a_normal_law_is_the_mean_as_clipped(tmp_path):
    """By the law the mean is 2.2, and the answers' mean is 2.87."""
    command_of("zeros under a normal law", tmp_path)
    found = fit(str(tmp_path / "study.json"), str(tmp_path / "evidence"), method="gaussian_approx")["hours"]
    (headline,) = found.headlines
    low, high = found[headline].interval(0.99)
    assert low < 2.87 < high
    assert found.verdict.overall.word == USABLE_WORD
    assert found.verdict.of("mean").word == CARE


def test_sound_draws_that_are_judged_as_chains_are_called_usable(tmp_path, monkeypatch):
    """This shows that the other cases fail because of their changed draws."""
    monkeypatch.setitem(CASES, "a yes or no", spoilt(lambda draws: draws))
    assert code_of("a yes or no", tmp_path, monkeypatch) == USABLE


def test_a_planted_verdict_that_ignores_the_model_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("inference.predictive.Predictive.findings", lambda _self: ())
    monkeypatch.setattr("inference.fit_model.disagreements", lambda *_arguments: ())
    monkeypatch.setattr("inference.fitting.conformance", lambda *_arguments: {})
    assert code_of("reports that no answers can give", tmp_path, monkeypatch) == USABLE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["choices of which one is nobody's", "30 reports that noise drowns", "a prior that rules the truth out"],
)
def test_ten_seeds_give_one_code(name, tmp_path):
    command_of(name, tmp_path)
    files = [str(tmp_path / file) for file in ("study.json", "evidence")]
    found = [next(iter(fit(*files, seed=seed, draws=300).values())) for seed in range(10)]
    assert {bool(posterior.verdict.bad) for posterior in found} == {name in BAD}
