"""Compare a posterior with its prior: whether the reports were informative, and whether the two disagree."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.results.convergence import is_fixed
from inference.results.verdict import CARE, DROWNED, FIT, INFORMATIVENESS, Finding, listed

Parameters = Mapping[str, NDArray[np.float64]]

# Nearness in the prior's sds. Farther off, the reports have moved the posterior, and the prior holds it back.
NEAR = 1.0
# A posterior median is far out if less of the prior than this is beyond it, on its side. All parameters share
# this probability: among many parameters, some would be far out by chance.
FAR = 0.01
# A posterior median contradicts the prior at this multiple of the farthest prior draw's distance from the
# prior's middle.
CONTRADICTED = 1.5
# Largest ratio of a posterior median's distances from an end of its uniform prior and from the 5 % quantile
# on the other side. It corresponds to a reports' estimate two standard errors beyond the end; an estimate at
# the end has a ratio of 0.52. If truths come from the prior, at most 2 % times the standard error in widths
# of the prior are flagged.
LEANING = 0.36
WIDER = "state a wider prior"


def informativeness(
    parameters: Parameters, prior: Parameters, stated: Mapping[str, Any] | None = None
) -> Iterator[Finding]:
    """Judge what was learnt, comparing draws (chains, draws) of each parameter with prior draws (draws,).

    A parameter without a prior counts as learnt. stated: {parameter: its prior, as stated}.
    """
    moving = _moving(parameters)
    drowned: list[str] = []
    held: list[str] = []
    for name in [name for name in moving if name in prior]:
        after, before, law = moving[name], prior[name], (stated or {}).get(name)
        # The sd of a log-normal prior, or of a mean's prior, rests on few draws: logs are compared.
        is_log_normal = isinstance(law, Mapping) and law.get("distribution") == "log_normal"
        if is_log_normal or (name == "mean" and law is None and float(before.min()) > 0):
            after, before = np.log(after), np.log(before[np.isfinite(before)])
        if after.std() > DROWNED * before.std():
            near = abs(after.mean() - before.mean()) < NEAR * before.std()
            (drowned if near else held).append(name)
    if drowned:
        reason = (
            f"the noise drowns the signal of {listed(drowned)}: the posterior is hardly narrower than the "
            "prior; more devices or a larger epsilon are needed"
        )
        yield Finding(INFORMATIVENESS, reason, quantities=frozenset(drowned))
    if held:
        reason = (
            f"the prior holds {listed(held)} back: the reports move the posterior away from it, but hardly "
            f"narrow it, so that the prior counts as much as they do; {WIDER} if the prior is wrong, or use "
            "more devices or a larger epsilon"
        )
        yield Finding(INFORMATIVENESS, reason, CARE, frozenset(held))


def disagreements(parameters: Parameters, prior: Parameters, remedy: str = WIDER) -> Iterator[Finding]:
    """Yield a reason against the model if the posterior is beyond all prior draws, a doubt if it is far out.

    remedy: advice if the prior is wrong. Of truths from a normal prior, one in 10⁵ gives a false reason; from
    an exponential prior, one in 10⁴.
    """
    moving = _moving(parameters)
    far, contradicted = [], []
    for name in [name for name in moving if name in prior]:
        before, middle = prior[name], np.median(moving[name])
        centre = np.median(before)
        away = (before - centre) * np.sign(middle - centre)
        # The prior's mass beyond the posterior's median, at least 1/draws.
        sides = float(np.mean(before <= middle)), float(np.mean(before >= middle))
        beyond = max(min(sides), 1 / len(before))
        if abs(middle - centre) > CONTRADICTED * max(float(away.max()), 1e-300):
            contradicted.append(name)
        elif beyond < FAR / len(moving):
            far.append(name)
    if far:
        note = (
            f"prior and reports disagree about {listed(far)}: the posterior lies far out in the prior, as a "
            f"compromise; {remedy} if the prior is wrong, or look for effects that the model ignores"
        )
        yield Finding(FIT, note, CARE, frozenset(far))
    if contradicted:
        reason = (
            f"the prior contradicts the reports: for {listed(contradicted)} it has no mass near the reports' "
            f"values, and the numbers are a compromise of the two; {remedy}, or look for effects that the "
            "model ignores"
        )
        yield Finding(FIT, reason)


def leaning_notes(parameters: Parameters, stated: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a doubt if a posterior is pressed against an end of its uniform prior, as stated."""
    # 1. The ends of uniform priors, also for vectors' entries: those of `coefficients` are coefficient[…].
    laws: dict[str, Any] = dict(stated)
    for key, law in stated.items():
        if isinstance(law, Mapping) and "distribution" not in law:
            parts = (key, key.removesuffix("s"))
            laws |= {f"{part}[{name}]": entry for part in parts for name, entry in law.items()}
    # 2. An end that is much nearer to the median than the posterior extends on the other side.
    leaning = []
    for name, draws in _moving(parameters).items():
        law = laws.get(name)
        if isinstance(law, Mapping) and law.get("distribution") == "uniform":
            low, high = float(law["low"]), float(law["high"])
            below, middle, above = np.quantile(draws, [0.05, 0.5, 0.95])
            if min(high - middle - LEANING * (middle - below), middle - low - LEANING * (above - middle)) < 0:
                leaning.append(name)
    if leaning:
        note = (
            f"the posterior of {listed(leaning)} is pressed against an end of its uniform prior: the reports "
            "speak for values that the prior rules out; look at the prior's units, and state a wider one"
        )
        yield Finding(FIT, note, CARE, frozenset(leaning))


def _moving(parameters: Parameters) -> dict[str, NDArray[np.float64]]:
    return {name: draws for name, draws in parameters.items() if not is_fixed(draws)}
