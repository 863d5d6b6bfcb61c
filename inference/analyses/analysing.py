"""Fit a formula to a table: find peaks, draw, check, and name the results."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jax import Array
from numpyro import handlers

from inference.analyses.checking import checked
from inference.analyses.formula import INTERCEPT, by_name
from inference.analyses.peaks import Peak, peak_of, unidentified, without_bound
from inference.analyses.population import (
    People,
    Population,
    left_out_of,
    notes_over,
    people_of,
    quantities_over,
)
from inference.analyses.predicted import Predicted, quantities_of, sets_levels
from inference.analyses.program import Assembled, assemble
from inference.analyses.stated_priors import is_flat
from inference.analyses.table import Table
from inference.compiling import use_compile_cache
from inference.fit_model import fit_model
from inference.limits import check_sampling
from inference.models.base import Draws, Fit, Model, Sampling
from inference.models.plain_means import BEYOND, beyond_words
from inference.results.posterior import Posterior
from inference.results.quantity import Quantity
from inference.results.verdict import CARE, FIT, INFORMATIVENESS, Finding, findings, listed
from inference.samplers import CHAINS, KEPT, SAMPLERS
from inference.sampling.nuts import WARMUP, Sampled
from inference.sampling.nuts import draw as draw_nuts
from inference.sampling.space import as_arrays
from inference.seeds import seed_of
from ldp_client.documents.errors import InputError, UsageError

METHODS = ("nuts", "gaussian_approx")
# NUTS over rows takes longer steps than elsewhere. The curvature at the mode gives its scales: so many
# reports determine that better than a few hundred draws in a hundred dimensions do.
OF_ROWS, WARMUP_OF_ROWS = 0.7, (200,)
# The number of cells in which a law is compared with its bounds.
MOST_LOOKED_AT = 500


def analyse_table(
    table: Table,
    formula: str,
    *,
    family: str | None = None,
    priors: Mapping[str, Any] | str | None = None,
    seed: int = 0,
    method: str | None = None,
    draws: int = KEPT,
    chains: int = CHAINS,
    progress: Callable[[str], None] | None = None,
    population: Population | None = None,
) -> Posterior:
    """Fit a formula to a table of reports.

    family: the outcome's family; by default its kind decides. priors: "flat", or {parameter: "flat" or
    distribution}. method: by default `draws_of` chooses. population: the people over whom shares are also
    averaged. The other arguments are as for `fit`.
    Raises InputError, with the reason, if the formula cannot be fitted.
    """
    # 1. Assemble the analysis, over the people whose shares are asked.
    check_options(seed, draws, chains, method or "nuts")
    use_compile_cache()
    analysis = assemble(table, formula, priors, family)
    over = population or Population()
    people = people_of(analysis, table, over)
    table = replace(table, notes=(*table.notes, *notes_over(analysis, people), *over.notes()))
    if progress:
        progress(f"fitting {analysis.formula.text}: {analysis.outcome.name}, {analysis.table.form}")
    # 2. Refuse flat priors that leave an improper posterior, whatever is reported or for these reports.
    names = unidentified(analysis)
    if names:
        raise InputError(
            f"flat priors leave no proper posterior: no reports could tell {listed(names)} apart. State "
            "other priors, or use two groups with other dice.",
            code="prior.flat_not_identified",
        )
    model = model_of(analysis)
    peak = peak_of(analysis, model)
    if peak and not peak.found and any(map(is_flat, analysis.priors().values())):
        # The parameters with the widest curvature, relative to their own size.
        wide = [name for name, sd in peak.sds.items() if not sd < 10 + abs(peak.values[name]) / 3]
        unbounded = listed(wide or list(peak.values))
        raise InputError(
            f"flat priors leave no proper posterior: the reports do not bound {unbounded}, "
            "for example because all of a level agree, or fewer say yes than under noise alone. Remove the "
            "flat priors, or state others.",
            code="prior.flat_leaves_unbounded",
        )
    # 3. Draw, check and name the results.
    found = replace(
        model,
        notes=(*table.notes, *notes_of(analysis)),
        checks=(
            partial(_learnt_alone, analysis, peak_of(analysis, model, with_prior=False)),
            partial(_far_beyond, analysis),
        ),
        derived=partial(_derived, analysis, people, over, seed_of(seed, formula, model.data)),
    )
    return fit_model(
        found,
        formula,
        table.n,
        seed=seed,
        sampler=lambda own_seed: draws_of(analysis, peak, method, own_seed, draws, chains, progress),
        predictive=lambda _model, fit: checked(
            analysis, None if model.improper else fit.prior_sites, fit.sites, fit.seed, over.by
        ),
        more=(
            *table.doubts,
            *findings(INFORMATIVENESS, left_out_of(analysis, people, over), CARE),
        ),
        prior=analysis.priors(),
        question=analysis.formula.outcome,
        model=analysis.outcome.name,
        study_digest=table.digest,
        formula=analysis.formula.text,
        form=analysis.table.form,
        axes=analysis.axes(),
        noise=table.noise,
        spreads={one.name: one.spread for one in analysis.law.entries if one.spread is not None},
        mode=peak.to_document() if peak and peak.found else None,
    )


def check_options(seed: int, draws: int, chains: int, method: str) -> None:
    """Raise UsageError for arguments with which no posterior of an analysis can be drawn."""
    if method not in METHODS:
        raise UsageError(
            f"{method!r} is no method of an analysis: {' and '.join(METHODS)} are", code="fit.unknown_method"
        )
    check_sampling(seed, draws, chains, method)


def _derived(
    analysis: Assembled, people: People, over: Population, seed: int, sites: Draws
) -> dict[str, tuple[Quantity, ...]]:
    """Return odds ratios, shares, differences and totals; of two of one name, the last."""
    quantities = (
        *quantities_of(analysis, sites, seed),
        *quantities_over(analysis, sites, people, over, seed),
    )
    return {"quantities": tuple(by_name(quantities).values())}


def _learnt_alone(analysis: Assembled, peak: Peak | None, fit: Fit) -> tuple[Finding, ...]:
    """Return reasons if reports alone do not determine the coefficients."""
    before, silent = analysis.parameters(fit.prior_sites), analysis.without_prior()
    before = {name: draws for name, draws in before.items() if name not in silent}
    reasons = without_bound(analysis, peak, fit.parameters, before)
    return findings(INFORMATIVENESS, (*reasons, *overruled_by_priors(analysis)), CARE)


def _far_beyond(analysis: Assembled, fit: Fit) -> tuple[Finding, ...]:
    """Return a doubt if the law of a private number lies beyond the number's bounds."""
    channel = analysis.response.number if analysis.response is not None else None
    if channel is None or not channel.plain.error > 0:
        return ()
    frame, sizes = analysis.table.frame, analysis.table.sizes
    some = np.linspace(0, len(frame) - 1, min(len(frame), MOST_LOOKED_AT)).astype(int)
    predicted = Predicted(analysis, fit.sites, len(some))
    frame, weights = frame.iloc[some].reset_index(drop=True), sizes[some].astype(np.float64)
    beyond = predicted.beyond(frame, weights, channel.low, channel.high)
    return findings(FIT, [beyond_words(channel.plain, beyond)] if beyond > BEYOND else [], CARE)


