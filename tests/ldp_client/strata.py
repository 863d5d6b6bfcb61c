"""A device whose ticket is for a stratum that its study has no token key for."""

from __future__ import annotations

import pytest

from ldp_client.core.tokens import short_id_of
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, channel_of, keys, refusing

REGION = {"id": "region", "choices": ["north", "south", "west"], "source": "ticket"}
NORTH, SOUTH = {"region": "north"}, {"region": "south"}


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def device(tmp_path, server):
    """One that answered such a study, its issuer, and what the issuer answers."""
    with Issuer() as issuer:
        stated = channel_of(issuer.url, NORTH, SOUTH)
        study = Study(studies.document(studies.YES_NO, channel=stated, public=[REGION]))
        device = consenting(tmp_path / "device", "8", server.url)
        device.answer(study, {"ever": True}, "CODE")
        taken = {short_id_of(key.spki) for key in keys()}
        other = min({*range(3)} - taken)
        yield device, issuer, refusing(409, "token-key-other", key_id=other)
