"""From a study and its reports to a posterior for each question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np

from inference.compiling import use_compile_cache
from inference.false_reports.conformance import conformance
from inference.false_reports.details import Details
from inference.false_reports.sets import Parameters, identified_sets
from inference.fit_model import fields_of, fit_model
from inference.limits import check_chains, check_draws, check_seed
from inference.models import model_for, priors_of
from inference.models.base import Model
from inference.models.from_reports import SmallSamples, holder_statistics
from inference.models.holder_regression import holder_regression
from inference.models.unlike_holders import holders_differ
from inference.priors import with_priors
from inference.published import NAMES
from inference.published.posteriors import draw_published
from inference.results.fit import Fit
from inference.results.identified import IdentifiedSets, check_share
from inference.results.posterior import Posterior
from inference.results.verdict import FIT, NOTE, Finding, findings
from inference.samplers import CHAINS, SAMPLERS
from inference.sampling import KEPT
from inference.seeds import seed_of
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, SummaryError, UsageError
from ldp_client.mechanisms.tables.base import TableMechanism
from ldp_client.words.text import counted, nearest
from schemas import Question, Study
from summaries import QuestionSummary, Summary
from summaries.progress import Step
from summaries.reading import ReadReports, Reports, evidence_of
from summaries.reducing import reduce_reports, study_of

Progress = Callable[[str], None]
Doubt = Callable[[Parameters], IdentifiedSets | None]


class How(NamedTuple):
    """How posteriors are drawn, with the arguments of `fit`."""

    seed: int
    method: str
    draws: int
    chains: int
    contamination: float
    progress: Progress | None

    def check(self, study: Study) -> None:
        """Raise InputError for impossible values, or values that do not suit this study."""
        check_method(self.method, study)
        check_draws(self.draws, self.method)
        check_chains(self.chains, self.method)


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
    study, share = study_of(study), check_share(contamination)
    check_seed(seed)
    how = How(seed, method, draws, chains, share, progress)
    how.check(study)
    chosen = chosen_among(stated_questions(study, priors or {}), questions)
    return Fit(_fit_all(study, chosen, evidence_of(study, reports), how))


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


def _fit_all(
    study: Study, questions: Sequence[Question], reports: ReadReports | Summary, how: How
) -> dict[str, Posterior]:
    use_compile_cache()
    few, details = SmallSamples(study), Details(study)
    summary = _summary_of(study, reports, few, details)
    wrong = conformance(mechanisms_of(study), summary.questions, details.by_question())
    notes = findings(NOTE, () if isinstance(reports, Summary) else reports.notes())
    more = {question.id: (*wrong.get(question.id, ()), *notes) for question in questions}
    return dict(_fit_each(study, questions, summary, few, how, more))


def _summary_of(study: Study, reports: ReadReports | Summary, few: SmallSamples, details: Details) -> Summary:
    """Return the summary to fit; `few` keeps reports that are few enough for single checks.

    details: collects findings in single reports.
    """
    if isinstance(reports, Summary):
        summary = reports
    else:
        summary = reduce_reports(study, details.watch(few.watch(reports)))
    check_evidence(study, summary)
    return summary


def _fit_each(
    study: Study,
    questions: Sequence[Question],
    summary: Summary,
    few: SmallSamples,
    how: How,
    more: Mapping[str, tuple[Finding, ...]],
) -> Iterator[tuple[str, Posterior]]:
    mechanisms = mechanisms_of(study)
    models = {
        question.id: model_for(
            question, few.beside(question.id, summary.questions[question.id]), mechanisms[question.id]
        )
        for question in questions
        if question.ask != "table"
    }
    for number, question in enumerate(questions):
        part, mechanism = summary.questions[question.id], mechanisms[question.id]
        if how.progress:
            words = f"fitting {question.id}: {question.model.name} from {counted(part.n, 'report')}"
            how.progress(Step(words, number, len(questions)))
        if question.ask == "table":
            yield question.id, fit_table(study, question, part, how, more[question.id])
            continue
        answered = part_of(study, summary, question.id)
        sets = partial(identified_sets, question, mechanism, part, how.contamination, answered)
        yield (
            question.id,
            fit_question(study, question, models[question.id], part.n, how, more[question.id], sets),
        )


def fit_question(
    study: Study,
    question: Question,
    model: Model,
    n: int,
    how: How,
    more: tuple[Finding, ...] = (),
    sets: Doubt | None = None,
) -> Posterior:
    """Fit the model of one question.

    more: findings about its reports. sets: from the parameters' draws, what false reports leave possible.
    """
    found = fit_model(
        model,
        question.id,
        n,
        seed=how.seed,
        method=how.method,
        draws=how.draws,
        chains=how.chains,
        more=more,
        prior=priors_of(question),
        **fields_of(study, question),
    )
    return found if sets is None else replace(found, identified=sets(found.draws))


def part_of(study: Study, summary: Summary, question: str) -> float | None:
    """Return the share of all reports that answer a question, if each device answers one; else None."""
    every = sum(one.n for one in summary.questions.values())
    return summary.questions[question].n / every if study.sample_one_question and every else None


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
    study: Study, question: Question, part: QuestionSummary, how: How, more: tuple[Finding, ...] = ()
) -> Posterior:
    """Fit a regression to data holders' reports, by any method."""
    statistics = holder_statistics(cast(TableMechanism, mechanisms_of(study)[question.id]), part)
    own_seed = seed_of(how.seed, question.id, {"sums": statistics.sums})
    differ = partial(holders_differ, question, statistics, own_seed)
    if how.method in SAMPLERS:
        model = holder_regression(question, statistics)
        model = replace(model, checks=(*model.checks, lambda fit: findings(FIT, differ(fit.parameters))))
        found = fit_question(study, question, model, int(np.asarray(model.data["n"])), how, more)
    else:
        found = draw_published(study, question, statistics, how.seed, how.method, differ, more)
    return replace(found, holders=part.n)
