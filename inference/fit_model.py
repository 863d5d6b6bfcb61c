"""From a model to a judged posterior: every fit draws, checks and reports in these steps."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.compiling import Program
from inference.likelihoods import PackedSupportSets
from inference.likelihoods.common import CellCounts
from inference.models.base import Draws, Fit, Model
from inference.models.plain_means import Clipped
from inference.predictive import Predictive, predict
from inference.results.convergence import diagnose, is_fixed
from inference.results.intervals import REFUSED
from inference.results.posterior import CLIPPED_MEAN, MEAN, Posterior
from inference.results.prior_notes import WIDER, disagreements, informativeness, leaning_notes
from inference.results.verdict import CARE, CONVERGENCE, FIT, INFORMATIVENESS, NOTE, Finding, findings, listed
from inference.samplers import CHAINS, KEPT, OTHER_REMEDY, SAMPLERS
from inference.sampling.nuts import Sampled
from inference.sampling.space import PriorDraws, as_arrays, reports_site
from inference.seeds import seed_of
from schemas import Question, Study

Parameters = Mapping[str, NDArray[np.float64]]
NO_REPORTS = "there are no reports: this is the prior"


def fit_model(
    model: Model,
    asked: str,
    n: int,
    /,
    *,
    seed: int = 0,
    method: str = "nuts",
    draws: int = KEPT,
    chains: int = CHAINS,
    sampler: Callable[[int], tuple[str, Sampled]] | None = None,
    predictive: Callable[[Model, Fit], Predictive | None] = predict,
    more: Iterable[Finding] = (),
    remedy: str = WIDER,
    **about: Any,
) -> Posterior:
    """Draw from a model's posterior, check the draws, and build the posterior once with every finding.

    Args:
        model: the model of the reports.
        asked: the question's id, or the formula: random numbers follow from it, the seed and the data.
        n: the number of reports.
        seed: as stated.
        method: a name of SAMPLERS.
        draws: how many each chain keeps.
        chains: how many.
        sampler: draws from the random seed instead, and returns the method's name too.
        predictive: the predictive check.
        more: findings that do not depend on the draws.
        remedy: advice if a prior is wrong.
        about: further fields of the posterior.

    Returns:
        The posterior.
    """
    # 1. Draw. The prior's program compiles while the chains run.
    own_seed = seed_of(seed, asked, model.data)
    prior = PriorDraws(model, own_seed)
    if sampler is None:
        drawn = SAMPLERS[method].draw(model, own_seed, draws, chains)
    else:
        method, drawn = sampler(own_seed)
    fit = Fit(drawn.sites, model.parameters(drawn.sites), prior.sites(), own_seed)
    # 2. Run the checks of the model.
    every = [finding for check in model.checks for finding in check(fit)]
    expected = predictive(model, fit)
    every += expected.findings() if expected is not None else ()
    # 3. Add a number's mean, and the mean as clipped where much of the law lies beyond the bounds.
    derived = dict(model.derived(fit.sites))
    clipped: Clipped | None = derived.pop("clipped", None)
    after = dict(fit.parameters)
    before = {
        name: values
        for name, values in model.parameters(fit.prior_sites).items()
        if name not in model.improper
    }
    if derived.get("implied") is not None and MEAN not in after:
        after[MEAN] = derived["implied"].mean()
        before[MEAN] = np.ravel(model.derived(fit.prior_sites)["implied"].mean())
    if clipped is not None and clipped.decides:
        every += findings(FIT, (clipped.in_words(),), CARE, [name for name in after if name != REFUSED])
        after[CLIPPED_MEAN] = clipped.draws(after[MEAN].shape, own_seed)
        before[CLIPPED_MEAN] = clipped.before(own_seed)
    # 4. Build the posterior.
    return posterior_of(
        drawn,
        after,
        before,
        (*every, *more),
        notes=model.notes,
        n=n,
        seed=seed,
        method=method,
        remedy=remedy,
        compared=model.compared and (model.compared(fit.sites), model.compared(fit.prior_sites)),
        log_likelihood=partial(log_likelihood, model, fit.sites),
        predictive=expected,
        **derived,
        **about,
    )


def posterior_of(
    drawn: Sampled,
    after: Parameters,
    before: Parameters,
    more: Iterable[Finding] = (),
    *,
    n: int,
    method: str,
    prior: Mapping[str, Any],
    notes: Iterable[str] = (),
    remedy: str = WIDER,
    compared: tuple[Parameters, Parameters] | None = None,
    **about: Any,
) -> Posterior:
    """Judge draws against one another and against the prior, and build their posterior.

    Args:
        drawn: the draws of the sites, with what the sampler found.
        after: {parameter: (chains, draws)}.
        before: {parameter: (draws,)} before the reports, for parameters with a proper prior.
        more: findings of other checks.
        n: the number of reports.
        method: the method that drew.
        prior: as stated.
        notes: of the model, for the reader.
        remedy: advice if a prior is wrong.
        compared: draws after and before the reports that are compared besides the parameters, and decide on
            contradictions.
        about: further fields of the posterior.

    Returns:
        The posterior.
    """
    of_priors = compared or (after, before)
    learnt = informativeness({**after, **of_priors[0]}, {**before, **of_priors[1]}, prior)
    found = (
        *findings(NOTE, notes),
        *_named(after, disagreements(*of_priors, remedy)),
        *leaning_notes(after, prior),
        *(_named(after, learnt) if n else (Finding(INFORMATIVENESS, NO_REPORTS),)),
        *more,
        *findings(CONVERGENCE, _stuck(method, after, before)),
    )
    against, mixing = diagnose(
        after,
        drawn.diverging,
        found,
        reasons=drawn.reasons,
        known=drawn.mixing,
        remedy=SAMPLERS[method].remedy if method in SAMPLERS else OTHER_REMEDY,
        chained=drawn.chained,
        may_diverge=drawn.may_diverge,
        sites=drawn.sites,
        log_density=drawn.log_density,
        energy=drawn.energy,
    )
    return Posterior(
        n=n,
        draws=after,
        prior_sd={name: float(np.std(before[name])) if name in before else float("inf") for name in after},
        findings=against,
        mixing=mixing,
        method=method,
        prior=prior,
        prior_draws=before,
        diverging=drawn.diverging if drawn.chained else None,
        **about,
    )


def _named(parameters: Parameters, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings on parameters; a finding on anything else is a doubt about all of them."""
    for finding in found:
        known = finding.quantities & parameters.keys()
        if known:
            yield replace(finding, quantities=known)
        if finding.quantities - known:
            yield replace(finding, quantities=frozenset(), state=CARE)


