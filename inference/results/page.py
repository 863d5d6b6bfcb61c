"""The report of a fit for people: a self-contained page that needs no network, and its numbers as CSV."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import isfinite
from typing import Any

from inference.results.chain_plots import CHAINS_IN_WORDS
from inference.results.citation import citation_of
from inference.results.headline import STYLES, headlines, lists_in_words
from inference.results.identified import set_of
from inference.results.intervals import USUAL, Interval, between, in_words, rounded_up, written
from inference.results.plots import Draws, Pictures, pictures_of
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance
from inference.results.rendering import PAGES
from inference.results.tables import CSV, csv_of
from inference.samplers import SAMPLERS
from ldp_client import explain, mechanisms_of
from ldp_client.explain import odds_of
from schemas import Study
from schemas.priors import prior_lines

PAGE = "report.html"


def report_files(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None = None,
    pictures: Mapping[str, Pictures] | None = None,
    interval: Interval = USUAL,
    made: Provenance | None = None,
) -> dict[str, str]:
    """Return {file name: text}: the page, and its numbers as CSV.

    raw: {question id: draws from the raw answers}, if known. pictures: {question id: Pictures}, if already
    drawn. made: the fit's provenance; None for day and versions only.
    """
    return files_of(_shown(study, posteriors, raw, pictures, interval, made), posteriors, interval)


def render_page(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None = None,
    **options: Any,
) -> str:
    """Return the page's HTML. options: as of `report_files`."""
    return report_files(study, posteriors, raw, **options)[PAGE]


def files_of(
    shown: Mapping[str, Any], posteriors: Mapping[str, Posterior], interval: Interval
) -> dict[str, str]:
    """Return {file name: text} of a report. shown: the variables of the templates."""
    page = PAGES.get_template("report.html.j2").render(shown)
    return {PAGE: page, CSV: csv_of(posteriors, interval)}


def _shown(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None,
    pictures: Mapping[str, Pictures] | None,
    interval: Interval,
    made: Provenance | None,
) -> dict[str, Any]:
    """Return the variables of the templates."""
    known = raw or {}
    drawn = pictures or {
        name: pictures_of(found, known.get(name), interval) for name, found in posteriors.items()
    }
    names = [question.id for question in study.questions if question.id in posteriors]
    size = max(posteriors.values(), key=lambda posterior: posterior.n).size_in_words()
    return {
        "study": study,
        "title": study.title,
        "lead": f"From {size} with the noise that the study states, which the reports do not prove.",
        "headlines": headlines(study, posteriors, interval),
        "lists": lists_in_words(study, names),
        "items": [_item(study, posteriors[name], known.get(name), drawn[name], interval) for name in names],
        "size": size,
        "unit": "holders" if study.respondent == "holder" else "devices",
        "epsilon": float(study.epsilon),
        "delta": float(study.delta),
        "compared": raw is not None,
        "interval": interval.name,
        "chains_words": CHAINS_IN_WORDS,
        "raw_interval": f"raw {interval.percent} %",
        **citation_of(study, posteriors, made),
    }


def _item(
    study: Study, posterior: Posterior, raw: Draws | None, pictures: Pictures, interval: Interval
) -> dict[str, Any]:
    question = study.question(posterior.question)
    mechanism = mechanisms_of(study)[question.id]
    odds = odds_of(study, float(mechanism.privacy.epsilon), float(mechanism.privacy.delta))
    asked = f"{question.id}, " if question.full_text else ""
    return {
        **item_of(posterior, pictures, interval, raw),
        "text": question.full_text or question.id,
        "about": f"{asked}{question.mechanism.name}, {question.model.name}, {posterior.size_in_words()}",
        "false_heading": false_heading(posterior, interval),
        "false_words": posterior.identified.on_page() if posterior.identified else "",
        "noise": [f"{explain.in_words(mechanism)} {odds}"],
        "law": pictures.law,
        "law_words": posterior.law.in_words() if posterior.law else "",
    }


def item_of(
    posterior: Posterior, pictures: Pictures, interval: Interval, raw: Draws | None = None
) -> dict[str, Any]:
    """Return the variables of one posterior's section that every report has."""
    verdict = posterior.verdict
    return {
        "id": posterior.question,
        "verdict": verdict.overall.word,
        "style": STYLES[verdict.overall.word],
        "reasons": verdict.overall.reasons,
        "notes": posterior.diagnostics.notes,
        "rows": rows_of(posterior, raw, interval),
        "sentences": (),
        "contrasts": (),
        "false_heading": "",
        "false_words": "",
        "law": "",
        # A single bar says no more than its line of the table.
        "intervals": pictures.intervals if len(posterior.headlines) > 1 else "",
        "densities": pictures.densities,
        "chains": base64.b64encode(pictures.chains_png).decode(),
        "method": SAMPLERS[posterior.method].label if posterior.method in SAMPLERS else posterior.method,
        "priors": [line.replace("flat()", "flat") for line in prior_lines(dict(posterior.prior))],
        "expected": pictures.expected,
        "expected_words": posterior.predictive.in_words() if posterior.predictive else "",
    }


def rows_of(posterior: Posterior, raw: Draws | None, interval: Interval = USUAL) -> list[dict[str, Any]]:
    """Return a row of the page's tables for each parameter, with shares in per cent."""
    devices = posterior.devices_to_halve()
    rows = []
    for name, found in posterior.rows().items():
        words, median, ends = posterior.in_words(name, interval)
        row: dict[str, Any] = {
            "name": words,
            "parameter": name,
            "median": median,
            "interval": ends,
            "leads": name in posterior.headlines,
            "verdict": posterior.verdict.of(name).word,
            "devices": f"{rounded_up(devices[name]):,}" if isfinite(devices[name]) else "–",
            "prior_sd": written(posterior.prior_sd[name]),
            "r_hat": f"{found['r_hat']:.3f}",
        }
        row["if_false"] = _set(posterior, name)
        low, high = interval.of(posterior.draws[name])
        row |= {"mean": written(found["mean"], width=high - low), "sd": written(found["sd"])}
        row |= {key: f"{found[key]:.0f}" for key in ("ess_bulk", "ess_tail")}
        if raw is not None:
            known = in_words(raw[name], posterior.is_share(name), interval) if name in raw else {}
            row |= {f"raw_{what}": known.get(what, "–") for what in ("median", "interval")}
        rows.append(row)
    # What answers the question leads.
    return sorted(rows, key=lambda row: not row["leads"])


def false_heading(posterior: Posterior, interval: Interval = USUAL) -> str:
    """Return the heading of the false-report sets, with their level of 90 % if intervals have another."""
    found = posterior.identified
    if found is None or not found.sets:
        return ""
    return found.label + (" (90 %)" if interval.level != USUAL.level else "")


def _set(posterior: Posterior, name: str) -> str:
    ends = set_of(posterior.identified, name)
    return "–" if ends is None else between(*ends, posterior.is_share(name))
