"""A data holder's one report, from a file of its table."""

import os

from ldp_client.answering import perturb_answers
from ldp_client.clipping import ClippedCount, CountedTable
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.files.tables import table_answers
from ldp_client.files.writing import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ldp_client.documents.study import Study
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
    with replacing(report_path) as file:
        file.write(report.to_json() + "\n")
    if clipped.line():
        note(clipped.line())