def fields_of(study: Study, question: Question) -> dict[str, Any]:
    """Return the fields of a posterior that name its question."""
    return {
        "question": question.id,
        "model": question.model.name,
        "study_digest": study.digest,
        "unit": question.unit or "",
        "log_odds": question.response is not None and question.response.bounds is None,
    }


def _stuck(method: str, after: Parameters, before: Parameters) -> tuple[str, ...]:
    """Return a reason if a parameter with a prior stands still in every chain, so that no R-hat shows it.

    A published method may take a parameter as known. A share may be 0 or 1 to the last bit.
    """
    if method not in SAMPLERS:
        return ()
    names = [
        name
        for name, draws in after.items()
        if is_fixed(draws)
        and not is_fixed(before.get(name, np.zeros(1)))
        and float(np.median(draws)) not in (0.0, 1.0)
    ]
    if not names:
        return ()
    return (f"{listed(names)}: the sampler returned one value in every draw: use another method",)


# Reports × draws that a result holds, 800 MB. Larger fits have no log-likelihoods by report.
MOST_ENTRIES = 100_000_000


def log_likelihood(model: Model, sites: Draws) -> NDArray[np.float64] | None:
    """Return the log-likelihood of each report, (chains, draws, reports).

    Args:
        model: the model of the reports.
        sites: {site: draws (chains, draws, …)}.

    Returns:
        None if the model describes sums of reports, not single reports, or if there are too many reports.
    """
    first = {name: values[0, 0] for name, values in sites.items()}
    each = model.pointwise or _each(model, first)
    if each is None:
        return None
    draws = next(iter(sites.values())).shape[:2]
    with jax.enable_x64(True):
        counts = np.asarray(each(as_arrays(first))[1], np.int64)
        if counts.sum() * int(np.prod(draws)) > MOST_ENTRIES:
            return None
        flat = as_arrays({name: values.reshape(-1, *values.shape[2:]) for name, values in sites.items()})
        program = Program(lambda sites: jax.lax.map(lambda one: each(one)[0], sites), runs_once=True)
        kinds = np.asarray(program(flat), np.float64)
    # A report of a kind that came several times has an entry each.
    return np.repeat(kinds, counts, axis=1).reshape(*draws, -1)


def _each(model: Model, first: Draws) -> Callable[[Mapping[str, Any]], tuple[Array, Array]] | None:
    """Return a function from one draw to (log-likelihoods of each kind of report, their counts)."""

    def law_at(sites: Mapping[str, Any]) -> tuple[Any, Any]:
        site = reports_site(model, sites, as_arrays(model.data))
        return site["fn"], site["value"]

    def each(sites: Mapping[str, Any]) -> tuple[Array, Array]:
        law, value = law_at(sites)
        if isinstance(law, CellCounts):
            return law.log_cell_probs, value
        return law.log_densities(value).ravel(), law.counts.ravel()

    with jax.enable_x64(True):
        law, _ = law_at(as_arrays(first))
    known = isinstance(law, CellCounts | PackedSupportSets)
    return each if known else None
