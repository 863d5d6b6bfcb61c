"""What `ldpkit answer` sees to of a data holder's table, before anybody is asked and anything is kept."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from ldp_client.device.ledger import Ledger
    from ldp_client.documents.study import Study


def checked_table(
    study: "Study", tables: "dict[str, Any]", path: str, ledger: "Ledger", again: bool
) -> "AbstractContextManager[None]":
    """Read the tables of a file once, which no other device and no `perturb` drew from, unless again.

    ledger: the device's, which is to answer within what is given.

    Raises AnswerError, InputError, LedgerError.
    """
    from ldp_client.files.perturbed import Mark

    mark = Mark(study, path, ledger.holder())
    mark.check(again)
    _check_tables(study, tables)
    return mark.answering(ledger, again)


def _check_tables(study: "Study", tables: "dict[str, Any]") -> None:
    """Refuse wrong tables, say what others would not expect. Raises AnswerError, InputError."""
    from ldp_client.answering import quantise_answers
    from ldp_client.columns.clipping import ClippedCount
    from ldp_client.device.terms import terms_of
    from ldp_client.files.batch import counted_tables

    clipped = ClippedCount()
    quantise_answers(study, terms_of(study).mechanisms, counted_tables(study, tables, clipped))
    if clipped.line():
        print(clipped.line(), file=sys.stderr)
