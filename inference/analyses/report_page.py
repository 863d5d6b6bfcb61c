"""The report page of an analysis, and its folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from inference.analyses.result import AnalysisPosterior
from inference.results.chain_plots import CHAINS_IN_WORDS
from inference.results.citation import defence_of_analysis
from inference.results.figures import to_png, to_svg
from inference.results.headline import judged_line
from inference.results.intervals import USUAL, Interval
from inference.results.page import files_of, item_of
from inference.results.plot_parameters import MOST_ROWS
from inference.results.plots import Pictures, Row, pictures_of, rows_plot
from inference.results.provenance import Provenance
from inference.results.quantity import Quantity
from inference.results.saving import save_posteriors
from ldp_client.documents.errors import InputError

MOST_SENTENCES = 60
# The most quantities in a line of a table.
MOST_QUOTED = 3
APART = re.compile(r"odds|total")
_FILE_NAME = re.compile(r"[A-Za-z0-9][\w.\-]{0,99}")


def check_file_name(outcome: str) -> None:
    """Raise InputError for an outcome whose name cannot be part of a file name."""
    if not _FILE_NAME.fullmatch(outcome):
        raise InputError(
            f"files are named by the outcome, and {outcome!r} is no file name: rename the column, using "
            "letters, digits and _",
            code="files.outcome_unfit_as_name",
        )


def save_analysis(
    posterior: AnalysisPosterior,
    folder: Path,
    title: str = "",
    interval: Interval = USUAL,
    made: Provenance | None = None,
) -> None:
    """Write posterior.json, the report (HTML, CSV), draws (OUTCOME.nc) and pictures."""
    save_posteriors({posterior.question: posterior}, folder, made)
    pictures, forest = pictures_of(posterior, None, interval), forest_plot(posterior, interval)
    (folder / f"{posterior.question}-chains.png").write_bytes(pictures.chains_png)
    (folder / f"{posterior.question}.png").write_bytes(to_png(forest))
    shown = _shown(posterior, title, replace(pictures, intervals=to_svg(forest)), interval, made)
    for name, text in files_of(shown, {posterior.question: posterior}, interval).items():
        (folder / name).write_text(text, encoding="utf-8")


def _shown(
    posterior: AnalysisPosterior, title: str, pictures: Pictures, interval: Interval, made: Provenance | None
) -> dict[str, Any]:
    """Return the variables of the templates."""
    size, asked = posterior.size_in_words(), posterior.formula or posterior.question
    quoted = " ".join(_sentences(posterior.quantities[:MOST_QUOTED], interval))
    # Shares and means have one scale; ratios and numbers of people do not fit on it.
    scaled = [one for one in posterior.quantities if not (one.contrast or APART.match(one.name))]
    item = {
        **item_of(posterior, pictures, interval),
        "text": asked,
        "about": f"{posterior.model}, {posterior.form}, {size}",
        "sentences": _sentences([one for one in posterior.quantities if not one.contrast], interval),
        "contrasts": _sentences([one for one in posterior.quantities if one.contrast], interval),
        "shares": to_svg(interval_plot(scaled, interval)) if scaled else "",
        "noise": posterior.stated,
    }
    return {
        "study": None,
        "title": title or f"Results for {posterior.question}",
        "lead": f"From {size} with the noise that is stated, which the reports do not prove.",
        "headlines": [judged_line(asked, quoted, posterior)],
        "lists": [],
        "items": [item],
        "unit": "reports",
        "compared": False,
        "interval": interval.name,
        "chains_words": CHAINS_IN_WORDS,
        **defence_of_analysis(posterior, posterior.formula, posterior.stated, made),
    }


def _sentences(quantities: Sequence[Quantity], interval: Interval) -> list[str]:
    found = [one.sentence(interval) for one in quantities[:MOST_SENTENCES]]
    more = len(quantities) - len(found)
    return [*found, f"… and {more} more in posterior.json."] if more else found


def forest_plot(posterior: AnalysisPosterior, interval: Interval = USUAL) -> Figure:
    """Plot intervals of coefficients on one scale: a number's coefficient is for one sd of its column."""
    spreads = posterior.spreads or dict.fromkeys(posterior.draws, 1.0)
    rows = [
        Row(f"{name} (per sd)" if spreads[name] != 1 else name, draws * spreads[name])
        for name, draws in posterior.draws.items()
        if name in spreads
    ]
    return rows_plot(rows[:MOST_ROWS], interval, zero=bool(posterior.spreads))


def interval_plot(quantities: Sequence[Quantity], interval: Interval = USUAL) -> Figure:
    """Plot intervals of quantities about people."""
    rows = [Row(one.name, one.draws) for one in quantities]
    return rows_plot(rows[:MOST_ROWS], interval, zero=False)
