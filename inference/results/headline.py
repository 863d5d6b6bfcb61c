"""The headline of a report: one sentence for each question, and how far to trust it.

It gives a number only if the draws are good, the reports do not contradict the model, and the number was
learnt from the reports.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from inference.results.intervals import PLACE, REFUSED, USUAL, Interval, in_words
from inference.results.posterior import Posterior
from inference.results.prior_notes import DROWNED
from inference.results.verdict import BAD
from ldp_client.documents.rational import Rational
from schemas import Question, Study

# A headline gives at most this many choices or coefficients; the question's table has all.
MOST_SAID = 4
NO_NUMBER = {
    "convergence": "No number: the draws do not represent the posterior.",
    "fit": "No number: the reports do not fit the model.",
    "informativeness": "Nothing was learnt: the reports do not say more than the prior.",
}
# Styles of a verdict: "ok" only if every part is good.
OK, NOTE, WRONG = "ok", "note", "bad"


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
            f"{float(sum(boxes, Rational(0))):g} together."
        )
    return found


def headline(question: Question, posterior: Posterior, interval: Interval = USUAL) -> Headline:
    """Return the line of one question's posterior."""
    said = _numbers(question, posterior, interval)
    # A label or a feature's name stays as it is.
    says = f"{said[0].upper()}{said[1:]}." if said.startswith(("the ", "of ")) else f"{said}."
    return judged_line(question.full_text or question.id, says, posterior)


def judged_line(text: str, says: str, posterior: Posterior) -> Headline:
    """Return a line with its verdict. says: the numbers; a reason replaces them if the verdict is bad."""
    verdict = posterior.verdict
    shown = OK if verdict.ok else WRONG if verdict.bad else NOTE
    words = verdict.headline()
    why = [said for name, said in NO_NUMBER.items() if verdict.parts[name].state == BAD]
    return Headline(posterior.question, text, (why or [says])[0], f"{words[0].upper()}{words[1:]}", shown)


def _numbers(question: Question, posterior: Posterior, interval: Interval) -> str:
    found = _wanted(question, posterior)
    known = [name for name in found if _learnt(posterior, name)]
    if not known:
        return f"of {_listed(list(found.values()))} the reports do not say more than the prior"
    said = [_one(question, posterior, name, found[name], interval) for name in known[:MOST_SAID]]
    said[0] = said[0].replace(" (", f" ({interval.name} ", 1)
    if question.ordered and any(name != REFUSED for name in known):
        said += [_middle(question, posterior)]
    more = len(known[MOST_SAID:])
    line = "; ".join([*said, *([f"and {more:,} more below"] if more else [])])
    unknown = [found[name] for name in found if name not in known]
    return f"{line}; of {_listed(unknown)} the reports do not say more than the prior" if unknown else line


def _listed(words: list[str]) -> str:
    shown = words[:MOST_SAID]
    more = len(words) - len(shown)
    return ", ".join([*shown, *([f"{more:,} more"] if more else [])])


def _wanted(question: Question, posterior: Posterior) -> dict[str, str]:
    """Return {parameter: its name in words}: shares, the largest first; slopes; a number's mean; else all."""
    draws = posterior.draws
    refused = {REFUSED: "the share who prefer not to say"} if REFUSED in draws else {}
    among = " among those who say" if refused else ""
    if posterior.model == "bernoulli":
        return {"p": f"the share of yes{among}", **refused}
    if posterior.model == "multinomial":
        if question.ordered:
            return _of_scale(question, among, refused)
        shares = sorted(set(draws) - set(refused), key=lambda name: -float(np.median(draws[name])))
        named = {name: f"“{name.removeprefix('p[').removesuffix(']')}”{among}" for name in shares}
        return {**refused, **named}
    slopes = [name for name in draws if name.startswith("coefficient[")]
    if slopes:
        kind = "log-odds of" if question.response is not None and question.response.bounds is None else ""
        response = question.response.id if question.response is not None else "the response"
        return {name: f"{kind} {response} by {name[12:-1]}".strip() for name in slopes}
    if question.ask == "number" and "mean" in draws:
        return {"mean": f"the mean{among}", **refused}
    return {name: name for name in draws}


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


def _learnt(posterior: Posterior, name: str) -> bool:
    """Return True if the reports made a parameter sufficiently narrower than its prior."""
    return posterior.narrowing(name) <= DROWNED


def _one(question: Question, posterior: Posterior, name: str, called: str, interval: Interval) -> str:
    unit = f" {question.unit}" if name == "mean" and question.unit else ""
    said = in_words(posterior.draws[name], posterior.is_share(name), interval)
    return f"{called} is {said['median']}{unit} ({said['interval']})"