def model_of(analysis: Assembled) -> Model:
    """Return the analysis as a Model for the samplers."""
    return Model(
        analysis.program,
        analysis.data(),
        analysis.initial(),
        analysis.parameters,
        improper=frozenset(analysis.without_prior()),
        pointwise=partial(_each, analysis),
    )


def _each(analysis: Assembled, sites: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the log-likelihood of each pattern of reports at one draw, and the patterns' counts."""
    data = as_arrays(analysis.data_of_patterns())

    def program() -> Array:
        return analysis.each(data, *analysis.drawn(data))

    return handlers.substitute(handlers.seed(program, 0), dict(sites))(), data["counts"]


def draws_of(
    analysis: Assembled,
    peak: Peak | None,
    method: str | None,
    seed: int,
    draws: int,
    chains: int = CHAINS,
    progress: Callable[[str], None] | None = None,
) -> tuple[str, Sampled]:
    """Draw by a method, by default NUTS; return its name and the draws. progress receives NUTS's progress.

    Many different reports make each step of NUTS expensive, but the posterior is then mostly nearly Gaussian.
    So the importance-resampled approximation comes first, and NUTS follows only if the weights are poor.
    Rows are computed in single precision: it moves log posteriors by some 1e-4, which no draw shows.
    """
    model = model_of(analysis)
    warmup: tuple[int, ...] = WARMUP
    if analysis.by_rows:
        at_mode = peak.sites if peak and peak.found else model.initial
        model = replace(model, data=analysis.data(np.float32), initial=at_mode, sampling=Sampling(OF_ROWS))
        warmup = WARMUP_OF_ROWS
    if method == "gaussian_approx" or (method is None and analysis.by_rows):
        found = SAMPLERS["gaussian_approx"].draw(model, seed, draws, chains)
        if method or not found.reasons:
            return "gaussian_approx", found
    return "nuts", draw_nuts(model, seed, draws, warmup, chains, progress or (lambda _line: None))


def overruled_by_priors(analysis: Assembled) -> tuple[str, ...]:
    """Return a reason if default priors, not the reports, decide products or powers of numbers far from 0."""
    if not analysis.law.overruled:
        return ()
    return (
        f"default priors decide {listed(analysis.law.overruled)}: a number there is far from 0. "
        "Write center() around it in the formula, or state priors",
    )


def notes_of(analysis: Assembled) -> Iterator[str]:
    """Yield notes on levels without reports, and on the assumptions about private columns."""
    # 1. Levels without reports.
    empty = [name for part in analysis.linears for name in part.empty]
    if empty:
        yield f"no report has {listed(empty)}: these estimates are the prior"
    for group in analysis.every_group:
        unseen = [level for place, level in enumerate(group.levels) if place not in group.codes]
        if unseen:
            what = f"{group.column} {listed(unseen)}"
            yield f"no report has {what}: these estimates come from the groups' law alone"
    if not sets_levels(analysis):
        yield "shares by level are left out: there are too many cells. Request them with --by"
    # 2. What the law of private predictors leaves out.
    whose = listed([one.name for one in analysis.predictors])
    if analysis.shares is not None:
        terms = [name for name in analysis.shares.matrix.names if name != INTERCEPT]
        on = ", ".join([*terms, *(group.column for group in analysis.shares_groups)])
        yield f"the answers to {whose} are assumed to depend on {on or 'no public column'} alone"
    if analysis.predictors and not analysis.outcome.answers:
        # A spread that changes may imitate an effect of a predictor.
        name, law = analysis.formula.outcome, analysis.outcome
        spread = f"one {next(iter(law.own))} is" if law.own else f"the spread of a {law.name} law is"
        yield (
            f"{spread} assumed for {name}, regardless of the columns: if its spread depends on a column, the "
            f"coefficient of {whose} may be an artefact"
        )
    # 3. What kind of regression it is.
    if not all(one.channel.exact for one in analysis.privates):
        yield "log-likelihoods leave out a constant that no answer changes"
    if not analysis.privates:
        yield "the formula names no private column: this is an ordinary regression"
