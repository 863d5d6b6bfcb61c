"""A record's regression with public fields as further predictors: reads, counts, fits, judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
import pandas as pd

from inference.analyses.linear import Scales, linear_of
from inference.analyses.matrices import matrix_of
from inference.analyses.middles import counted_from_middles, far_in_words, in_words
from inference.analyses.odds import Ratio, ratios_of
from inference.analyses.one_name import refuse_twice
from inference.analyses.record_formula import RecordFormula
from inference.analyses.record_moments import Beside, regression_beside
from inference.analyses.reports import noise_in_words, public_frame, public_value
from inference.analyses.result import AnalysisPosterior
from inference.analyses.stated_priors import LOGIT_SCALE, Given, is_flat
from inference.analyses.table import Codes
from inference.compiling import use_compile_cache
from inference.false_reports.conformance import not_conforming
from inference.false_reports.sets import identified_sets
from inference.fitting import check_method, draw_posterior, held_against_noise
from inference.limits import check_sampling
from inference.models.regression import Scale
from inference.results.identified import check_share
from inference.results.posterior import Posterior
from inference.results.quantity import Quantity
from inference.samplers import CHAINS
from inference.units import has_levels
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.words.text import counted
from schemas import Question, Report, Study
from summaries import QuestionSummary, Summary, cell_summaries
from summaries.influence import FALSE_SHARE
from summaries.reducing import CheckedReports, good_reports

# Of private levels and public values together, as of private levels alone.
MOST_CELLS = 65_536


def fit_record(
    study: Study,
    reports: Iterable[Report] | Summary,
    asked: RecordFormula,
    *,
    priors: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    method: str | None = None,
    draws: int,
    chains: int = CHAINS,
    progress: Callable[[str], None] | None = None,
    false_reports: float = FALSE_SHARE,
) -> AnalysisPosterior:
    """Fit the regression; priors: of public columns, by the names of their coefficients, or their terms.

    The others are as for `analyse`. Raises InputError, ReportError and SummaryError as that does.
    """
    question, method = asked.question, method or "nuts"
    check_method(method, study)
    check_sampling(seed, draws, chains, method)
    share = check_share(false_reports)
    use_compile_cache()
    mechanism = cast(SampledProducts, mechanism_for(question))
    frame, counts, notes = signs_by_cell_of(study, reports, asked, mechanism)
    _check_cells(question, mechanism, frame, asked)
    beside = beside_of(asked, frame, counts, Given(priors))
    total = QuestionSummary(int(counts.sum()), counts.sum(axis=0))
    form = f"{counted(total.n, 'report')} of {counted(len(frame), 'public cell')}"
    if progress:
        progress(f"fitting {asked.text}: {question.model.name} from {form}")
    model = regression_beside(question, mechanism, beside)
    # As each device draws its question by chance, about so many of all reports are on this one.
    part = 1 / len(study.questions) if study.ask_one else None
    doubt = partial(identified_sets, question, mechanism, total, share, part)
    found = draw_posterior(study, question, model, total.n, seed, method, draws, doubt, chains)
    found = held_against_noise(found, mechanism, total)
    wrong = not_conforming({question.id: mechanism}, {question.id: total}, lambda _: None)
    found = found.doubted(wrong.get(question.id, ())).noted((*_notes(asked, mechanism, beside), *notes))
    return _as_analysis(found, asked, mechanism, beside, form)


def signs_by_cell_of(
    study: Study, reports: Iterable[Report] | Summary, asked: RecordFormula, mechanism: SampledProducts
) -> tuple[pd.DataFrame, Codes, tuple[str, ...]]:
    """The public cells that have reports, the counts of signs (cells, 2 T) in each, and notes on the reports.

    Raises InputError where no report answers the question.
    """
    cells: dict[tuple[str, ...], Codes] = {}
    notes: tuple[str, ...] = ()
    if isinstance(reports, Summary):
        places = [place for place, field in enumerate(study.public) if field in asked.fields]
        for cell, parts in cell_summaries(study, reports).items():
            own = tuple(cell[place] for place in places)
            cells[own] = cells.get(own, 0) + parts[asked.question.id].values
    else:
        seen = _counted(good_reports(study, reports), asked)
        for own, payload in seen:
            row = cells.setdefault(own, np.zeros(2 * len(mechanism.coordinates), np.int64))
            row[int.from_bytes(payload, "big")] += seen[own, payload]
        notes = reports.notes() if isinstance(reports, CheckedReports) else ()
    cells = {own: row for own, row in cells.items() if row.any()}
    if not cells:
        raise InputError(f"no report answers {asked.question.id}", code="fit.no_answers_to_question")
    return public_frame(asked.fields, list(cells)), np.stack(list(cells.values())), notes


def _counted(reports: Iterable[Report], asked: RecordFormula) -> Counter[tuple[tuple[str, ...], bytes]]:
    """How many reports have these public values and this payload."""
    seen: Counter[tuple[tuple[str, ...], bytes]] = Counter()
    for report in reports:
        payload = report.payloads.get(asked.question.id)
        if payload is not None:
            seen[tuple(public_value(report, field.id) for field in asked.fields), payload] += 1
    return seen


def _check_cells(
    question: Question, mechanism: SampledProducts, frame: pd.DataFrame, asked: RecordFormula
) -> None:
    """Raises InputError for more cells than a likelihood takes."""
    private = _private_cells(question, mechanism)
    if private * len(frame) > MOST_CELLS:
        names = ", ".join(field.id for field in asked.fields)
        raise InputError(
            f"{private:,} private by {len(frame):,} public cells ({names}) are {private * len(frame):,}: a "
            f"regression takes {MOST_CELLS:,}; name fewer public fields",
            code="formula.too_many_cells",
        )


def _private_cells(question: Question, mechanism: SampledProducts) -> int:
    """How many combinations of levels the features' law is over; 1 where it is by moments."""
    if has_levels(question):
        return prod(len(codes) or 2 for codes in mechanism.codes)
    yes_no = mechanism.binary and not any(field.bounds for field in question.features)
    return 2 ** len(question.features) if yes_no else 1


