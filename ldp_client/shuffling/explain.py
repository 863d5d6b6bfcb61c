"""The bound for the set of reports in words, with the observers for whom it holds and does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_client.words.text import ENGLISH, Words, rounded_up

if TYPE_CHECKING:
    from ldp_client.documents.study import Study
    from ldp_client.shuffling.reports import ShuffledPrivacy

# Digits for people; programs get all digits.
SHOWN_DIGITS = 4


def lines_of(study: Study, found: ShuffledPrivacy, words: Words = ENGLISH) -> list[str]:
    """Return the bound in words, with the observers for whom it holds and does not hold."""
    among, total = f"{found.hidden_among:,}", f"{found.people:,}"
    left_out = ""
    if found.false_reports:
        left_out = words.say("set.left_out", false=f"{found.false_reports:,}", people=total)
    shown = {
        "epsilon": rounded_up(found.epsilon, SHOWN_DIGITS),
        "delta": rounded_up(found.delta, SHOWN_DIGITS),
    }
    lines = [words.say("set.value", among=among, left_out=left_out, **shown)]
    if found.cells > 1:
        how = "set.even" if found.is_even_spread else "set.smallest"
        lines += [words.say("set.cell", among=among, how=words.say_of(how, {"cells": f"{found.cells:,}"}))]
    own = rounded_up(found.device_epsilon, SHOWN_DIGITS)
    lines += [words.say("set.not_towards", own=own)]
    if study.channel is None:
        return [*lines, words.say("set.no_channel")]
    which = "set.batches" if study.channel.tickets else "set.no_tickets"
    return [*lines, words.say(which, hours=study.channel.hours)]
