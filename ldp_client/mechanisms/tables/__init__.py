"""The mechanisms of data holders: noisy second moments of a table of records. Loaded when a study asks one.

Reading a table needs NumPy.
"""

from ldp_client.documents.question import Question
from ldp_client.mechanisms.tables.base import TableMechanism
from ldp_client.mechanisms.tables.statistics import (
    TableStatistics,
    TableStatisticsDdplr,
    TableStatisticsLaplace,
)

KINDS: dict[str, type[TableMechanism]] = {
    kind.name: kind for kind in (TableStatistics, TableStatisticsDdplr, TableStatisticsLaplace)
}

__all__ = ["KINDS", "TableMechanism", "table_mechanism"]


def table_mechanism(question: Question) -> TableMechanism:
    """The mechanism of a question that asks for a table. Raises StudyError."""
    return KINDS[question.mechanism.name](question)
