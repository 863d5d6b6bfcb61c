"""Fixed-size, mergeable summaries of reports: what the collector keeps and a posterior needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from summaries.engines.frames import dask_summary, spark_summary
    from summaries.engines.running import summarize_dataset
    from summaries.reading import cell_summaries, summarize
    from summaries.reducing import check_report, check_study
    from summaries.summary import QuestionSummary, Summary

__all__ = [
    "QuestionSummary",
    "Summary",
    "cell_summaries",
    "check_report",
    "check_study",
    "dask_summary",
    "spark_summary",
    "summarize",
    "summarize_dataset",
]

_MODULES = {
    "QuestionSummary": "summary",
    "Summary": "summary",
    "cell_summaries": "reading",
    "check_report": "reducing",
    "check_study": "reducing",
    "dask_summary": "engines.frames",
    "spark_summary": "engines.frames",
    "summarize": "reading",
    "summarize_dataset": "engines.running",
}


def __getattr__(name: str) -> Any:
    # NumPy loads on first use, so that the command line can be built without the extra.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"summaries.{_MODULES[name]}"), name)
