"""From a study and its reports to a posterior for each question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, cast

import numpy as np

from inference.compiling import use_compile_cache
from inference.false_reports.conformance import conformance
from inference.false_reports.details import Details
from inference.false_reports.sets import identified_sets
from inference.fit_model import fields_of, fit_model
from inference.limits import check_sampling
from inference.models import model_for, priors_of
from inference.models.base import Model
from inference.models.choice_forms import SmallSamples
from inference.models.holder_regression import holder_regression, holder_statistics, holders_differ
from inference.priors.laws import with_priors
from inference.published import NAMES
from inference.published.posteriors import draw_published
from inference.results.fit import Fit
from inference.results.identified import check_share
from inference.results.posterior import Posterior
from inference.results.verdict import FIT, NOTE, Finding, findings
from inference.samplers import CHAINS, KEPT, SAMPLERS
from inference.seeds import seed_of
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, SummaryError, UsageError
from ldp_client.mechanisms.tables.base import TableMechanism
from ldp_client.words.text import counted, nearest
from schemas import Question, Study
from summaries import QuestionSummary, Summary
from summaries.progress import Step
from summaries.reading import Reports, evidence_of
from summaries.reducing import reduce_reports, study_of

Progress = Callable[[str], None]


def fit(
    study: Study | str | PathLike[str],
    reports: Reports,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    questions: Sequence[str] | None = None,
    method: str = "nuts",
    priors: Mapping[str, Mapping[str, Any]] | None = None,
    draws: int = KEPT,
    chains: int = CHAINS,
    contamination: float = 0.0,
) -> Fit:
    """Fit every question of a study, or some, and judge each posterior.

    Args:
        study: the study that was answered, or the path of its file.
        reports: reports, each of which counts once, or a Summary of them: the path of a file, or several; a
            pandas, Polars or Arrow table of an export; Report objects, their documents or lines of JSON.
        seed: a whole number from 0 to 2**32 − 1; with the same machine and versions it gives the same draws.
        progress: is called with a sentence on the current fit.
        questions: ids of the questions to fit, each as it is fitted among all; None fits all.
        method: "nuts", or "gaussian_approx" for a fast Gaussian approximation that says when it is poor; for
            data holders' tables also a name of inference.published, of which "marginal" is what "nuts" does
            for them.
        priors: {question id: {parameter: distribution}}, in the shape of a study, instead of stated priors.
        draws: how many each chain keeps, a multiple of 100 from 100 to 20,000; NUTS continues, up to four
            times as many, while they do not mix.
        chains: how many, from 2 to 64.
        contamination: the share of reports that may be arbitrary, such as 0.01: shares of choices and means
            then also have the bounds that hold whatever these reports say.

    Returns:
        {question id: Posterior}, in the order of the study, with a table and sentences to quote.

    Raises:
        SummaryError: the summary is not of this study.
        StudyError: a prior does not fit.
        InputError: an argument is none of the above, reports cannot belong to the study, or the method is
            not for these statistics.
    """
    # 1. Check the arguments.
    study, share = study_of(study), check_share(contamination)
    check_method(method, study)
    check_sampling(seed, draws, chains, method)
    chosen = chosen_among(stated_questions(study, priors or {}), questions)
    # 2. Reduce the reports, keep those that are few enough for single checks, and look at their details.
    evidence, few, details = evidence_of(study, reports), SmallSamples(study), Details(study)
    use_compile_cache()
    notes: tuple[str, ...] = ()
    if isinstance(evidence, Summary):
        summary = evidence
    else:
        summary, notes = reduce_reports(study, details.watch(few.watch(evidence))), evidence.notes()
    check_evidence(study, summary)
    mechanisms, every = mechanisms_of(study), sum(part.n for part in summary.questions.values())
    wrong = conformance(mechanisms, summary.questions, details.by_question())
    # 3. Build all models before any is fitted.
    models = {
        question.id: model_for(
            question, few.beside(question.id, summary.questions[question.id]), mechanisms[question.id]
        )
        for question in chosen
        if question.ask != "table"
    }
    # 4. Fit them one after the other.
    fitted = {}
    for number, question in enumerate(chosen):
        part = summary.questions[question.id]
        if progress:
            words = f"fitting {question.id}: {question.model.name} from {counted(part.n, 'report')}"
            progress(Step(words, number, len(chosen)))
        more = (*wrong.get(question.id, ()), *findings(NOTE, notes))
        how: dict[str, Any] = {"seed": seed, "method": method, "more": more, "draws": draws, "chains": chains}
        if question.ask == "table":
            fitted[question.id] = fit_table(study, question, part, **how)
            continue
        found = fit_question(study, question, models[question.id], part.n, **how)
        answered = part.n / every if study.sample_one_question else None
        sets = identified_sets(question, mechanisms[question.id], part, share, answered, found.draws)
        fitted[question.id] = replace(found, identified=sets)
    return Fit(fitted)


def chosen_among(known: Sequence[Question], names: Sequence[str] | None) -> list[Question]:
    """Return the questions of these ids, all for None. Raises InputError, which names a similar id."""
    wanted = [names] if isinstance(names, str) else names
    if wanted is None:
        return list(known)
    ids = [question.id for question in known]
    for name in wanted:
        if name not in ids:
            near = nearest(str(name), ids)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(ids)}"
            raise InputError(f"the study has no question {name!r}: {hint}", code="study.unknown_question")
    if not wanted:
        raise InputError("questions names none: leave it out to fit all", code="fit.no_questions_named")
    return [question for question in known if question.id in wanted]


def fit_question(study: Study, question: Question, model: Model, n: int, **how: Any) -> Posterior:
    """Fit the model of one question; how: further arguments of `fit_model`."""
    return fit_model(model, question.id, n, prior=priors_of(question), **fields_of(study, question), **how)


def check_evidence(study: Study, summary: Summary) -> None:
    """Raise SummaryError for a summary of another document, InputError if there are no answers."""
    if summary.digest != study.digest:
        raise SummaryError(
            "digest",
            f"it is of another study document, {summary.study} version {summary.version} with digest "
            f"{summary.digest}: fit it with that document",
            code="summary.other_study_document",
        )
    if not any(part.n for part in summary.questions.values()):
        raise InputError("there are no reports: a fit would give back the prior", code="fit.no_reports")


def stated_questions(study: Study, priors: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """Return the study's questions with these priors. Raises StudyError, InputError for unknown questions."""
    if not isinstance(priors, Mapping) or not all(isinstance(one, Mapping) for one in priors.values()):
        raise InputError(
            "priors must be {question id: {parameter: distribution}}", code="prior.wrong_study_form"
        )
    chosen_among(study.questions, sorted(priors, key=str) or None)
    return [with_priors(question, priors.get(question.id, {})) for question in study.questions]


