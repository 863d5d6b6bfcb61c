"""From a study and its reports to a posterior for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from zlib import crc32

import numpy as np

from inference.models import model_for
from inference.models.base import Model
from inference.results.diagnostics import diagnose, mixing
from inference.results.posterior import Posterior
from inference.sampling import sample, sample_prior
from schemas import Question, Report, Study
from schemas.errors import InputError, SummaryError
from summaries import Summary, summarize

Progress = Callable[[str], None]


def fit(
    study: Study,
    reports: Iterable[Report] | Summary,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Posterior]:
    """The posterior of every question: {question id: Posterior}.

    reports: reports, or a Summary of them. seed: the same seed, machine and versions give the same
    draws. progress: told what is being fitted. Raises ReportError or SummaryError when the reports do
    not belong to the study, InputError for a seed that is not a whole number from 0 to 2**32 − 1.
    """
    check_seed(seed)
    summary = reports if isinstance(reports, Summary) else summarize(study, reports)
    if summary.digest != study.digest:
        raise SummaryError("digest", "belongs to another study document")
    posteriors = {}
    for question in study.questions:
        part = summary.questions[question.id]
        if progress:
            progress(f"fitting {question.id}: {question.model.name} from {part.n} reports")
        posteriors[question.id] = draw_posterior(study, question, model_for(question, part), part.n, seed)
    return posteriors


def check_seed(seed: int) -> None:
    """Raises InputError unless the seed is a whole number from 0 to 2**32 − 1."""
    if type(seed) is not int or not 0 <= seed < 1 << 32:
        raise InputError("the seed must be a whole number from 0 to 4294967295")


def draw_posterior(study: Study, question: Question, model: Model, n: int, seed: int) -> Posterior:
    """Sample one model and judge the draws."""
    own_seed = crc32(f"{seed} {question.id}".encode())
    drawn = sample(model, own_seed, enough=lambda sites: not mixing(model.parameters(sites)).reasons())
    parameters = model.parameters(drawn.sites)
    prior = model.parameters(sample_prior(model, own_seed))
    prior_sd = {name: float(np.std(draws)) for name, draws in prior.items()}
    return Posterior(
        question=question.id,
        model=question.model.name,
        n=n,
        draws=parameters,
        prior_sd=prior_sd,
        diagnostics=diagnose(parameters, drawn.diverging, prior_sd, n, model.notes),
        study=study.digest,
        seed=seed,
    )
