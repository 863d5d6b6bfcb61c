"""Fixed-size, mergeable summaries of reports: what the collector keeps and a posterior needs."""

from __future__ import annotations

from summaries.reducing import check_report, check_study, only_reports, summarize
from summaries.summary import QuestionSummary, Summary

__all__ = ["QuestionSummary", "Summary", "check_report", "check_study", "only_reports", "summarize"]
