"""What a posterior says of its prior: whether the reports taught anything, and whether the two disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.results.diagnostics import is_fixed, listed
from inference.results.verdict import BAD, PARTIAL, Part

Parameters = Mapping[str, NDArray[np.float64]]

# A posterior sd above this share of the prior's: about where the prior is the reports taught almost nothing.
DROWNED = 0.8
# In the prior's sds: farther off, the reports have moved the posterior, and the prior holds it back.
NEAR = 1.0
# A posterior median with less of the prior than this beyond it, on its side, is far out. Of many parameters
# one is there by chance, so all share it.
FAR = 0.01
# And one that is so many times as far from the prior's middle as its farthest draw is beyond the prior.
CONTRADICTED = 1.5
# A posterior's median is so much nearer to an end of its uniform prior than to the 5 % quantile on the other
# side where the reports' own estimate lies two standard errors beyond the end: on it, it is 0.52. Of truths
# from the prior two in a hundred at most are there, times the standard error in widths of the prior.
LEANING = 0.36
WIDER = "state a wider prior"


def is_log_normal(stated: Any) -> bool:
    """Whether a prior, as stated, is log-normal: there logs are compared, as a few draws make up its sd."""
    return isinstance(stated, Mapping) and stated.get("distribution") == "log_normal"


def knowledge(parameters: Parameters, prior: Parameters, stated: Mapping[str, Any] | None = None) -> Part:
    """What was learnt, from draws (chains, draws) of each parameter beside draws (draws,) of its prior.

    A method without a prior has learnt all that it says. stated: {parameter: its prior, as stated}.
    """
    logs = {name for name, one in (stated or {}).items() if is_log_normal(one)}
    prior = {name: np.log(draws) if name in logs else draws for name, draws in prior.items()}
    moving = {name: np.log(draws) if name in logs else draws for name, draws in _moving(parameters).items()}
    wide = [name for name, draws in moving.items() if name in prior and _is_wide(draws, prior[name])]
    drowned = [name for name in wide if _is_near(moving[name], prior[name])]
    held = [name for name in wide if name not in drowned]
    reasons = []
    if drowned:
        reasons.append(
            f"the noise drowns the signal of {listed(drowned)}: the posterior is hardly narrower than the "
            "prior; more devices or a larger epsilon are needed"
        )
    if held:
        reasons.append(
            f"the prior holds {listed(held)} back: the reports move the posterior away from it, and make it "
            f"hardly narrower, so that the prior says as much as they do; {WIDER} if that one is wrong, or "
            "have more devices or a larger epsilon"
        )
    if not reasons:
        return Part()
    return Part(BAD if len(drowned) == len(moving) else PARTIAL, tuple(reasons))


def contradictions(parameters: Parameters, prior: Parameters, remedy: str = WIDER) -> tuple[str, ...]:
    """Reasons against the model where the posterior lies beyond all that the prior expects.

    remedy: what to do where the prior is the one that is wrong. Of truths from a normal prior one in 10⁵
    does, from an exponential one one in 10⁴.
    """
    beyond = [name for name, draws in _moving(parameters).items() if _contradicts(draws, prior.get(name))]
    if not beyond:
        return ()
    return (
        f"the prior contradicts the reports: of {listed(beyond)} it expects nothing near what they say, so "
        f"that the numbers are a compromise of the two; {remedy}, or look for what the model leaves out",
    )


def prior_notes(parameters: Parameters, prior: Parameters, remedy: str = WIDER) -> tuple[str, ...]:
    """A note where the posterior lies far out in its prior, but not beyond it.

    remedy: what to do where the prior is the one that is wrong.
    """
    moving = _moving(parameters)
    level = FAR / max(len(moving), 1)
    far = [
        name
        for name, draws in moving.items()
        if name in prior and _beyond(draws, prior[name]) < level and not _contradicts(draws, prior[name])
    ]
    if not far:
        return ()
    return (
        f"prior and reports disagree about {listed(far)}: the posterior lies far out in the prior, as a "
        f"compromise; {remedy} if that one is wrong, or look for what the model leaves out",
    )


def leaning_notes(parameters: Parameters, stated: Mapping[str, Any]) -> tuple[str, ...]:
    """A note where a posterior is pressed against an end of its uniform prior, from the priors as stated."""
    ends = _uniform_ends(stated)
    leaning = [
        name for name, draws in _moving(parameters).items() if name in ends and _leans(draws, *ends[name])
    ]
    if not leaning:
        return ()
    return (
        f"the posterior of {listed(leaning)} is pressed against an end of its uniform prior: the reports "
        "speak for values that the prior rules out; look at the prior's units, and state a wider one",
    )


def _uniform_ends(stated: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """{parameter: the ends of its uniform prior}, of vectors' entries too."""
    laws = {}
    for key, law in stated.items():
        if not isinstance(law, Mapping):
            continue
        if "distribution" in law:
            laws[key] = law
        else:
            # Entries of `coefficients` are named coefficient[…].
            laws |= {
                f"{part}[{name}]": one for name, one in law.items() for part in (key, key.removesuffix("s"))
            }
    return {
        name: (float(law["low"]), float(law["high"]))
        for name, law in laws.items()
        if isinstance(law, Mapping) and law.get("distribution") == "uniform"
    }


def _leans(draws: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether an end is much nearer to the median than the posterior reaches on the other side."""
    below, middle, above = np.quantile(draws, [0.05, 0.5, 0.95])
    return bool(
        min(high - middle - LEANING * (middle - below), middle - low - LEANING * (above - middle)) < 0
    )


def _moving(parameters: Parameters) -> dict[str, NDArray[np.float64]]:
    return {name: draws for name, draws in parameters.items() if not is_fixed(draws)}


def _contradicts(draws: NDArray[np.float64], prior: NDArray[np.float64] | None) -> bool:
    """Whether the posterior's median lies far beyond the farthest of the prior's draws on its side."""
    if prior is None:
        return False
    centre, middle = np.median(prior), np.median(draws)
    away = (prior - centre) * np.sign(middle - centre)
    return bool(abs(middle - centre) > CONTRADICTED * max(float(away.max()), 1e-300))


def _is_wide(draws: NDArray[np.float64], prior: NDArray[np.float64]) -> bool:
    return bool(draws.std() > DROWNED * prior.std())


def _is_near(draws: NDArray[np.float64], prior: NDArray[np.float64]) -> bool:
    return bool(abs(draws.mean() - prior.mean()) < NEAR * prior.std())


def _beyond(draws: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    """How much of the prior lies beyond the posterior's median, and no less than its draws can tell."""
    middle = np.median(draws)
    below, above = float(np.mean(prior <= middle)), float(np.mean(prior >= middle))
    return max(min(below, above), 1 / len(prior))
