"""In JavaScript a token that is never given, or is another collector's, keeps no other report for good."""

import json

from tests.portable import npm


def test_a_refused_code_keeps_no_other_report_for_good():
    days = json.loads(npm.node("blocked_reports.mjs"))
    assert all(days.values())
    assert set(days) == {"refused", "elsewhere"}
