"""The headline of a report: one sentence for each question, and how far to trust it.

It gives no number that is not usable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from inference.results.intervals import PLACE, REFUSED, USUAL, Interval
from inference.results.posterior import CLIPPED_MEAN, MEAN, Posterior
from inference.results.verdict import CARE, NOT_USABLE, USABLE
from schemas import Question, Study

# A headline gives at most this many choices or coefficients; the question's table has all.
MOST_SAID = 4
# Styles of a verdict.
STYLES = {USABLE: "ok", CARE: "note", NOT_USABLE: "bad"}


class Headline(NamedTuple):
    """One question's line. text: the question. says: a sentence. verdict: in words; shown: its style."""

    id: str
    text: str
    says: str
    verdict: str
    shown: str


def headlines(
    study: Study, posteriors: Mapping[str, Posterior], interval: Interval = USUAL
) -> list[Headline]:
    """Return a line for each fitted question, in the study's order."""
    asked = [question for question in study.questions if question.id in posteriors]
    return [headline(question, posteriors[question.id], interval) for question in asked]


def lists_in_words(study: Study, fitted: Collection[str]) -> list[str]:
    """Return a sentence for each list of boxes with at least one fitted box."""
    found = []
    for section in study.sections:
        if not section.any_of or not any(name in fitted for name in section.questions):
            continue
        boxes = [study.question(name).mechanism.epsilon for name in section.questions]
        found.append(
            f"“{section.title}” is a list of boxes; people tick any number: each box has its own share, and "
            f"the shares need not add up to 100 %. One person's {len(boxes)} boxes cost epsilon "
            f"{float(sum(boxes, Fraction(0))):g} together."
        )
    return found


def headline(question: Question, posterior: Posterior, interval: Interval = USUAL) -> Headline:
    """Return the line of one question's posterior."""
    wanted = _wanted(question, posterior)
    usable = [name for name in wanted if posterior.verdict.of(name).word != NOT_USABLE]
    said: list[str] = []
    for name in usable[:MOST_SAID]:
        _, median, ends = posterior.in_words(name, interval)
        said.append(f"{wanted[name]} is {median} ({'' if said else f'{interval.name} '}{ends})")
    if question.ordered and any(name != REFUSED for name in usable):
        said += [_middle(question, posterior)]
    more = len(usable) - MOST_SAID
    said += [f"and {more:,} more below"] if more > 0 else []
    unusable = [wanted[name] for name in wanted if name not in usable]
    says = "; ".join([*said, *([f"not usable: {_listed(unusable)}"] if said and unusable else [])])
    # A label or a feature's name stays as it is.
    says = f"{says[0].upper()}{says[1:]}." if says.startswith("the ") else f"{says}."
    return judged_line(question.full_text or question.id, says if said else "No number.", posterior)


def judged_line(text: str, says: str, posterior: Posterior) -> Headline:
    """Return a line with its verdict. says: the numbers, which are left out if none is usable."""
    judged = posterior.verdict.overall
    usable = any(posterior.verdict.of(name).word != NOT_USABLE for name in posterior.headlines)
    return Headline(
        posterior.question, text, says if usable else "No number.", str(judged), STYLES[judged.word]
    )


def _listed(words: list[str]) -> str:
    shown = words[:MOST_SAID]
    more = len(words) - len(shown)
    return ", ".join([*shown, *([f"{more:,} more"] if more else [])])


def _wanted(question: Question, posterior: Posterior) -> dict[str, str]:
    """Return {parameter: its name in words}: shares, the largest first; slopes; a number's mean; else all."""
    draws, names = posterior.draws, posterior.headlines
    refused = {REFUSED: "the share who prefer not to say"} if REFUSED in draws else {}
    among = " among those who say" if refused else ""
    if posterior.model == "bernoulli":
        return {"p": f"the share of yes{among}", **refused}
    if posterior.model == "multinomial":
        if question.ordered:
            return _of_scale(question, among, refused)
        shares = sorted(set(names) - set(refused), key=lambda name: -float(np.median(draws[name])))
        return {**refused, **{name: f"“{name[2:-1]}”{among}" for name in shares}}
    response = question.response.id if question.response is not None else "the response"
    kind = "the odds ratio of" if posterior.log_odds else "the slope of"
    means = {MEAN: f"the mean{among}", CLIPPED_MEAN: f"the mean of the answers as clipped{among}"}
    of_slopes = {
        name: f"{kind} {response} by {name[12:-1]}" for name in names if name.startswith("coefficient[")
    }
    return {name: {**means, **of_slopes, **refused}.get(name, name) for name in names}


def _of_scale(question: Question, among: str, refused: dict[str, str]) -> dict[str, str]:
    """Return names in words of refusals, the mean place, and the share of each level in the scale's order."""
    ends = f"from 1, “{question.choices[0]}”, to {len(question.choices)}, “{question.choices[-1]}”"
    levels = {f"p[{label}]": f"“{label}”{among}" for label in question.choices}
    return {**refused, PLACE: f"the mean place{among}, {ends},", **levels}


def _middle(question: Question, posterior: Posterior) -> str:
    """State the most probable level of the median answer, and its probability."""
    shares = np.stack([posterior.draws[f"p[{label}]"].ravel() for label in question.choices])
    places = (np.cumsum(shares, axis=0) < 0.5).sum(axis=0)
    counts = np.bincount(np.minimum(places, len(shares) - 1), minlength=len(shares))
    likely = int(counts.argmax())
    sure = 100 * counts[likely] / counts.sum()
    return f"the median answer is “{question.choices[likely]}” with {sure:.0f} % probability"
