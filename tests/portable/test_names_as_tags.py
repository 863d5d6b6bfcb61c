"""Name a stratum's public field like a tag in a text ledger: the ledger is still read correctly.

Defence: The device: names of a study are kept apart from tags of the ledger; a study of another id is
rejected, in Python and JavaScript.
"""

import json

import pytest

from schemas import Study
from tests import studies
from tests.ldp_client.issuers import channel_of
from tests.portable.test_ledgers import INDEX, KINDS, node

__all__ = ["node"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["integer", "bytes", "length"])
@pytest.mark.parametrize("values", [["north", "south"], ["5", "-6"]])
def test_ledger_is_read_with_field_names_that_look_like_tags(name, values, kind, node, site, tmp_path):
    field = {"id": name, "choices": values, "source": "invitation"}
    channel = channel_of("https://issuer.example", *[{name: value} for value in values])
    document = studies.document(studies.MEMOIZED_BITS, public=[field], channel=channel)
    steps = [["answer", {"brand": "worker"}, "CODE"], ["consent"], ["report"], ["told"], ["ledger"]]
    file = tmp_path / "kept.db"
    text = Study(document).canonical().decode()
    said = json.loads(node("channel.mjs", INDEX, kind, file, site.url, text, json.dumps(steps)))
    assert said[:2] == ["held", "queued"]
    keys = said[2]["channel"]["tokens"]["keys"]
    assert [key["public"] for key in keys] == [{name: value} for value in values]
    assert [study["study"] for study in said[3]["studies"]] == ["survey"]
    # What the study's device keeps itself: exact costs, and a permanent answer's bytes.
    assert said[4] == ["bigint", "Uint8Array"]
