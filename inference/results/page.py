"""The report of a fit for people: a self-contained page that needs no network, and its tables as text."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import isfinite
from typing import Any

from inference.results.chain_plots import chains_in_words
from inference.results.citation import citation_of
from inference.results.earlier_steps import NOTHING, Earlier
from inference.results.headline import headlines, lists_in_words
from inference.results.identified import level_of_sets, set_of
from inference.results.intervals import USUAL, Interval, between, in_words, written
from inference.results.plots import Draws, Pictures, pictures_of
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance
from inference.results.rendering import PAGES
from inference.results.tables import tables_of
from inference.samplers import SAMPLERS
from ldp_client import explain, mechanisms_of
from ldp_client.explain import odds_of, prior_lines
from schemas import Study

PAGE = "report.html"
PART_QUESTIONS = {
    "convergence": "Do the draws represent the posterior?",
    "fit": "Do the reports fit the model?",
    "informativeness": "Is it narrower than the prior?",
}


def render_page(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None = None,
    pictures: Mapping[str, Pictures] | None = None,
    interval: Interval = USUAL,
    made: Provenance | None = None,
    earlier: Earlier = NOTHING,
) -> str:
    """Return the page's HTML. raw: {question id: draws from the raw answers}, if known.

    pictures: {question id: Pictures}, if already drawn. made: the fit's provenance; None for day and versions
    only. earlier: the steps before the fit.
    """
    shown = _shown(study, earlier.on(posteriors), raw, pictures, interval, made, earlier)
    return PAGES.get_template("report.html.j2").render(shown)


def report_files(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None,
    pictures: Mapping[str, Pictures],
    interval: Interval,
    made: Provenance | None,
    earlier: Earlier,
) -> dict[str, str]:
    """Return {file name: text}: the page, and its tables in Markdown, CSV and LaTeX."""
    shown = _shown(study, posteriors, raw, pictures, interval, made, earlier)
    page = PAGES.get_template("report.html.j2").render(shown)
    return {PAGE: page, **tables_of(posteriors, shown, interval)}


def _shown(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None,
    pictures: Mapping[str, Pictures] | None,
    interval: Interval,
    made: Provenance | None,
    earlier: Earlier,
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
        "all_ok": earlier.ok and all(found.verdict.ok for found in posteriors.values()),
        "earlier": earlier,
        "items": [_item(study, posteriors[name], known.get(name), drawn[name], interval) for name in names],
        "size": size,
        "unit": "holders" if study.respondent == "holder" else "devices",
        "epsilon": float(study.epsilon),
        "delta": float(study.delta),
        "compared": raw is not None,
        "interval": interval.name,
        "raw_interval": f"raw {interval.percent} %",
        **citation_of(study, posteriors, made, earlier),
    }


def _item(
    study: Study, posterior: Posterior, raw: Draws | None, pictures: Pictures, interval: Interval
) -> dict[str, Any]:
    question = study.question(posterior.question)
    mechanism = mechanisms_of(study)[question.id]
    return {
        "id": question.id,
        "text": question.full_text or question.id,
        "mechanism": question.mechanism.name,
        "model": question.model.name,
        "size": posterior.size_in_words(),
        "about": f"{f'{question.id}, ' if question.full_text else ''}{question.mechanism.name}, "
        f"{question.model.name}, {posterior.size_in_words()}",
        "verdict": verdict_in_words(posterior),
        "ok": posterior.verdict.ok,
        "headline": posterior.verdict.headline(),
        "parts": [
            (name, PART_QUESTIONS[name], state, meaning) for name, state, meaning in posterior.verdict.lines()
        ],
        "reasons": posterior.verdict.reasons,
        "notes": posterior.diagnostics.notes,
        "rows": rows_of(posterior, raw, interval),
        "false_heading": false_heading(posterior, interval),
        "false_words": posterior.identified.on_page() if posterior.identified else "",
        "noise": explain.in_words(mechanism),
        "odds": odds_of(study, float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)),
        "intervals": pictures.intervals,
        "densities": pictures.densities,
        "chains": base64.b64encode(pictures.chains_png).decode(),
        "chains_words": chains_in_words(posterior),
        "method": _method(posterior),
        "priors": prior_lines(dict(posterior.prior)),
        "law": pictures.law,
        "law_words": posterior.law.in_words() if posterior.law else "",
        "expected": pictures.expected,
        "expected_words": posterior.predictive.in_words() if posterior.predictive else "",
    }


def verdict_in_words(posterior: Posterior) -> str:
    """Return the verdict as a sentence."""
    words = posterior.verdict.headline()
    if posterior.verdict.ok:
        return f"{words[0].upper()}{words[1:]}."
    return f"Do not use these numbers as they stand: {words}."


def _method(posterior: Posterior) -> str:
    return SAMPLERS[posterior.method].label if posterior.method in SAMPLERS else posterior.method


def rows_of(posterior: Posterior, raw: Draws | None, interval: Interval = USUAL) -> list[dict[str, str]]:
    """Return a row of the page's tables for each parameter, with shares in per cent."""
    devices = posterior.devices_to_halve()
    rows = []
    for name, found in posterior.rows().items():
        row = {
            "name": name,
            **in_words(posterior.draws[name], posterior.is_share(name), interval),
            "devices": f"{_round_up(devices[name]):,}" if isfinite(devices[name]) else "–",
            "prior_sd": written(posterior.prior_sd[name]),
            "r_hat": f"{found['r_hat']:.3f}",
        }
        row["if_false"] = _set(posterior, name)
        low, high = interval.of(posterior.draws[name])
        row |= {"mean": written(found["mean"], width=high - low), "sd": written(found["sd"])}
        row |= {key: f"{found[key]:.0f}" for key in ("ess_bulk", "ess_tail")}
        if raw is not None:
            row |= {"raw_median": "–", "raw_interval": "–"}
        if raw is not None and name in raw:
            said = in_words(raw[name], posterior.is_share(name), interval)
            row |= {f"raw_{what}": text for what, text in said.items()}
        rows.append(row)
    return rows


def false_heading(posterior: Posterior, interval: Interval = USUAL) -> str:
    """Return the heading of the false-report sets, with their level of 90 % if intervals have another."""
    found = posterior.identified
    if found is None or not found.sets:
        return ""
    return found.label + level_of_sets(interval)


def _set(posterior: Posterior, name: str) -> str:
    ends = set_of(posterior.identified, name)
    return "–" if ends is None else between(*ends, posterior.is_share(name))


def _round_up(devices: float) -> int:
    """Round up to two significant digits; more would suggest too much precision."""
    step = 10 ** max(0, len(str(int(devices))) - 2)
    return int(-(-devices // step) * step)
