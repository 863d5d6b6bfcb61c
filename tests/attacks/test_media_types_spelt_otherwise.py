"""Has a proxy spell media types in capitals, or with parameters, and a browser take no answer for one."""

from __future__ import annotations

import json

from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT


def test_a_browser_reads_what_a_device_reads():
    said = npm.node("answers_types.mjs", JAVASCRIPT / "oblivious.js", JAVASCRIPT / "upload.js")
    assert json.loads(said) == {
        "relayed": [True] * 4 + [False] * 3,
        "receipts": ["stored"] * 4 + ["none"] * 3,
    }
