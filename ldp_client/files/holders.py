"""A data holder's one report, from a file of its table."""

import os

from ldp_client.answering import perturb_answers
from ldp_client.clipping import ClippedCount, is_clipped
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.tables import table_answers
from ldp_client.files.writing import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ldp_client.documents.study import Question, Study
    from ldp_client.mechanisms import Mechanism


def perturb_table(
    study: "Study",
    mechanisms: "dict[str, Mechanism]",
    table_path: str,
    report_path: str,
    note: "Callable[[str], None]",
) -> None:
    """Write the report of a table, one line of NDJSON. Nothing is written when a value is wrong.

    note is told in one line how many rows were clipped.

    Raises InputError with the row and the column.
    """
    clipped = ClippedCount()
    tables = table_answers(study, table_path)
    answers = {name: CountedTable(study.question(name), tables[name], clipped) for name in tables}
    try:
        report = perturb_answers(study, mechanisms, answers)
    except AnswerError as error:
        name = os.path.basename(table_path)
        raise InputError(f"{name}: {error.field}: {error.problem}") from None
    with replacing(report_path, is_new=True) as file:
        file.write(report.to_json() + "\n")
    if clipped.line():
        note(clipped.line())


class CountedTable:
    """A table whose rows are counted, where they are clipped, while its parts are read."""

    def __init__(self, question: "Question", table: "Any", count: ClippedCount) -> None:
        self.question = question
        self.table = table
        self.count = count

    def chunks(self) -> "Iterator[Any]":
        """The table's parts, each counted once it was taken."""
        before = 0
        for part in self.table.chunks():
            yield part
            before += len(next(iter(part.values())))
            self.count.note(self.question.id, _clipped_rows(self.question, part))
        self.count.total = before


def _clipped_rows(question: "Question", columns: "dict[str, Any]") -> int:
    try:
        from ldp_client.bulk.quantising import count_clipped
    except ModuleNotFoundError:
        records = [dict(zip(columns, values)) for values in zip(*columns.values())]
        return sum([is_clipped(question, record) for record in records])
    return count_clipped(question, columns)
