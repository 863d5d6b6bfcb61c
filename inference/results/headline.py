"""What a report says first: of each question one sentence, and what may be believed of it.

A number stands in it only where the draws are good, the reports do not speak against the model, and the
reports taught it.
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

# Of many choices or coefficients a headline has the first; the question's own table has all.
MOST_SAID = 4
NO_NUMBER = {
    "chains": "No number: the draws do not represent the posterior.",
    "model": "No number: the reports do not fit the model.",
    "knowledge": "Nothing was learnt: the reports do not say more than the prior.",
}
# How a verdict is shown: only what is good in every part as good.
OK, NOTE, WRONG = "ok", "note", "bad"


class Headline(NamedTuple):
    """One question's line. text: as people were asked. says: a sentence. verdict: in words; shown: how."""

    id: str
    text: str
    says: str
    verdict: str
    shown: str


def headlines(
    study: Study, posteriors: Mapping[str, Posterior], interval: Interval = USUAL
) -> list[Headline]:
    """A line for each question that was fitted, in the study's order."""
    asked = [question for question in study.questions if question.id in posteriors]
    return [headline(question, posteriors[question.id], interval) for question in asked]


def lists_in_words(study: Study, fitted: Collection[str]) -> list[str]:
    """A sentence for each list of boxes of which some were fitted."""
    found = []
    for section in study.sections:
        if not section.any_of or not any(name in fitted for name in section.questions):
            continue
        boxes = [study.question(name).mechanism.epsilon for name in section.questions]
        found.append(
            f"“{section.title}” is a list, of which people tick any: each box has a share of its own, and "
            f"the shares need not add up to 100 %. One person's {len(boxes)} boxes cost epsilon "
            f"{float(sum(boxes, Rational(0))):g} together."
        )
    return found


def headline(question: Question, posterior: Posterior, interval: Interval = USUAL) -> Headline:
    """What one question's posterior says."""
    said = _numbers(question, posterior, interval)
    # A label or a feature's name stays as it is.
    says = f"{said[0].upper()}{said[1:]}." if said.startswith(("the ", "of ")) else f"{said}."
    return judged_line(question.full_text or question.id, says, posterior)


def judged_line(text: str, says: str, posterior: Posterior) -> Headline:
    """A line with its verdict. says: its numbers, in whose place stands why there are none, where it must."""
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
    """{parameter: what it is called}: shares, the largest first; slopes; a number's mean; else all."""
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
    """Refusals, the mean place, and the share of each level in the scale's order."""
    ends = f"from 1, “{question.choices[0]}”, to {len(question.choices)}, “{question.choices[-1]}”"
    levels = {f"p[{label}]": f"“{label}”{among}" for label in question.choices}
    return {**refused, PLACE: f"the mean place{among}, {ends},", **levels}


def _middle(question: Question, posterior: Posterior) -> str:
    """Which level the median answer is at, and how sure that is."""
    shares = np.stack([posterior.draws[f"p[{label}]"].ravel() for label in question.choices])
    places = (np.cumsum(shares, axis=0) < 0.5).sum(axis=0)
    counts = np.bincount(np.minimum(places, len(shares) - 1), minlength=len(shares))
    likely = int(counts.argmax())
    sure = 100 * counts[likely] / counts.sum()
    return f"the median answer is “{question.choices[likely]}” with {sure:.0f} % probability"


def _learnt(posterior: Posterior, name: str) -> bool:
    """Whether the reports made it narrower than its prior."""
    return posterior.narrowing(name) <= DROWNED


def _one(question: Question, posterior: Posterior, name: str, called: str, interval: Interval) -> str:
    unit = f" {question.measured_in}" if name == "mean" and question.measured_in else ""
    said = in_words(posterior.draws[name], posterior.is_share(name), interval)
    return f"{called} is {said['median']}{unit} ({said['interval']})"
