"""Ledgers of older versions are taken over whole; those of newer ones are left alone."""

import hashlib
import json
import sqlite3

import pytest

from ldp_client import Device
from ldp_client.device.ledger_layout import LAYOUT, digest_of
from ldp_client.device.terms import terms_of
from ldp_client.documents.errors import AlreadyAnsweredError, LedgerError, RefusedError
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

TABLES = ("spent", "permanent", "seen", "consents", "publishers")
STUDY = Study(studies.document(studies.YES_NO, version=2))
BODY = Report("ab" * 16, "survey", 2, STUDY.digest, {"ever": b"\x00"}).to_json()

# As version 0.1 of the ledger was made.
LAYOUT_1 = """
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS spent (
  study TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL, epsilon TEXT NOT NULL,
  PRIMARY KEY (study, question)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
  report_id TEXT PRIMARY KEY, collector TEXT NOT NULL, study TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
COMMIT;
"""


@pytest.fixture
def old(tmp_path):
    folder = tmp_path / "device"
    folder.mkdir()
    connection = sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)
    connection.executescript(LAYOUT_1)
    connection.executemany(
        "INSERT INTO spent VALUES (?, ?, ?, ?)", [("survey", "ever", 2, "1"), ("older", "q", 1, "1/3")]
    )
    connection.execute("INSERT INTO outbox VALUES (?, '', 'survey', ?)", ("ab" * 16, BODY))
    connection.close()
    return folder


def test_nothing_of_layout_1_is_lost(old):
    with Server() as server:
        device = consenting(old, "4", server.url)
        assert [
            (spend.study, spend.question, spend.version, str(spend.epsilon))
            for spend in device.ledger.spent()
        ] == [
            ("older", "q", 1, "1/3"),
            ("survey", "ever", 2, "1"),
        ]
        with pytest.raises(AlreadyAnsweredError):
            device.answer(STUDY, {"ever": True})
        with raises(RefusedError, "device.older_version", "2"):
            device.answer(Study(studies.document(studies.NUMBER, version=1)), {"hours": 1})
        assert device.flush().sent == 1
        assert [body.decode() for _, _, body, _ in server.requests] == [BODY]
        assert device.withdraw("survey") == 1
    assert not (old / "ledger.sqlite3-wal").exists()


def test_an_interrupted_migration_leaves_layout_1_or_2(old, monkeypatch):
    """The connection breaks at its 1st, 2nd, … statement; the next opening finds everything."""
    seen, connect = [0, 1], sqlite3.connect

    class Breaking(sqlite3.Connection):
        def execute(self, statement, *values):
            seen[0] += 1
            if seen[0] == seen[1]:
                raise sqlite3.OperationalError("broken off")
            return super().execute(statement, *values)

    def opened():
        seen[0] = 0
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, **o, factory=Breaking))
        try:
            return consenting(old, "4")
        except LedgerError:
            return None
        finally:
            monkeypatch.setattr(sqlite3, "connect", connect)

    layouts = []
    while opened() is None:
        seen[1] += 1
        connection = connect(old / "ledger.sqlite3")
        layouts.append(connection.execute("PRAGMA user_version").fetchone()[0])
        assert connection.execute("SELECT COUNT(*) FROM spent").fetchone() == (2,)
        connection.close()
    assert layouts == sorted(layouts)
    assert set(layouts) == {1, LAYOUT}
    assert [queued.body for queued in consenting(old, "4").ledger.queued()] == [BODY]


# As version 2 of the ledger was made.
LAYOUT_2 = """
CREATE TABLE spent (
  study TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL, epsilon TEXT NOT NULL,
  delta TEXT NOT NULL, PRIMARY KEY (study, question)) WITHOUT ROWID;
CREATE TABLE reports (
  id TEXT PRIMARY KEY, collector TEXT NOT NULL, study TEXT NOT NULL, state TEXT NOT NULL,
  due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL, invitation TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE permanent (
  study TEXT NOT NULL, question TEXT NOT NULL, fingerprint TEXT NOT NULL, answer BLOB NOT NULL,
  PRIMARY KEY (study, question)) WITHOUT ROWID;
CREATE TABLE seen (
  study TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE consents (study TEXT PRIMARY KEY, digest TEXT NOT NULL, day TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), digest TEXT NOT NULL);
PRAGMA user_version = 2;
"""
SEALED_2 = (
    "SELECT study, question, version, epsilon, delta FROM spent ORDER BY study, question",
    "SELECT id, collector, study, state, due, digest, invitation FROM reports ORDER BY id",
    "SELECT study, question, fingerprint, hex(answer) FROM permanent ORDER BY study, question",
    "SELECT study, version, digest, key FROM seen ORDER BY study",
    "SELECT study, digest, day FROM consents ORDER BY study",
)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def second(tmp_path):
    """A ledger of layout 2 with one report that waits, one that was sent, and one that is shares."""
    folder = tmp_path / "device"
    folder.mkdir()
    connection = sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)
    connection.executescript(LAYOUT_2)
    connection.execute("INSERT INTO spent VALUES ('survey', 'ever', 2, '1', '0')")
    for report_id, study, state, body in (
        ("ab" * 16, "survey", "trying", BODY),
        ("cd" * 16, "older", "sent", ""),
        ("ef" * 16, "summed", "queued", '["AAAA"]'),
    ):
        row = (report_id, "", study, state, 0, sha256(body), body, "")
        connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    rows = [connection.execute(query).fetchall() for query in SEALED_2]
    connection.execute("INSERT INTO seal VALUES (1, ?)", (sha256(json.dumps(rows)),))
    connection.close()
    return folder


