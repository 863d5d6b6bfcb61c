"""A posterior in a few lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference.results.intervals import Interval
from inference.results.verdict import NOT_USABLE, USABLE, listed
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.results.posterior import Posterior

# The most rows in a terminal; `summary` has all.
MOST_ROWS = 20
# The most sentences on a formula in a terminal.
MOST_QUOTED = 40


def text_of(posterior: Posterior, interval: Interval) -> str:
    """Return what answers the question, with its verdict, then doubts and notes."""
    verdict, names = posterior.verdict, list(posterior.headlines)
    head = f"{posterior.question} ({posterior.model}, {posterior.size_in_words()})"
    lines = [f"{head}: {verdict.overall.word}"]
    # 1. Give a formula's sentences, one number in the first line, or a table of several.
    if posterior.quantities:
        lines += [f"  {visible(each.sentence(interval))}" for each in posterior.quantities[:MOST_QUOTED]]
        more = len(posterior.quantities) - MOST_QUOTED
        lines += [f"  … and {more:,} more in posterior.json"] if more > 0 else []
    elif len(names) == 1 and not verdict.bad:
        words, median, ends = posterior.in_words(names[0], interval)
        lines = [f"{head}: {words} {median} ({interval.name} {ends}): {verdict.overall.word}"]
    else:
        rows = [posterior.in_words(name, interval) for name in names[:MOST_ROWS]]
        judged = [verdict.of(name).word for name in names]
        width = max(len(words) for words, _, _ in rows)
        kind = f"{interval.name} "
        for word, (words, median, ends) in zip(judged, rows, strict=False):
            if word == NOT_USABLE:
                lines += [] if len(set(judged)) == 1 else [f"  {words.ljust(width)}  not usable"]
                continue
            doubt = "" if word == verdict.overall.word else f": {word}"
            lines.append(f"  {words.ljust(width)}  {median} ({kind}{ends}){doubt}")
            kind = ""
        more = len(names) - len(rows)
        lines += [f"  … and {more:,} more: summary() has all"] if more else []
    # 2. Give the reasons for the verdict, and name what only the report has.
    lines += [f"  {visible(reason)}" for reason in verdict.overall.reasons]
    others = [] if posterior.quantities else [name for name in posterior.draws if name not in names]
    if others:
        words_of = {name: verdict.of(name).word for name in others}
        doubted = [
            f"{name} ({word})" if word != USABLE and verdict.ok else name for name, word in words_of.items()
        ]
        lines.append(f"  the report also has {visible(listed(doubted))}")
    # 3. Give the bounds if some reports were false, and the notes.
    false = posterior.identified.on_page() if posterior.identified else ""
    lines += [f"  {visible(line)}" for line in (*([false] if false else []), *posterior.notes)]
    return "\n".join(lines)
