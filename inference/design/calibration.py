"""The calibration of a question: truths from its prior, simulated reports, fits, ranks, and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from inference.design.bands import Band, leaves, simultaneous_band
from inference.design.simulated_posteriors import (
    FEWEST_EFFECTIVE,
    Parameters,
    poorly_mixed,
    posterior_draws,
)
from inference.design.simulation import clipped_share, for_clients, simulate
from inference.limits import check_devices, check_seed, check_studies
from inference.models import model_for
from inference.models.base import Model, Truth
from inference.results.diagnostics import listed
from inference.sampling import sample_prior
from ldp_client import mechanism_for
from ldp_client.commands.output import Step
from ldp_client.documents.errors import InputError
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

Progress = Callable[[str], None]
Ranks = NDArray[np.int64]

STUDIES, DEVICES = 100, 10_000
# Of every chain, each third draw: near enough to independent, which ranks need.
DRAWS, THIN = 99, 3
FALSE_ALARM = 0.01
BINS = 10
# For the time that is left: about so many times as long as simulating a study takes fitting it.
FITS_A_SIMULATION = 9
# Where the chains of more studies than the first mix poorly that is said; beyond the second the ranks are
# those of the sampler.
SOME_MIX_POORLY, MOST_MIX_POORLY = 0.05, 0.5
# More clipped records than these and the regression models' assumptions are worth a word.
FEW_CLIPPED = 0.01


@dataclass(frozen=True)
class Calibration:
    """ranks: {parameter: of the truth among the draws, one for each study}. band: for each parameter.

    outside: parameters whose ranks leave the band. poor: {parameter: the share of studies whose chain mixes
    poorly}. notes: what a reader should know besides.
    """

    question: str
    model: str
    n: int
    seed: int
    ranks: dict[str, Ranks]
    band: Band
    outside: tuple[str, ...]
    poor: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        found = []
        if self.outside:
            rough = max(self.poor[name] for name in self.outside)
            of_chains = (
                f", or it is the one short chain of each study, which mixes poorly in {rough:.0%} of them"
                if rough > SOME_MIX_POORLY
                else ""
            )
            found.append(
                f"the ranks of {listed(self.outside)} are not uniform: under this study's prior and {self.n} "
                f"devices the intervals do not contain the truth as often as they say{of_chains}"
            )
        if unmixed := [name for name, share in self.poor.items() if share > MOST_MIX_POORLY]:
            found.append(
                f"in most studies the chain of {listed(unmixed)} mixes poorly: ranks are the sampler's, and "
                "say nothing of the intervals; state a narrower prior, or simulate more devices"
            )
        return tuple(found)

    def to_document(self) -> dict[str, Any]:
        """This question's entry in calibration.json."""
        return {
            "model": self.model,
            "n": self.n,
            "studies": len(next(iter(self.ranks.values()))),
            "draws": DRAWS,
            "false_alarm": FALSE_ALARM,
            "ok": self.ok,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "parameters": {name: self._row(name, ranks) for name, ranks in self.ranks.items()},
        }

    def _row(self, name: str, ranks: Ranks) -> dict[str, Any]:
        return {
            "outside": name in self.outside,
            "chi_square_p": chi_square_p(ranks),
            "covered_50": covered(ranks, 0.5),
            "covered_90": covered(ranks, 0.9),
            "poorly_mixed": self.poor[name],
            "ranks": ranks.tolist(),
        }


def calibrate(
    question: Question,
    studies: int = STUDIES,
    n: int = DEVICES,
    seed: int = 0,
    clip: bool = False,
    progress: Progress = lambda _message: None,
) -> Calibration:
    """Calibrate one question's posterior by simulation: rank each truth among the draws of its own fit.

    A secure sum is simulated for n clients, all of whom answer.

    Args:
        question: a question that people answer.
        studies: how many studies are simulated and fitted, each with a truth from the prior.
        n: devices in each.
        seed: of everything that is drawn.
        clip: whether simulated records are clipped as devices do, which the regression models do not know of.
        progress: is told in words what was done.

    Returns:
        The ranks by parameter, the band that ranks of a sound fit stay in, and which parameters leave it.

    Raises:
        InputError: a seed or a number of studies or devices that cannot be, or a question that cannot be
            simulated.
    """
    check_simulation(question, studies, n, seed)
    own_seed = crc32(f"{seed} {question.id}".encode())
    question = for_clients(question, n)
    truths = prior_truths(question, studies, own_seed)
    models = _simulated_models(question, truths, n, own_seed, clip, progress)

    def told(done: int) -> None:
        said = f"{question.id}: fitted {done} of {studies} simulated studies"
        progress(Step(said, studies + FITS_A_SIMULATION * done, (1 + FITS_A_SIMULATION) * studies))

    draws = posterior_draws(models, own_seed, DRAWS, THIN, told)
    ranks = ranks_of(truths, draws, own_seed)
    band = simultaneous_band(studies, DRAWS, FALSE_ALARM / len(ranks))
    outside = tuple(name for name, found in ranks.items() if leaves(band, found))
    poor = poorly_mixed(draws)
    notes = (
        *models[0].notes,
        *_clipping(question, truths, own_seed, clip),
        *mixing_notes(poor, SOME_MIX_POORLY),
    )
    return Calibration(question.id, question.model.name, n, seed, ranks, band, outside, poor, notes)


