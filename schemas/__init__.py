"""What devices, collectors and analysts agree on: studies, reports and errors."""

from schemas.rational import Rational
from schemas.report import Report
from schemas.study import Question, Study

__all__ = ["Question", "Rational", "Report", "Study"]
