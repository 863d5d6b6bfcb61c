"""Deleting reports but for their ids, so that no copy of them is taken."""

from __future__ import annotations

from sqlalchemy import bindparam, update
from sqlalchemy.orm import Session

from collector.storage.packing import PackedReport
from collector.storage.queries import REPORTS, Chosen, select_rows


def empty_reports(session: Session, chosen: Chosen, after: bytes, most: int) -> list[PackedReport]:
    """Leave nothing but their ids of the next `most` reports, by id; what they were, without withdrawn ones.

    after: the id to go on from. The caller holds the study's row.
    """
    kept = (REPORTS.c.payloads != b"", REPORTS.c.id > after)
    found = list(map(PackedReport._make, select_rows(session, *chosen.conditions(), *kept, limit=most)))
    one = update(REPORTS).where(REPORTS.c.study == chosen.study, REPORTS.c.id == bindparam("one"))
    if found:
        session.connection().execute(one.values(payloads=b""), [{"one": report.id} for report in found])
    return found
