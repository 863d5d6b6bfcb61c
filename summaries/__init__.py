"""Fixed-size, mergeable summaries of reports: what the collector keeps and a posterior needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from summaries.engines import ReportCounts, count_dataset, dask_summary, spark_summary, summarize_dataset
    from summaries.evidence import cell_summaries
    from summaries.reading import summarize
    from summaries.reducing import check_report, check_study, only_reports
    from summaries.summary import QuestionSummary, Summary

__all__ = [
    "QuestionSummary",
    "ReportCounts",
    "Summary",
    "cell_summaries",
    "check_report",
    "check_study",
    "count_dataset",
    "dask_summary",
    "only_reports",
    "spark_summary",
    "summarize",
    "summarize_dataset",
]

_MODULES = {
    "QuestionSummary": "summary",
    "Summary": "summary",
    "ReportCounts": "engines",
    "cell_summaries": "evidence",
    "count_dataset": "engines",
    "dask_summary": "engines",
    "spark_summary": "engines",
    "summarize": "reading",
    "summarize_dataset": "engines",
}


def __getattr__(name: str) -> Any:
    # NumPy loads on first use, so that the command line can be built without the extra.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"summaries.{_MODULES.get(name, 'reducing')}"), name)