def check_method(method: str, study: Study) -> None:
    """Raise InputError for an unknown method, or a method that does not suit this study."""
    general = sorted(name for name, sampler in SAMPLERS.items() if not sampler.tables_alone)
    if method in general:
        return
    every = sorted({*SAMPLERS, *NAMES})
    if method not in every:
        known = every if study.respondent == "holder" else general
        raise UsageError(
            f"{method!r} is no method; {', '.join(known[:-1])} and {known[-1]} are", code="fit.unknown_method"
        )
    if study.respondent != "holder":
        raise InputError(
            f"the method {method!r} is for data holders' tables: use nuts or gaussian_approx",
            code="fit.method_for_tables",
        )


def fit_table(
    study: Study,
    question: Question,
    part: QuestionSummary,
    *,
    seed: int,
    method: str,
    more: tuple[Finding, ...],
    **length: int,
) -> Posterior:
    """Fit a regression to data holders' reports, by any method; length: draws and chains of `fit_model`."""
    statistics = holder_statistics(cast(TableMechanism, mechanisms_of(study)[question.id]), part)
    own_seed = seed_of(seed, question.id, {"sums": statistics.sums})
    differ = partial(holders_differ, question, statistics, own_seed)
    if method not in SAMPLERS:
        found = draw_published(study, question, statistics, seed, method, differ, more)
    else:
        model = holder_regression(question, statistics)
        n = int(np.asarray(model.data["n"]))
        model = replace(model, checks=(*model.checks, lambda fit: findings(FIT, differ(fit.parameters))))
        found = fit_question(study, question, model, n, seed=seed, method=method, more=more, **length)
    return replace(found, holders=part.n)
