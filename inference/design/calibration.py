"""The calibration of a question: truths from its prior, simulated reports, fits, ranks, and a verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from inference.design.bands import leaves, simultaneous_band
from inference.design.simulated_posteriors import FEWEST_EFFECTIVE, fit_studies, poor_chains
from inference.design.simulation import clipping, for_devices
from inference.limits import check_devices, check_seed, check_studies
from inference.models import model_for
from inference.models.base import Model, Truth
from inference.results.verdict import listed
from inference.sampling.space import sample_prior
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

Ranks = NDArray[np.int64]

STUDIES, DEVICES = 100, 10_000
# Every third draw of each chain: near enough to independent, which ranks need.
DRAWS, THIN = 99, 3
FALSE_ALARM = 0.01
# If the chains of more studies than the first share mix poorly, a note reports it; beyond the second, the
# ranks reflect the sampler.
SOME_MIX_POORLY, MOST_MIX_POORLY = 0.05, 0.5
# With more clipped records than these, a note on the regression models' assumptions is due.
FEW_CLIPPED = 0.01


@dataclass(frozen=True)
class Calibration:
    """ranks: {parameter: ranks of the truth among the draws, one for each study}.

    outside: parameters whose ranks leave the band. poor: {parameter: the share of studies whose chain mixes
    poorly}. notes: for readers.
    """

    question: str
    model: str
    n: int
    ranks: dict[str, Ranks]
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
        parameters = {
            name: {
                "outside": name in self.outside,
                "covered_50": covered(ranks, 0.5),
                "covered_90": covered(ranks, 0.9),
                "poorly_mixed": self.poor[name],
                "ranks": ranks.tolist(),
            }
            for name, ranks in self.ranks.items()
        }
        return {
            "model": self.model,
            "n": self.n,
            "studies": len(next(iter(self.ranks.values()))),
            "draws": DRAWS,
            "false_alarm": FALSE_ALARM,
            "ok": self.ok,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "parameters": parameters,
        }

    def lines(self) -> list[str]:
        """Return the coverage of each parameter in words, the reasons and the notes."""
        verdict = "calibrated" if self.ok else "NOT CALIBRATED"
        studies = len(next(iter(self.ranks.values())))
        head = f"{self.question} ({self.model}, {studies} studies of {self.n} devices): {verdict}"
        lines = [f"{head} (a sound one is called wrong once in {1 / FALSE_ALARM:.0f} times)"]
        for name, ranks in self.ranks.items():
            lines.append(
                f"  {name:28} 50 % intervals contain the truth in {covered(ranks, 0.5):.0%}, 90 % in "
                f"{covered(ranks, 0.9):.0%} of the studies"
            )
        return [*lines, *(f"  {line}" for line in (*self.reasons, *self.notes))]


def calibrate(
    question: Question,
    studies: int = STUDIES,
    n: int = DEVICES,
    seed: int = 0,
    clip: bool = False,
    progress: Callable[[str], None] = lambda _message: None,
) -> Calibration:
    """Calibrate one question's posterior by simulation: rank each truth among the draws of its fit.

    A secure sum is simulated for n devices, all of whom answer.

    Args:
        question: a question that people answer.
        studies: how many studies are simulated and fitted, each with a truth from the prior.
        n: devices in each.
        seed: of all random draws.
        clip: whether simulated records are clipped as devices do, which the regression models do not know of.
        progress: is called with sentences on the progress.

    Returns:
        The ranks by parameter, and the parameters whose ranks leave the band of a sound fit.

    Raises:
        InputError: an impossible seed or number of studies or devices, or a question that cannot be
            simulated.
    """
    # 1. Simulate and fit the studies, and count the draws below each truth.
    check_simulation(question, studies, n, seed)
    own_seed, asked = crc32(f"{seed} {question.id}".encode()), for_devices(question, n)
    truths = prior_truths(asked, studies, own_seed)
    line = f"{question.id}: fitted {{}} of {studies} simulated studies of {n} devices"
    cells = [(n, truth) for truth in truths]
    draws, model = fit_studies(asked, cells, own_seed, DRAWS, THIN, line, progress, clip=clip)
    # 2. Judge the ranks.
    random, ranks = np.random.default_rng([own_seed, 2]), {}
    for name, found in draws.items():
        values = np.asarray([truth.parameters[name] for truth in truths])[:, None]
        # A truth that equals some draws is placed among them by chance.
        ties = np.sum(found == values, axis=1)
        ranks[name] = np.sum(found < values, axis=1) + random.integers(0, ties + 1)
    band = simultaneous_band(studies, DRAWS, FALSE_ALARM / len(ranks))
    outside = tuple(name for name, own in ranks.items() if leaves(band, own))
    poor = {name: float(np.mean(own)) for name, own in poor_chains(draws).items()}
    mixing = mixing_notes(poor, SOME_MIX_POORLY)
    notes = (*model.notes, *_clipping(asked, truths, own_seed, clip), *mixing)
    return Calibration(asked.id, asked.model.name, n, ranks, outside, poor, notes)


def check_simulation(question: Question, studies: int, n: int, seed: int) -> None:
    """Raise InputError for anything that `calibrate` cannot do, before anything is simulated."""
    check_seed(seed)
    check_studies(studies)
    check_devices(n)
    empty_model(for_devices(question, n))


def empty_model(question: Question) -> Model:
    """Return the question's model before any report. Raises InputError if it cannot be simulated.

    A study does not state how many records and holders a table will have; and simulated studies are
    summaries, which perturbed records of a yes/no response do not have.
    """
    if question.ask == "table":
        raise InputError(
            f"{question.id}: tables of data holders cannot be simulated, only answers of people",
            code="calibrate.holders_table",
        )
    if (question.mechanism.name, question.model.name) == ("gaussian_record", "logistic_regression"):
        raise InputError(
            f"{question.id}: perturbed records of a yes/no response have no summary to simulate; those of "
            "the mechanism gaussian_statistics have one",
            code="calibrate.no_summary_of_records",
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


def covered(ranks: Ranks, level: float) -> float:
    """The share of studies whose central interval of this level contains the truth."""
    place = (ranks + 0.5) / (DRAWS + 1)
    return float(np.mean(np.abs(place - 0.5) <= level / 2))


def mixing_notes(poor: Mapping[str, float], some: float) -> tuple[str, ...]:
    """Return a note if more chains than `some` mix poorly. poor: `Calibration.poor`."""
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
    share = float(np.mean([clipping(question, truth, random)[0] for truth in truths]))
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
