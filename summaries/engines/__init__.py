"""Summaries of very many reports: columns of Parquet instead of objects, and frames of Dask or Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from summaries.engines.counting import ReportCounts
    from summaries.engines.on_dask import dask_summary
    from summaries.engines.on_spark import spark_summary
    from summaries.engines.running import count_dataset, summarize_dataset

__all__ = [
    "ReportCounts",
    "count_dataset",
    "dask_summary",
    "spark_summary",
    "summarize_dataset",
]

_MODULES = {
    "ReportCounts": "counting",
    "count_dataset": "running",
    "dask_summary": "on_dask",
    "spark_summary": "on_spark",
    "summarize_dataset": "running",
}


def __getattr__(name: str) -> Any:
    # Neither Arrow nor a cluster's client loads before it is needed.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"summaries.engines.{_MODULES[name]}"), name)
