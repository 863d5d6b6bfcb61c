"""A question's running posterior, in the words and numbers of the operator's page."""

from __future__ import annotations

from typing import Any

from collector.operator.posteriors import Fitted

MOST_ROWS = 12


def posterior_view(fitted: Fitted | None, question: str, reports: int) -> dict[str, Any]:
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
        return "No posterior yet: there are no reports."
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
