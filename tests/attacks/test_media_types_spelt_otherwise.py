"""A proxy writes media types in upper case or with parameters, and a browser rejects the answer."""

from __future__ import annotations

import json

from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT


def test_browser_and_device_accept_the_same_media_types():
    said = npm.node("answers_types.mjs", JAVASCRIPT / "oblivious.js", JAVASCRIPT / "upload.js")
    assert json.loads(said) == {
        "relayed": [True] * 4 + [False] * 3,
        "receipts": ["stored"] * 4 + ["none"] * 3,
    }
