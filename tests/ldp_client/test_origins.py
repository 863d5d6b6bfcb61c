"""A collector's origin has one spelling, the same in Python and JavaScript."""

import json

import pytest

from ldp_client.device.arguments import checked_url, origin_of
from ldp_client.documents.errors import InputError
from tests.portable.make_vectors import FOLDER

ENTRIES = json.loads((FOLDER / "origins.json").read_text(encoding="utf-8"))["origins"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["url"])
def test_origin_matches_the_vectors(entry):
    if entry["origin"] is None:
        with pytest.raises(InputError):
            checked_url(entry["url"])
    else:
        assert origin_of(checked_url(entry["url"])[0]) == entry["origin"]
