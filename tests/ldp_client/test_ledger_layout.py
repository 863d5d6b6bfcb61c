"""There is one layout: a ledger of another layout is rejected, and changed rows are detected."""

import sqlite3

import pytest

from ldp_client.device.layout import LAYOUT
from ldp_client.documents.errors import LedgerError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import consenting
from tests.ldp_client.issuers import study_of

STUDY = Study(studies.document(studies.YES_NO, version=2))


@pytest.mark.parametrize("layout", [0, LAYOUT - 1, LAYOUT + 1, 99])
def test_another_layout_is_refused_and_left_alone(tmp_path, layout):
    consenting(tmp_path, "4")
    file = tmp_path / "ledger.sqlite3"
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {layout}")
    connection.close()
    before = file.read_bytes()
    with raises(LedgerError, "device.ledger_layout", f"layout {layout}"):
        consenting(tmp_path, "4")
    assert file.read_bytes() == before


def changed(ledger, statement):
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(statement)
    with raises(LedgerError, "device.ledger_changed"):
        consenting(ledger.path.rpartition("/")[0], "8")


@pytest.mark.parametrize("change", ["UPDATE reports SET invitation = 'OTHER'", "DELETE FROM reports"])
def test_a_report_that_was_changed_is_noticed(tmp_path, change):
    device = consenting(tmp_path, "8")
    device.answer(STUDY, {"ever": True}, "CODE")
    changed(device.ledger, change)


@pytest.mark.parametrize(
    "change", ["UPDATE tokens SET token = 'ab'", "DELETE FROM tokens", "DELETE FROM channels"]
)
def test_a_token_that_was_changed_is_noticed(tmp_path, change):
    device = consenting(tmp_path, "8", "http://127.0.0.1:9")
    device.answer(study_of("http://127.0.0.1:9"), {"ever": True}, "CODE")
    device.flush(attempts=1)
    with sqlite3.connect(device.ledger.path) as connection:
        assert connection.execute("SELECT count(*) FROM tokens").fetchone() == (1,)
    changed(device.ledger, change)
