"""In JavaScript, a refused token or a token of another collector does not block other reports."""

import json

from tests.portable import npm


def test_rejected_code_does_not_block_other_reports():
    days = json.loads(npm.node("blocked_reports.mjs"))
    assert all(days.values())
    assert set(days) == {"refused", "elsewhere"}