def beside_of(asked: RecordFormula, frame: pd.DataFrame, counts: Codes, given: Given) -> Beside:
    """The public columns over the cells, with their priors. Raises InputError where nothing tells them apart.

    By default a column's coefficient times its sd is about half of the response's bounds at most.
    """
    sizes = counts.sum(axis=1)
    matrix = matrix_of(asked.public, frame, sizes=sizes)
    matrix = counted_from_middles(matrix, asked.public, frame, (), sizes)
    response = asked.question.response
    unit = Scale(asked.question).response.unit if response and response.bounds else LOGIT_SCALE
    # Centred, and without an intercept of its own, which the record's line has.
    linear = linear_of("public", matrix, sizes, Scales(unit, unit), given, cutpoints=True)
    given.refuse_others()
    if any(is_flat(row[0]) for row in linear.priors):
        raise InputError(
            "a record's regression takes no flat priors, as its features' have none: state a wide normal",
            code="prior.flat_record_regression",
        )
    beside = Beside(linear, counts)
    refuse_twice([*Scale(asked.question).all_names, *beside.names])
    if not beside.directions().size:
        raise InputError(
            f"all reports are alike in {asked.public}, so that nothing can be learnt of it",
            code="formula.public_field_constant",
        )
    return beside


def _notes(asked: RecordFormula, mechanism: SampledProducts, beside: Beside) -> list[str]:
    """What is taken of features and public columns, and which columns nobody has."""
    question = asked.question
    names = ", ".join(field.id for field in question.features)
    found = []
    if beside.linear.empty:
        found.append(f"no report has {', '.join(beside.linear.empty)}: what stands there is the prior")
    moved = beside.linear.moved_priors()
    if moved:
        shown = dict(zip(beside.linear.spread_by_name(), beside.names, strict=True))
        found.append(in_words([shown[name] for name in moved], beside.linear.matrix.middles))
    found += far_in_words(beside.linear.matrix.far)
    if mechanism.binary or has_levels(question):
        found.append(
            f"log shares of {names} are taken to depend on {asked.public} linearly, and how they hang "
            "together to be the same in all public cells"
        )
    else:
        found.append(
            f"means of {names} are taken to depend on {asked.public} linearly; nothing is assumed of how "
            "they spread and hang together in which public cell"
        )
    return found


