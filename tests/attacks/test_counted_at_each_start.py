"""A collector with gateway keys reads every report at each start, although no study states a relay."""

from collector.oblivious import needed
from schemas import Study
from tests import studies


def test_reports_are_not_counted_if_no_study_states_a_relay(empty, monkeypatch):
    def counted(_session):
        raise AssertionError

    assert empty.publish(Study(studies.document(studies.YES_NO))).status_code == 201
    monkeypatch.setattr(needed, "arrivals", counted)
    with empty.collector.database.read() as session:
        assert list(needed.relayed_with_reports(session)) == []
