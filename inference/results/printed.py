"""A posterior as a short table, for a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from inference.results.identified import set_of
from inference.results.intervals import Interval, between, in_words
from inference.results.verdict import GOOD
from ldp_client.words.text import visible

if TYPE_CHECKING:
    import pandas as pd

    from inference.results.posterior import Posterior

# The most rows in a terminal; `summary` has all.
MOST_ROWS = 20


def text_of(posterior: Posterior, interval: Interval) -> str:
    """Return the verdict, its parts that are not good, each parameter's median and interval, and notes."""
    head, *rows = ([visible(cell) for cell in row] for row in _table(posterior, interval))
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
    more = len(posterior.draws) - len(rows)
    lines += [f"  … and {more:,} more: summary() has all"] if more else []
    verdict = posterior.verdict.lines()
    parts = [f"  {name}: {state}: {meaning}" for name, state, meaning in verdict if state != GOOD]
    reasons = [f"  {visible(line)}" for line in (*posterior.verdict.reasons, *posterior.diagnostics.notes)]
    return "\n".join([f"{_title(posterior)}: {_verdict(posterior)}", *parts, *lines, *reasons])


def html_of(posterior: Posterior, interval: Interval) -> str:
    """Return the same for a notebook, as escaped HTML."""
    head, *rows = _table(posterior, interval)
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    more = len(posterior.draws) - len(rows)
    rest = [f"… and {more:,} more: summary() has all"] if more else []
    notes = "".join(f"<br>{escape(line)}" for line in (*rest, *posterior.verdict.reasons))
    return (
        f"<table><caption>{escape(_title(posterior))}: <strong>{escape(_verdict(posterior))}</strong>{notes}"
        f"</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )


def _title(posterior: Posterior) -> str:
    return f"{posterior.question} ({posterior.model}, {posterior.size_in_words()})"


def _verdict(posterior: Posterior) -> str:
    return f"{'ok' if posterior.verdict.ok else 'NOT OK'}: {posterior.verdict.headline()}"


def _table(posterior: Posterior, interval: Interval) -> Iterator[tuple[str, ...]]:
    """Yield the head, then a row for each parameter."""
    found = posterior.identified
    false = found.label if found is not None and found.sets else ""
    yield ("parameter", "median", interval.name, *([false] if false else []))
    for name in list(posterior.draws)[:MOST_ROWS]:
        share = posterior.is_share(name)
        said = in_words(posterior.draws[name], share, interval)
        ends = set_of(found, name)
        possible = [between(*ends, share) if ends else "–"] if false else []
        yield (name, said["median"], said["interval"], *possible)


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
            "verdict": posterior.verdict.headline(),
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    # Plain values, so that the frame can be written to a file together with its attrs.
    frame.attrs = {
        "question": posterior.question,
        "study_digest": posterior.study_digest,
        "level": interval.level,
        "kind": interval.kind,
        "ok": posterior.verdict.ok,
        "verdict": dict(posterior.verdict.to_document()),
    }
    return frame