def _as_analysis(
    found: Posterior, asked: RecordFormula, mechanism: SampledProducts, beside: Beside, form: str
) -> AnalysisPosterior:
    """The posterior under its outcome's name, with its formula and what is quoted of it."""
    public = dict(zip(beside.names, (row[0] for row in beside.linear.priors), strict=True))
    prior = {**found.prior, "coefficients": {**found.prior["coefficients"], **public}}
    same = {one.name: getattr(found, one.name) for one in fields(found)}
    # An analysis counts the reports that it takes.
    same |= {"question": asked.outcome, "prior": prior, "questions": 1}
    return AnalysisPosterior(
        **same,
        formula=asked.text,
        form=form,
        stated=noise_in_words([asked.question]),
        spreads=_spreads(asked.question, found, beside),
        quantities=tuple(_odds_ratios(asked, found, beside)) if mechanism.binary else (),
    )


def _spreads(question: Question, found: Posterior, beside: Beside) -> dict[str, float]:
    """{coefficient: its column's sd, of a number}."""
    scale = Scale(question)
    sds = {name: found.draws.get(f"sd[{name}]") for name in scale.names}
    private: dict[str, float] = {name: 1.0 if sd is None else float(sd.mean()) for name, sd in sds.items()}
    for name, (i, j) in zip(scale.product_names, scale.crossed, strict=True):
        private[name] = private[scale.names[i]] * private[scale.names[j]]
    public = dict(zip(beside.names, beside.linear.spread_by_name().values(), strict=True))
    return {f"coefficient[{name}]": spread for name, spread in {**private, **public}.items()}


def _odds_ratios(asked: RecordFormula, found: Posterior, beside: Beside) -> Iterable[Quantity]:
    """Of features, and of public columns where numbers that stand beside others are at their middles."""
    private = _private_ratios(asked.question)
    names = [*private, *beside.names]
    slopes = np.stack([found.draws[f"coefficient[{name}]"] for name in names], axis=-1)
    change = beside.linear.change
    if change is not None:
        public = len(beside.names)
        slopes[..., -public:] = slopes[..., -public:] @ change.rows.T
    ratios = [*private.values(), *ratios_of(beside.linear)]
    for place, (name, ratio) in enumerate(zip(names, ratios, strict=True)):
        if ratio is not None:
            words = ratio.words(f"{asked.outcome} = yes against no")
            yield Quantity(f"odds ratio {name}{ratio.at}", words, np.exp(slopes[..., place]))


def _private_ratios(question: Question) -> dict[str, Ratio]:
    """Of each coefficient of features what its exp is, where those that it interacts with are first or 0."""
    scale, features = Scale(question), {field.id: field for field in question.features}
    where: dict[str, list[str]] = {name: [] for name in features}
    for pair in ([question.features[i] for i in places] for places in question.interactions):
        for one, other in (pair, pair[::-1]):
            where[one.id].append(f"{other.id} is {_first(other)}")
    owners = zip(scale.owners, scale.names, strict=True)
    alone = {name: Ratio((_change(features[owner], name),), tuple(where[owner])) for owner, name in owners}
    changes = [ratio.changes[0] for ratio in alone.values()]
    products = zip(scale.product_names, scale.crossed, strict=True)
    return alone | {name: Ratio((changes[i], changes[j])) for name, (i, j) in products}


def _change(field: Any, name: str) -> str:
    """What one more of a feature's column is."""
    if field.bounds:
        return f"one more of {field.id}"
    return f"{field.id} = {name.removeprefix(field.id).removeprefix('=') or 'yes'}"


def _first(field: Any) -> str:
    """Where a feature's columns are all 0."""
    if field.bounds:
        return "0"
    return str(field.choices[0]) if field.choices else "no"