def test_nothing_of_layout_2_is_lost_and_only_an_operator_deletes_what_has_no_secret(second):
    device = consenting(second, "4")
    kept = {one.report_id: one for one in device.ledger.queued()}
    assert {report_id: one.body for report_id, one in kept.items()} == {
        "ab" * 16: BODY,
        "ef" * 16: '["AAAA"]',
    }
    mine, shares = kept["ab" * 16], kept["ef" * 16]
    assert (mine.secret, mine.version, mine.document) == ("", 2, STUDY.digest)
    assert (shares.secret, shares.version, shares.document) == ("", 0, "")
    with Server() as server:
        assert device.withdraw("older") == 1
        flushed = consenting(second, "4", server.url).flush(attempts=1)
        assert (flushed.deleted, flushed.undeleted) == (0, 1)
        assert "only the collector's operator can delete it" in flushed.reason
        assert server.asked("DELETE") == []


def test_damage_to_layout_2_is_not_sealed_anew(second):
    connection = sqlite3.connect(second / "ledger.sqlite3")
    connection.execute("DELETE FROM spent")
    connection.commit()
    connection.close()
    before = (second / "ledger.sqlite3").read_bytes()
    with raises(LedgerError, "device.ledger_changed"):
        consenting(second, "4")
    assert (second / "ledger.sqlite3").read_bytes() == before


# What version 3 had beside version 2.
LAYOUT_3 = """
DROP TABLE reports;
CREATE TABLE reports (
  id TEXT PRIMARY KEY, secret TEXT NOT NULL, collector TEXT NOT NULL, study TEXT NOT NULL,
  version INTEGER NOT NULL, document TEXT NOT NULL, closes TEXT NOT NULL, state TEXT NOT NULL,
  due INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL, invitation TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE publishers (
  document TEXT NOT NULL, collector TEXT NOT NULL, identity TEXT NOT NULL,
  PRIMARY KEY (document, collector)) WITHOUT ROWID;
PRAGMA user_version = 3;
"""
SEALED_3 = (
    SEALED_2[0],
    "SELECT id, secret, collector, study, version, document, closes, state, due, digest, invitation "
    "FROM reports ORDER BY id",
    "SELECT document, collector, identity FROM publishers ORDER BY document, collector",
    *SEALED_2[2:],
)
NEXT = Study(studies.document(studies.MEMOIZED, version=3))


@pytest.fixture
def third(tmp_path):
    """A ledger of layout 3 with reports for a collector, for nodes and for whoever is first."""
    folder = tmp_path / "device"
    folder.mkdir()
    connection = sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)
    connection.executescript(LAYOUT_2 + LAYOUT_3)
    connection.execute("INSERT INTO spent VALUES ('survey', 'habit', 2, '2', '1/100000')")
    connection.execute(
        "INSERT INTO permanent VALUES ('survey', 'habit', ?, x'01')",
        (*terms_of(NEXT).told["habit"].values(),),
    )
    connection.execute("INSERT INTO seen VALUES ('survey', 2, 'd', 'k')")
    connection.execute("INSERT INTO consents VALUES ('survey', ?, '2026-01-01')", (NEXT.digest,))
    connection.execute("INSERT INTO publishers VALUES ('d', 'https://known.example', 'i')")
    for report_id, collector in (("ab", "https://known.example"), ("cd", "https://a https://b"), ("ef", "")):
        row = (
            report_id,
            "5e",
            collector,
            "survey",
            2,
            "d",
            "2026-12-31",
            "trying",
            7,
            sha256(BODY),
            BODY,
            "word",
        )
        connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    rows = [connection.execute(query).fetchall() for query in SEALED_3]
    connection.execute("INSERT INTO seal VALUES (1, ?)", (sha256(json.dumps(rows)),))
    connection.close()
    return folder


