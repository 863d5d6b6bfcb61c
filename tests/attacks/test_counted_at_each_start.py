"""A collector with gateway keys reads every report at each start, although no study states a relay."""

from collector.oblivious import key_usage
from schemas import Study
from tests import studies


def test_reports_are_not_counted_if_no_study_states_a_relay(empty, monkeypatch):
    def counted(_session):
        raise AssertionError

    assert empty.publish(Study(studies.document(studies.YES_NO))).status_code == 201
    monkeypatch.setattr(key_usage, "arrivals", counted)
    with empty.collector.database.read() as session:
        assert list(key_usage.relayed_with_reports(session)) == []
