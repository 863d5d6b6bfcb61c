"""In JavaScript a report leaves through its relay alone, and beside nothing in the clear."""

import json

from tests.portable import npm


def test_one_kind_leaves_and_of_what_is_relayed_one():
    assert len(json.loads(npm.node("beside_relayed.mjs"))) == 1
