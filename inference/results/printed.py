"""A posterior in a few lines for a terminal, and as a table for a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from inference.results.diagnostics import listed
from inference.results.identified import set_of
from inference.results.intervals import Interval, between
from inference.results.verdict import NOT_USABLE, USABLE
from ldp_client.words.text import visible

if TYPE_CHECKING:
    import pandas as pd

    from inference.results.posterior import Posterior

# The most rows in a terminal; `summary` has all.
MOST_ROWS = 20
# The most sentences on a formula in a terminal.
MOST_QUOTED = 40


def text_of(posterior: Posterior, interval: Interval) -> str:
    """Return what answers the question, with its verdict, then doubts and notes."""
    verdict, title = posterior.verdict, _title(posterior)
    names = list(posterior.headlines)
    others = [name for name in posterior.draws if name not in names]
    said = [posterior.in_words(name, interval) for name in names[:MOST_ROWS]]
    if posterior.quantities:
        lines = [f"{title}: {verdict.overall.word}"]
        lines += [
            f"  {visible(quantity.sentence(interval))}" for quantity in posterior.quantities[:MOST_QUOTED]
        ]
        more = len(posterior.quantities) - MOST_QUOTED
        lines += [f"  … and {more:,} more in posterior.json"] if more > 0 else []
        others = []
    elif len(names) == 1 and not verdict.bad:
        ((words, median, ends),) = said
        lines = [f"{title}: {words} {median} ({interval.name} {ends}): {verdict.overall.word}"]
    else:
        lines = [f"{title}: {verdict.overall.word}"]
        usable = [verdict.of(name).word for name in names]
        width = max(len(words) for words, _, _ in said)
        kind = f"{interval.name} "
        for word, (words, median, ends) in zip(usable, said, strict=False):
            if word == NOT_USABLE:
                lines += [] if len(set(usable)) == 1 else [f"  {words.ljust(width)}  not usable"]
                continue
            doubt = "" if word == verdict.overall.word else f": {word}"
            lines.append(f"  {words.ljust(width)}  {median} ({kind}{ends}){doubt}")
            kind = ""
        more = len(names) - len(said)
        lines += [f"  … and {more:,} more: summary() has all"] if more else []
    lines += [f"  {visible(reason)}" for reason in verdict.overall.reasons]
    if others:
        doubted = [name for name in others if verdict.of(name).word != USABLE and verdict.ok]
        with_words = [_with_word(posterior, name, doubted) for name in others]
        lines.append(f"  the report also has {visible(listed(with_words))}")
    false = posterior.identified.on_page() if posterior.identified else ""
    lines += [f"  {visible(line)}" for line in (*([false] if false else []), *posterior.diagnostics.notes)]
    return "\n".join(lines)


def _with_word(posterior: Posterior, name: str, doubted: list[str]) -> str:
    return f"{name} ({posterior.verdict.of(name).word})" if name in doubted else name


def html_of(posterior: Posterior, interval: Interval) -> str:
    """Return every parameter with its verdict for a notebook, as escaped HTML."""
    verdict, found = posterior.verdict, posterior.identified
    false = found is not None and bool(found.sets)
    head = ["", "median", interval.name, *([found.label] if found is not None and false else []), "verdict"]
    names = [*posterior.headlines, *(name for name in posterior.draws if name not in posterior.headlines)]
    rows = []
    for name in names[:MOST_ROWS]:
        ends = set_of(found, name)
        possible = [between(*ends, posterior.is_share(name)) if ends else "–"] if false else []
        rows.append([*posterior.in_words(name, interval), *possible, verdict.of(name).word])
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(visible(cell))}</td>' for cell in row)}</tr>" for row in rows)
    more = len(posterior.draws) - len(rows)
    rest = [f"… and {more:,} more: summary() has all"] if more else []
    notes = "".join(f"<br>{escape(visible(line))}" for line in (*rest, *verdict.reasons))
    return (
        f"<table><caption>{escape(_title(posterior))}: <strong>{verdict.overall.word}</strong>{notes}"
        f"</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )


def _title(posterior: Posterior) -> str:
    return f"{posterior.question} ({posterior.model}, {posterior.size_in_words()})"


def frame_of(posterior: Posterior, interval: Interval) -> pd.DataFrame:
    """Return a row for each parameter. See `Posterior.summary`."""
    import pandas as pd

    low, high = interval.columns
    rows = {}
    for name, row in posterior.rows().items():
        ends = interval.of(posterior.draws[name])
        rows[name] = {
            **{key: row[key] for key in ("mean", "sd", "q50")},
            low: ends[0],
            high: ends[1],
            **{key: row[key] for key in ("sd_over_prior_sd", "r_hat", "ess_bulk", "ess_tail")},
            "verdict": str(posterior.verdict.of(name)),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    # Plain values, so that the frame can be written to a file together with its attrs.
    frame.attrs = {
        "question": posterior.question,
        "study_digest": posterior.study_digest,
        "level": interval.level,
        "kind": interval.kind,
        **posterior.verdict.to_document(),
    }
    return frame