def check_simulation(question: Question, studies: int, n: int, seed: int) -> None:
    """Raises InputError for what `calibrate` cannot do, before anything is simulated."""
    if not isinstance(question, Question):
        raise InputError(
            f"calibrate takes a Question, not a {type(question).__name__}: study.question(question_id) is one"
        )
    check_seed(seed)
    check_studies(studies)
    check_devices(n)
    empty_model(for_clients(question, n))


def empty_model(question: Question) -> Model:
    """The question's model before any report. Raises InputError for what cannot be simulated.

    Nothing in a study says how many records and holders a table will have; and simulated studies are
    summaries, which perturbed records of a yes/no response do not have.
    """
    if question.ask == "table":
        raise InputError(f"{question.id}: tables of data holders cannot be simulated, only answers of people")
    if (question.mechanism.name, question.model.name) == ("gaussian_record", "logistic_regression"):
        raise InputError(
            f"{question.id}: perturbed records of a yes/no response have no summary to simulate; those of "
            "the mechanism gaussian_statistics have one"
        )
    mechanism = mechanism_for(question)
    values = np.zeros(REDUCTIONS[mechanism.name].size(mechanism), dtype=np.int64)
    return model_for(question, QuestionSummary(0, values))


def prior_truths(question: Question, count: int, seed: int) -> list[Truth]:
    """Independent truths from the question's prior."""
    model = empty_model(question)
    sites = sample_prior(model, seed, count)
    parameters = model.parameters(sites)
    return [
        Truth(
            {name: float(values[i]) for name, values in parameters.items()},
            {name: values[i] for name, values in sites.items()},
        )
        for i in range(count)
    ]


def _simulated_models(
    question: Question, truths: list[Truth], n: int, seed: int, clip: bool, progress: Progress
) -> list[Model]:
    mechanism = mechanism_for(question)
    models = []
    for done, (truth, random) in enumerate(
        zip(truths, np.random.default_rng(seed).spawn(len(truths)), strict=True), 1
    ):
        models.append(model_for(question, simulate(question, mechanism, truth, n, random, clip)))
        if done % 50 == 0 or done == len(truths):
            said = f"{question.id}: simulated {done} of {len(truths)} studies of {n} devices"
            progress(Step(said, done, (1 + FITS_A_SIMULATION) * len(truths)))
    return models


def ranks_of(truths: list[Truth], draws: Parameters, seed: int) -> dict[str, Ranks]:
    """{parameter: how many of its draws are below the truth, for each study}; ties are broken at random."""
    random = np.random.default_rng([seed, 2])
    ranks = {}
    for name, found in draws.items():
        truth = np.asarray([one.parameters[name] for one in truths])[:, None]
        ties = np.sum(found == truth, axis=1)
        ranks[name] = np.sum(found < truth, axis=1) + random.integers(0, ties + 1)
    return ranks


def chi_square_p(ranks: Ranks) -> float:
    """The p-value of uniform ranks in ten bins: for the table; the verdict is the band's."""
    counts = np.bincount(ranks * BINS // (DRAWS + 1), minlength=BINS)
    return float(stats.chisquare(counts).pvalue)


def covered(ranks: Ranks, level: float) -> float:
    """The share of studies whose central interval of this level contains the truth."""
    place = (ranks + 0.5) / (DRAWS + 1)
    return float(np.mean(np.abs(place - 0.5) <= level / 2))


def mixing_notes(poor: Mapping[str, float], some: float) -> tuple[str, ...]:
    """A note where more chains than `some` mix poorly. poor: `Calibration.poor`."""
    worst = max(poor, key=lambda name: poor[name])
    if poor[worst] <= some:
        return ()
    return (
        f"in {poor[worst]:.0%} of the simulated studies the one short chain of {worst} has fewer than "
        f"{FEWEST_EFFECTIVE:.0f} effective draws: what it says is rough there; `ldpkit fit` runs four longer "
        "chains, and says where they do not mix",
    )


def _clipping(question: Question, truths: list[Truth], seed: int, clip: bool) -> tuple[str, ...]:
    """A note on clipped records; models of numbers know of clipping."""
    if question.norm is None:
        return ()
    random = np.random.default_rng([seed, 3])
    share = float(np.mean([clipped_share(question, truth, random) for truth in truths]))
    if share <= FEW_CLIPPED:
        return ()
    # Perturbed records are simulated by the mechanism itself, which clips.
    clips = clip or question.mechanism.name == "gaussian_record"
    done = "they were clipped here too" if clips else "not here: --device clips them"
    return (
        f"{share:.0%} of the records that the prior expects lie beyond their bounds or their norm; devices "
        f"clip them, which the model does not know ({done}). State a narrower prior on feature_sd, or a "
        "larger norm",
    )
