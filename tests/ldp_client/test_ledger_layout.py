"""There is one layout: a ledger of another one is refused, and left alone."""

import sqlite3

import pytest

from ldp_client.device.ledger_layout import LAYOUT
from ldp_client.documents.errors import LedgerError
from tests.kit.errors import raises
from tests.ldp_client.devices import consenting


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
