"""A report leaves together with another request: for a token, after a clock correction, or with a new code.

Defence: The device, boards too: what is overdue by more than a window (and the two hours that a visit may
delay it) waits for the next one, once. Known limit: a clock that jumps by less brings the report forward
by that much, possibly to directly after its token; no device has a second clock.
"""

import pytest

from collector.issuer import store
from collector.issuer.store import Person
from ldp_client.device import sending
from schemas import Study
from tests import studies
from tests.attacks.test_joining_people_and_reports import COLLECTOR, DAY, START, World
from tests.ldp_client.devices import consenting

YES = {"ever": True}


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path, monkeypatch)
    monkeypatch.setattr(sending, "backoff", lambda _attempt: 0)
    yield made
    made.close()


def another(world, study_id, strata, people, **changes):
    """A further study of that issuer and collector, and people's codes."""
    with world.issuer.extensions["issuer"].write() as session:
        for stratum in strata:
            store.add_key(session, study_id, stratum)
        codes = store.add_codes(session, study_id, people)
        tokens = store.tokens_block(session, study_id)
    channel = {"batches": {"hours": 24}, "tokens": tokens}
    study = Study({**studies.document(studies.YES_NO, channel=channel, **changes), "id": study_id})
    operator = {"Authorization": "Bearer operators-token-for-tests"}
    client = world.collector.test_client()
    assert client.post("/v1/studies", json=study.document, headers=operator).status_code == 201
    return study, codes


def test_report_is_not_sent_with_another_reports_token_request(world, tmp_path):
    """The issuer knows who made the request, and both servers see the same second."""
    other, codes = another(world, "second", [{}], [Person("Ada", {})])
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    device.answer(world.study, YES, world.codes[0])
    device.flush()
    world.now = START + 3 * DAY + 1234
    device.answer(other, YES, codes[0])
    world.asked.clear()
    flushed = device.flush()
    assert (len(world.asked), len(world.sent), flushed.scheduled) == (1, 0, 2)
    for _ in range(2):
        world.now = min(queued.due for queued in device.ledger.queued())
        assert device.flush().sent == 1


def test_correcting_a_fast_clock_does_not_send_report_at_once(world, tmp_path):
    device = consenting(tmp_path / "device", "8", COLLECTOR)
    world.now = START + 40 * DAY
    device.answer(world.study, YES, world.codes[0])
    device.flush()
    world.now = START + 10
    assert device.flush().sent == 0
    (queued,) = device.ledger.queued()
    assert START + DAY <= queued.due < START + 2 * DAY


def test_replacement_code_may_belong_to_another_stratum(world, tmp_path):
    """The device used to accept no other key once the issuer had named one."""
    field = {"id": "region", "choices": ["north", "south", "west"], "source": "invitation"}
    strata = [{"region": value} for value in field["choices"]]
    study, codes = another(world, "third", strata, [Person("", one) for one in strata[1:]], public=[field])
    first, second = (consenting(tmp_path / name, "8", COLLECTOR) for name in ("first", "second"))
    for device in (first, second):
        device.answer(study, YES, codes[0])
        device.flush()
    second.invite("third", codes[1])
    assert second.flush().waiting == 0
    world.now = second.ledger.queued()[0].due
    assert second.flush().sent == 1
