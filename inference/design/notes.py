"""What readers of a plan must know: what was assumed, and where its widths are rough or the prior's own."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inference.design.truth import settable
from inference.results.verdict import DROWNED, listed
from ldp_client.documents.errors import InputError
from schemas import Question

# {epsilon: {parameter: (devices,)}}.
Widths = Mapping[str, Mapping[str, NDArray[np.float64]]]
# Shares of answers beyond their bounds: above the first a note reports it, above the second the truth is
# refused.
FEW_CLIPPED, NEARLY_ALL = 0.01, 0.99


def drawn_note(question: Question, truths: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return a note on the parameters that could be stated, and were not: truths differ in them."""
    first = settable(question, truths[0])
    drawn = [name for name in first if any(truth[name] != first[name] for truth in truths)]
    if not drawn:
        return ()
    return (f"not stated, {listed(drawn)}: as the prior draws it; --truth states it",)


def clipping_notes(question: Question, share: float, given: Mapping[str, float]) -> tuple[str, ...]:
    """Return a note on the share of answers beyond their bounds, at a given truth or under the prior.

    Raises InputError for a given truth that leaves hardly an answer between the bounds.
    """
    stated = ", ".join(f"{name}={value:g}" for name, value in given.items())
    if given and share > NEARLY_ALL:
        raise InputError(
            f"{question.id}: with {stated} {share:.0%} of the answers lie beyond their bounds, where devices "
            "clip them: is it in the question's own units?",
            code="plan.answers_beyond_bounds",
        )
    if share <= FEW_CLIPPED:
        return ()
    which = f"with {stated}" if given else "under the prior"
    beyond = "the bounds: devices clip them, and so does this plan"
    if question.ask == "record":
        beyond = "their bounds or their norm: devices clip them, which regressions do not know of"
    return (f"{which} {share:.0%} of the answers lie beyond {beyond}",)


def prior_width_notes(each: Widths, devices: Sequence[int], prior: Mapping[str, float]) -> tuple[str, ...]:
    """Return notes if an expected width is the prior's own: nothing would be learnt there, or at all.

    prior: {parameter: half of its prior's 90 % interval}.
    """
    notes = []
    for epsilon, widths in each.items():
        drowned = {name: half > DROWNED * prior.get(name, np.inf) for name, half in widths.items()}
        hopeless = [name for name, where in drowned.items() if where[-1]]
        early = [
            f"{name} up to {devices[int(np.flatnonzero(where)[-1])]:,}"
            for name, where in drowned.items()
            if where.any() and not where[-1]
        ]
        if hopeless:
            notes.append(
                f"hopeless at epsilon {epsilon}: even {devices[-1]:,} people leave {listed(hopeless)} about "
                "as wide as the prior is, so that the reports would say nothing of it"
            )
        if early:
            notes.append(
                f"at epsilon {epsilon} the width is the prior's own: of {listed(early)} people; a fit would "
                "call that not learnt"
            )
    return tuple(notes)


def rough_notes(rough: Mapping[str, NDArray[np.bool_]], devices: Sequence[int]) -> tuple[str, ...]:
    """Return a note if posteriors are too wide to be normal; rough: {epsilon: (devices,)}."""
    where = [
        f"up to {devices[int(np.flatnonzero(too_wide)[-1])]:,} people"
        + (f" at epsilon {epsilon}" * bool(epsilon))
        for epsilon, too_wide in rough.items()
        if too_wide.any()
    ]
    return (f"posteriors are not normal, so that widths are rough: {listed(where)}",) if where else ()
