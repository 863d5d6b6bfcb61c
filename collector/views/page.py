"""The operator's page, for a browser that sends a key as its password."""

from __future__ import annotations

from datetime import date
from typing import Any

from flask import Blueprint, Response, make_response, render_template

from collector.context import Collector, current_collector
from collector.operator.fitting import Fitted, last_fitted
from collector.problems import UNAUTHORIZED, ProblemError
from collector.reports.rules import Rules
from collector.storage.keys import Key, Role
from collector.storage.overviews import StudyOverview
from collector.views.auth import credentials, require_role
from ldp_client.describing import odds_of
from ldp_client.words.public import FEW_PEOPLE, public_line
from ldp_client.words.text import rounded_up
from summaries.influence import FALSE_SHARE, influence_in_words

page = Blueprint("page", __name__, static_folder="../assets", static_url_path="/assets/operator")
CHALLENGE = {"WWW-Authenticate": 'Basic realm="ldpkit: any name, a key as password", charset="UTF-8"'}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Of a question with many parameters, those with the largest means.
MOST_ROWS = 12
ASKS = {
    "number": "A number.",
    "choice": "One of {} choices.",
    "yes_no": "Yes or no.",
    "record": "A record.",
    "table": "A table of many records.",
}


@page.get("/")
def show() -> Response:
    """Counts and studies; the script asks for the same page again and again."""
    given = credentials()
    if given is None or given.type != "basic":
        raise ProblemError(UNAUTHORIZED, "the page needs a key", headers=CHALLENGE)
    key = require_role(given.password or "", Role.READ, CHALLENGE, of_some=True)
    return make_response(render_template("operator.html", **_contents(current_collector(), key)))


@page.after_request
def protect(response: Response) -> Response:
    """Nothing from elsewhere may run here, and nobody may frame it."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _contents(collector: Collector, key: Key) -> dict[str, Any]:
    """What the template shows to whoever has this key."""
    studies = [_study(collector, study) for study in collector.studies.get() if key.reaches(study.id)]
    return {"counts": collector.metrics.totals(), "waiting": collector.writer.depth, "studies": studies}


def _study(collector: Collector, overview: StudyOverview) -> dict[str, Any]:
    rules = collector.rules.find(overview.id, overview.version)
    epsilon = float(rules.study.epsilon)
    with collector.database.read() as session:
        fitted = last_fitted(session, overview.number, overview.version)
    return {
        "id": overview.id,
        "version": overview.version,
        "title": rules.study.title,
        "purpose": rules.study.purpose,
        "state": _state(overview, collector.today()),
        "reports": overview.reports,
        "reports_now": overview.reports_now,
        "epsilon": f"{epsilon:g}",
        "ask_one": rules.study.ask_one,
        "repeats": any(question.repeats for question in rules.study.questions),
        "odds": odds_of(rules.study, epsilon, float(rules.study.delta)),
        "unit": rules.study.unit,
        "public": [public_line(field) for field in rules.study.public],
        "cells": f"{rules.study.cells:,}",
        "few": _few(rules.study.cells, overview.reports_now),
        "questions": _questions(rules, fitted, overview.reports_now),
    }


def _few(cells: int, reports: int) -> str:
    """At least how many cells have fewer than FEW_PEOPLE reports."""
    return f"{max(cells - reports // FEW_PEOPLE, 0):,}"


def _state(study: StudyOverview, today: date) -> str:
    if study.closed:
        return "closed"
    if study.closes is not None and today > study.closes:
        return f"ended on {study.closes}"
    return f"open from {study.opens or 'its publication'} to {study.closes or 'its closing by an operator'}"


def _questions(rules: Rules, fitted: Fitted | None, reports: int) -> list[dict[str, Any]]:
    return [
        {
            "id": question.id,
            "text": question.text or ASKS[question.ask].format(len(question.choices)),
            "words": rules.mechanisms[question.id].in_words(),
            "epsilon": rounded_up(float(rules.mechanisms[question.id].privacy.epsilon)),
            "influence": influence_in_words(rules.mechanisms[question.id], FALSE_SHARE),
            "posterior": _posterior_view(fitted, question.id, reports),
        }
        for question in rules.study.questions
    ]


def _posterior_view(fitted: Fitted | None, question: str, reports: int) -> dict[str, Any]:
    """What the template shows of one question: a posterior, or why there is none yet."""
    if fitted is None or question not in fitted.questions:
        return {"missing": _why_missing(fitted, reports)}
    found = fitted.questions[question]
    rows = list(found["parameters"].items())
    more = len(rows) - MOST_ROWS
    if more > 0:
        rows = sorted(rows, key=lambda row: -row[1]["mean"])[:MOST_ROWS]
    scale = _scale([row for _, row in rows])
    return {
        "rows": [_row(name, row, scale) for name, row in rows],
        "more": max(more, 0),
        "n": found["n"],
        "age": _age(fitted.days_ago),
        "ok": found["ok"],
        "remarks": [*found["reasons"], *found["notes"]],
    }


def _why_missing(fitted: Fitted | None, reports: int) -> str:
    if fitted is not None and fitted.failure:
        return f"The last fit failed: {fitted.failure}"
    if not reports:
        return "No posterior yet: there are no reports of this version."
    return "No posterior yet: it comes with the next fit. Fits need “ldpkit serve --posteriors”."


def _scale(rows: list[dict[str, float]]) -> tuple[float, float]:
    """The ends of the axis that all intervals of a question share."""
    low, high = min(row["q05"] for row in rows), max(row["q95"] for row in rows)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return low, max(high, low + 1e-9)


def _row(name: str, row: dict[str, float], scale: tuple[float, float]) -> dict[str, Any]:
    """start, width, mark: of the interval and the mean, in hundredths of the axis."""
    low, high = scale
    start, end, mark = (100 * (row[key] - low) / (high - low) for key in ("q05", "q95", "mean"))
    numbers = {key: f"{row[key]:.3g}" for key in ("mean", "q05", "q95")}
    places = {"start": start, "width": max(end - start, 0.5), "mark": mark}
    return {"name": name, **numbers, **{key: round(place, 2) for key, place in places.items()}}


def _age(days: int) -> str:
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
