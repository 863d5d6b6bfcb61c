"""The documents' public names for servers and analysts, and the JSON Schema files of their shapes."""

from ldp_client.documents.errors import *  # noqa: F403
from ldp_client.documents.rational import Rational
from ldp_client.documents.report import Report
from ldp_client.documents.study import Question, Study

__all__ = ["Question", "Rational", "Report", "Study"]
