"""A report's numbers in full as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from inference.results.identified import set_of
from inference.results.intervals import USUAL, Interval
from inference.results.posterior import Posterior
from ldp_client.words.text import visible
from schemas.disk import no_formula

CSV = "tables.csv"


def csv_of(posteriors: Mapping[str, Posterior], interval: Interval = USUAL) -> str:
    """Return CSV with a row for each question's parameters, at full precision; shares not in per cent."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    low, high = interval.columns
    writer.writerow([
        "question", "model", "n", "parameter", "mean", "sd", "median", low, high, "if_false_low",
        "if_false_high", "prior_sd", "r_hat", "ess_bulk", "ess_tail", "verdict", "reasons",
    ])  # fmt: skip
    for name, posterior in posteriors.items():
        for parameter, row in posterior.rows().items():
            ends = interval.of(posterior.draws[parameter])
            possible = set_of(posterior.identified, parameter) or ("", "")
            measured = (row["mean"], row["sd"], row["q50"], *ends, *possible, posterior.prior_sd[parameter])
            mixed = (row["r_hat"], row["ess_bulk"], row["ess_tail"])
            judged = posterior.verdict.of(parameter)
            verdict = (judged.word, "; ".join(judged.reasons))
            head = (_cell(name), posterior.model, posterior.n, _cell(parameter))
            writer.writerow([*head, *measured, *mixed, *verdict])
    return text.getvalue()


def _cell(text: str) -> str:
    """Return a name that spreadsheets do not evaluate as a formula."""
    return no_formula(visible(text))