def test_nothing_of_layout_3_is_lost_and_what_named_no_publisher_is_anybodys(third):
    device = Device(third, "4", "https://squatter.example")
    with device.ledger.reading() as connection:
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    assert rows == {
        "spent": [("survey", "", "habit", 2, "", "2", "1/100000")],
        "permanent": [("survey", "", "habit", *terms_of(NEXT).told["habit"].values(), b"\x01")],
        "seen": [("survey", "", 2, "d", "k")],
        "consents": [("survey", "", NEXT.digest, "2026-01-01")],
        "publishers": [("d", "https://known.example", "i")],
    }
    asked = ("survey", BODY, 7, "word", "5e", 2, "d", "2026-12-31")
    assert [tuple(vars(queued).values()) for queued in device.ledger.queued()] == [
        ("ab", "https://known.example", *asked, ""),
        ("cd", "https://a https://b", *asked, ""),
        ("ef", "", *asked, ""),
    ]
    with raises(RefusedError, "device.older_version", "2"):
        device.accept(Study(studies.document(studies.MEMOIZED, version=1)))
    device.answer(NEXT, {"habit": "no"})
    assert device.epsilon_left == 2
    assert device.withdraw("survey") == 3


@pytest.mark.parametrize("spelling", ["http://localhost:8000", "https://moved.example"])
def test_a_withdrawal_by_another_spelling_of_the_address_is_no_deletion(third, spelling):
    device = Device(third, "4", spelling)
    assert device.withdraw("survey") == 3
    assert device.ledger.queued() == []


@pytest.mark.parametrize("layout", [0, LAYOUT + 1, 99])
def test_an_unknown_layout_is_refused_and_left_alone(tmp_path, layout):
    consenting(tmp_path, "4")
    file = tmp_path / "ledger.sqlite3"
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {layout}")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(LedgerError, match=f"layout {layout}"):
        consenting(tmp_path, "4")
    assert file.read_bytes() == before


def as_layout_4(folder):
    """A ledger of this layout as version 4 kept it."""
    path = folder / "ledger.sqlite3"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("DROP TABLE channels")
        connection.execute("DROP TABLE tokens")
        connection.execute("DROP TABLE holder")
        sealed = digest_of(json.dumps([connection.execute(query).fetchall() for query in SEALED_4]))
        connection.execute("UPDATE seal SET digest = ?", (sealed,))
        connection.execute("PRAGMA user_version = 4")
    return path


SEALED_4 = (
    "SELECT study, publisher, question, version, words, epsilon, delta FROM spent ORDER BY 1, 2, 3",
    "SELECT id, secret, collector, publisher, study, version, document, closes, state, due, digest, "
    "invitation FROM reports ORDER BY id",
    "SELECT document, collector, identity FROM publishers ORDER BY document, collector",
    "SELECT study, publisher, question, fingerprint, hex(answer) FROM permanent ORDER BY 1, 2, 3",
    "SELECT study, publisher, version, digest, key FROM seen ORDER BY 1, 2",
    "SELECT study, publisher, digest, day FROM consents ORDER BY 1, 2",
)


def test_nothing_of_layout_4_is_lost(tmp_path):
    with Server() as server:
        consenting(tmp_path, "4", server.url).answer(STUDY, {"ever": True}, "CODE")
        path = as_layout_4(tmp_path)
        device = consenting(tmp_path, "4", server.url)
        assert [queued.invitation for queued in device.ledger.queued()] == ["CODE"]
        with pytest.raises(AlreadyAnsweredError):
            device.answer(STUDY, {"ever": True})
        assert device.flush().sent == 1
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT * FROM channels").fetchall() == []
            assert connection.execute("PRAGMA user_version").fetchone() == (LAYOUT,)


SEALED_5 = (
    *SEALED_4,
    "SELECT document, channel, size FROM channels ORDER BY document",
    "SELECT report, key, turned, nonce, salt, factor, token FROM tokens ORDER BY report",
)


def as_layout_5(folder):
    """A ledger of this layout as version 5 kept it."""
    path = folder / "ledger.sqlite3"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("DROP TABLE holder")
        sealed = digest_of(json.dumps([connection.execute(query).fetchall() for query in SEALED_5]))
        connection.execute("UPDATE seal SET digest = ?", (sealed,))
        connection.execute("PRAGMA user_version = 5")
    return path


def test_nothing_of_layout_5_is_lost(tmp_path):
    before = consenting(tmp_path, "4")
    before.answer(STUDY, {"ever": True}, "CODE")
    spent = [vars(spend) for spend in before.ledger.spent()]
    as_layout_5(tmp_path)
    after = consenting(tmp_path, "4").ledger
    assert [queued.invitation for queued in after.queued()] == ["CODE"]
    assert [vars(spend) for spend in after.spent()] == spent


def test_a_row_of_layout_5_that_was_changed_is_noticed(tmp_path):
    consenting(tmp_path, "4").answer(STUDY, {"ever": True}, "CODE")
    with sqlite3.connect(as_layout_5(tmp_path)) as connection:
        connection.execute("UPDATE reports SET invitation = 'OTHER'")
    with raises(LedgerError, "device.ledger_changed"):
        consenting(tmp_path, "4")
