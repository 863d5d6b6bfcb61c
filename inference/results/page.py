"""The report page: every question's posterior, for people. One file, no network."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from inference.results.identified import set_of
from inference.results.plots import Draws, Pictures, chains_in_words, pictures_of
from inference.results.posterior import Posterior
from inference.samplers import SAMPLERS
from ldp_client import mechanisms_of
from ldp_client.describing import odds_of, prior_lines
from schemas import Study

PART_QUESTIONS = {
    "chains": "Do the draws represent the posterior?",
    "model": "Do the reports fit the model?",
    "knowledge": "Is it narrower than the prior?",
}
ENVIRONMENT = Environment(
    loader=PackageLoader("inference.results"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
)


def render_page(
    study: Study,
    posteriors: Mapping[str, Posterior],
    raw: Mapping[str, Draws] | None = None,
    pictures: Mapping[str, Pictures] | None = None,
) -> str:
    """The page's HTML. raw: {question id: draws from the raw answers}, where they are known.

    pictures: {question id: Pictures} where they are drawn already.
    """
    known = raw or {}
    drawn = pictures or {name: pictures_of(found, known.get(name)) for name, found in posteriors.items()}
    names = [question.id for question in study.questions]
    items = [_item(study, posteriors[name], known.get(name), drawn[name]) for name in names]
    first = next(iter(posteriors.values()))
    return ENVIRONMENT.get_template("report.html.j2").render(
        study=study,
        items=items,
        size=max(posteriors.values(), key=lambda posterior: posterior.n).size_in_words(),
        unit="holders" if study.unit == "holder" else "devices",
        epsilon=float(study.epsilon),
        delta=float(study.delta),
        compared=raw is not None,
        seed=first.seed,
    )


def _item(study: Study, posterior: Posterior, raw: Draws | None, pictures: Pictures) -> dict[str, Any]:
    question = study.question(posterior.question)
    mechanism = mechanisms_of(study)[question.id]
    return {
        "id": question.id,
        "text": question.text or question.id,
        "mechanism": question.mechanism.name,
        "model": question.model.name,
        "size": posterior.size_in_words(),
        "ok": posterior.verdict.ok,
        "headline": posterior.verdict.headline(),
        "parts": [
            (name, PART_QUESTIONS[name], state, meaning) for name, state, meaning in posterior.verdict.lines()
        ],
        "reasons": posterior.verdict.reasons,
        "notes": posterior.diagnostics.notes,
        "rows": rows_of(posterior, raw),
        "false_share": false_percent(posterior),
        "false_words": posterior.identified.on_page() if posterior.identified else "",
        "noise": mechanism.in_words(),
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


def _method(posterior: Posterior) -> str:
    return SAMPLERS[posterior.method].label if posterior.method in SAMPLERS else posterior.method


def rows_of(posterior: Posterior, raw: Draws | None) -> list[dict[str, str]]:
    """Of each parameter what a page's tables say."""
    devices = posterior.devices_to_halve()
    rows = []
    for name, found in posterior.summary().items():
        row = {
            "name": name,
            "median": _short(found["q50"]),
            "interval": f"{_short(found['q05'])} to {_short(found['q95'])}",
            "devices": f"{_round_up(devices[name]):,}" if isfinite(devices[name]) else "–",
            "prior_sd": _short(posterior.prior_sd[name]),
            "r_hat": f"{found['r_hat']:.3f}",
        }
        row["if_false"] = _set(posterior, name)
        row |= {key: _short(found[key]) for key in ("mean", "sd")}
        row |= {key: f"{found[key]:.0f}" for key in ("ess_bulk", "ess_tail")}
        if raw is not None:
            row |= {"raw_median": "–", "raw_interval": "–"}
        if raw is not None and name in raw:
            low, middle, high = np.quantile(raw[name], [0.05, 0.5, 0.95])
            row |= {"raw_median": _short(middle), "raw_interval": f"{_short(low)} to {_short(high)}"}
        rows.append(row)
    return rows


def false_percent(posterior: Posterior) -> str:
    """Of reports that may be false, in whose column no set stands where there is none."""
    found = posterior.identified
    return f"{100 * found.share:g} %" if found is not None and found.sets else ""


def _set(posterior: Posterior, name: str) -> str:
    ends = set_of(posterior.identified, name)
    return "–" if ends is None else f"{_short(ends[0])} to {_short(ends[1])}"


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _round_up(devices: float) -> int:
    """Two significant digits: more would promise too much."""
    step = 10 ** max(0, len(str(int(devices))) - 2)
    return int(-(-devices // step) * step)
