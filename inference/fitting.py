"""From a study and its reports to a posterior for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from inference.compile_cache import use_compile_cache
from inference.laplace import approximate
from inference.models import model_for
from inference.models.base import Draws, Model
from inference.models.small_samples import SmallSamples
from inference.predicting import predict
from inference.priors import priors_of, with_priors
from inference.results.diagnostics import Mixing, diagnose, mixing
from inference.results.posterior import Posterior
from inference.sampling import Sampled, sample, sample_prior
from schemas import Question, Report, Study
from schemas.errors import InputError, SummaryError
from summaries import Summary, summarize

Progress = Callable[[str], None]


def fit(
    study: Study,
    reports: Iterable[Report] | Summary,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    method: str = "nuts",
    priors: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Posterior]:
    """The posterior of every question: {question id: Posterior}.

    reports: reports, or a Summary of them. seed: the same seed, machine and versions give the same
    draws. progress: told what is being fitted. method: "nuts", or "laplace" for a fast Gaussian
    approximation that says when it is poor. priors: {question id: {parameter: distribution}}, in the shape
    of a study, in place of those that the study states.

    Raises ReportError or SummaryError when the reports do not belong to the study, StudyError for a prior
    that does not fit, InputError for a seed that is not a whole number from 0 to 2**32 − 1, or an unknown
    method.
    """
    check_seed(seed)
    check_method(method)
    questions = stated_questions(study, priors or {})
    use_compile_cache()
    few = SmallSamples(study)
    summary = reports if isinstance(reports, Summary) else summarize(study, few.watch(reports))
    if summary.digest != study.digest:
        raise SummaryError("digest", "belongs to another study document")
    posteriors = {}
    for question in questions:
        part = summary.questions[question.id]
        if progress:
            progress(f"fitting {question.id}: {question.model.name} from {part.n} reports")
        model = model_for(question, part, few.rows(question.id))
        posteriors[question.id] = draw_posterior(study, question, model, part.n, seed, method)
    return posteriors


def stated_questions(study: Study, priors: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """The study's questions with these priors. Raises InputError for an unknown question, StudyError."""
    unknown = set(priors) - {question.id for question in study.questions}
    if unknown:
        raise InputError(f"the study has no question {min(unknown)!r}")
    return [with_priors(question, priors.get(question.id, {})) for question in study.questions]


def check_seed(seed: int) -> None:
    """Raises InputError unless the seed is a whole number from 0 to 2**32 − 1."""
    if type(seed) is not int or not 0 <= seed < 1 << 32:
        raise InputError("the seed must be a whole number from 0 to 4294967295")


def check_method(method: str) -> None:
    """Raises InputError for a method that is not known."""
    if method not in METHODS:
        raise InputError(f"{method!r} is no method; {' and '.join(sorted(METHODS))} are")


def draw_posterior(
    study: Study, question: Question, model: Model, n: int, seed: int, method: str = "nuts"
) -> Posterior:
    """Draw from one model's posterior and judge the draws."""
    own_seed = crc32(f"{seed} {question.id}".encode())
    drawn = METHODS[method](model, own_seed)
    parameters = model.parameters(drawn.sites)
    prior_sites = sample_prior(model, own_seed)
    prior = model.parameters(prior_sites)
    prior_sd = {name: float(np.std(draws)) for name, draws in prior.items()}
    return Posterior(
        question=question.id,
        model=question.model.name,
        n=n,
        draws=parameters,
        prior_sd=prior_sd,
        diagnostics=diagnose(
            parameters, drawn.diverging, prior_sd, n, model.notes, drawn.reasons, drawn.mixing
        ),
        study=study.digest,
        seed=seed,
        method=method,
        prior=priors_of(question),
        prior_draws=prior,
        predictive=predict(model, prior_sites, drawn.sites, own_seed),
    )


def _sample_well(model: Model, seed: int) -> Sampled:
    measured: list[Mixing] = []

    def enough(sites: Draws) -> bool:
        measured.append(mixing(model.parameters(sites)))
        return not measured[-1].reasons()

    drawn = sample(model, seed, enough=enough)
    return replace(drawn, mixing=measured[-1])


METHODS: dict[str, Callable[[Model, int], Sampled]] = {"nuts": _sample_well, "laplace": approximate}
