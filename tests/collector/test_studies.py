"""A published version is served at once, and many visitors read the database once."""

from __future__ import annotations

from sqlalchemy import update

from collector import store
from collector.studies import publish
from tests.kit.collectors import TODAY, build_study


def page(harness, **headers):
    return harness.client.get("/s/habits", headers=headers)


def test_a_new_version_is_served_at_once_and_the_old_one_under_its_number(habits, study):
    habits.client.get("/v1/studies/habits")
    newer = build_study(2, title="Newer habits")
    habits.publish(newer)
    assert habits.client.get("/v1/studies/habits").data == newer.canonical()
    assert habits.client.get("/v1/studies/habits?version=1").data == study.canonical()
    assert "Newer habits" in page(habits).text


def test_version_published_by_another_process_is_served(habits, monkeypatch):
    habits.client.get("/v1/studies/habits")
    newer = build_study(2, title="Newer habits")
    with habits.collector.database.write() as session:
        publish(session, newer)
    monkeypatch.setattr("collector.studies.time.monotonic", lambda: float("inf"))
    assert habits.client.get("/v1/studies/habits").data == newer.canonical()


def test_many_visitors_read_the_database_once(habits, monkeypatch):
    monkeypatch.setattr("collector.studies.time.monotonic", lambda: 0.0)
    page(habits)
    habits.client.get("/v1/studies/habits")
    monkeypatch.setattr(habits.collector.database, "read", None)
    for _ in range(3):
        assert page(habits).status_code == 200
        assert habits.client.get("/v1/studies/habits").status_code == 200


def test_documents_in_memory_are_bounded_in_bytes(habits, monkeypatch):
    current = habits.collector.current
    for number in range(4):
        habits.publish(build_study(id=f"study-{number}"))
    size = len(current.find("study-0").canonical)
    monkeypatch.setattr("collector.studies.MOST_BYTES", 3 * size)
    for _ in range(2):
        for number in range(4):
            assert current.find(f"study-{number}") is not None
            assert size * sum(current.knows(f"study-{one}") for one in range(4)) <= 3 * size


def test_overview_has_version_published_between_its_statements(habits, monkeypatch):
    """Version 2 and its first report arrive while the database is read: the status used to be 500."""
    with habits.collector.database.write() as session:
        execute, is_later = session.execute, []

        def publish_meanwhile(statement):
            result = execute(statement).freeze()()
            if not is_later:
                is_later.append(True)
                store.add_document(session, 1, 2, "0" * 64, b"{}", "")
                store.insert_reports(session, 1, TODAY, [store.PackedReport(bytes(16), 2, b"x")])
                session.connection().execute(update(store.STUDIES).values(version=2))
            return result

        monkeypatch.setattr(session, "execute", publish_meanwhile)
        (study,) = store.study_overviews(session)
    assert {study.version, *(count.version for count in study.arrivals)} <= set(study.versions)
