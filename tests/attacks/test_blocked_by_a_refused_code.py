"""A code that its issuer never accepts keeps other studies' reports on the device.

Defence: The device: after the first try, the order of requests is random.
"""

import pytest

from collector.issuer.store import Person
from ldp_client.device import sending
from tests.attacks.test_beside_reports import YES, another
from tests.attacks.test_joining_people_and_reports import COLLECTOR, DAY, World
from tests.ldp_client.devices import consenting


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path, monkeypatch)
    monkeypatch.setattr(sending, "backoff", lambda _attempt: 0)
    yield made
    made.close()


def with_a_refused_code(world, folder):
    """A device with one waiting report and one whose code is refused, and the codes that are accepted."""
    other, codes = another(world, "second", [{}], [Person("Ada", {})])
    device = consenting(folder / "device", "8", COLLECTOR)
    device.answer(world.study, YES, world.codes[0])
    device.flush()
    device.answer(other, YES, "mistyped-code-that-nobody-takes")
    return device, codes


def test_refused_code_does_not_block_other_reports(world, tmp_path):
    device, _ = with_a_refused_code(world, tmp_path)
    for _ in range(40):
        world.now += DAY
        flushed = device.flush()
        if flushed.sent:
            break
    assert len(world.sent) == 1


def test_replacement_code_is_tried_at_once(world, tmp_path):
    device, codes = with_a_refused_code(world, tmp_path)
    for _ in range(40):
        world.now += DAY
        if device.flush().sent:
            break
    device.invite("second", codes[0])
    world.asked.clear()
    assert device.flush().waiting == 0
    assert len(world.asked) == 1
