"""The documents as servers, authors and analysts know them, with models and priors."""

from ldp_client.documents.errors import StudyError
from ldp_client.documents.rational import Rational
from ldp_client.documents.report import Report
from schemas.study import Question, Study

__all__ = ["Question", "Rational", "Report", "Study", "StudyError"]
