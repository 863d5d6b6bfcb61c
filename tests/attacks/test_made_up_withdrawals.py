"""Many withdrawals of what was never sent, from an archived study, that uploads of all others wait for."""

from __future__ import annotations

import os

from sqlalchemy import insert

from collector.operator import archive_withdrawals
from collector.storage.archived import WAITING
from tests.collector.test_archives import archived, archived_ids, closed, many, status  # noqa: F401


def test_each_transaction_acknowledges_few(closed, make_study, make_report, monkeypatch):  # noqa: F811
    archived(closed)
    gone = closed.sent[(1, closed.days[0])][:3]
    for one in gone:
        assert closed.harness.withdraw(one.id, secret=one.secret).status_code == 503
    with closed.harness.collector.database.write() as session:
        made_up = [{"study": 1, "id": os.urandom(16), "taken": False} for _ in range(3000)]
        session.execute(insert(WAITING), made_up)
    assert status(closed)["withdrawals_waiting"] == 3003
    other = make_study(id="other")
    closed.harness.publish(other)
    rows, genuine = [], archive_withdrawals._acknowledge

    def counting(session, study_id, ids):
        rows.append(len(ids))
        return genuine(session, study_id, ids)

    def rest(_seconds):
        # An upload gets its turn between any two.
        assert closed.harness.put(make_report(other)).status_code == 201

    monkeypatch.setattr(archive_withdrawals, "_acknowledge", counting)
    monkeypatch.setattr(archive_withdrawals.time, "sleep", rest)
    assert archived(closed).withdrawn == 3
    monkeypatch.undo()
    assert sum(rows) == 3003
    assert max(rows) == archive_withdrawals.AT_ONCE
    assert status(closed)["withdrawals_waiting"] == 0
    assert archived_ids(closed.root) == closed.ids - {one.id for one in gone}
    for one in gone:
        assert closed.harness.withdraw(one.id, secret=one.secret).status_code == 200
