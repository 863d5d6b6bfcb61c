"""Checks of a data holder's table by `ldpkit answer`, before it asks for consent and stores anything."""

import sys
from typing import Any

from ldp_client.documents.study import Study


def check_tables(study: Study, tables: dict[str, Any]) -> None:
    """Reject wrong tables, and warn of clipped rows. Raises AnswerError, InputError."""
    from ldp_client.answering import quantise_answers
    from ldp_client.columns.clipping import ClippedCount
    from ldp_client.device.budget import terms_of
    from ldp_client.files.batch import counted_tables

    clipped = ClippedCount()
    quantise_answers(study, terms_of(study).mechanisms, counted_tables(study, tables, clipped))
    if clipped.line():
        print(clipped.line(), file=sys.stderr)
