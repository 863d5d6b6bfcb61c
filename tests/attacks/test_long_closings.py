"""Nodes commit to sets so large that checking them exceeds their database's timeout.

Defence: The node: checks before its single writer's transaction, and answers the same drawing again
without a check.
"""

from __future__ import annotations

from threading import current_thread

import pytest

from collector.secure_sum import node as nodes
from collector.secure_sum import summing
from collector.secure_sum.drawing import Drawing
from tests.secure_sum.conftest import TOKEN, close_study

WRITER = "writer"


@pytest.fixture
def threads(monkeypatch):
    """The names of the threads in which nodes did what takes the longer the more devices there are."""
    seen = {"chosen": [], "share_ids": [], "set_digest": [], "to_json": []}

    def note(owner, name):
        do = getattr(owner, name)

        def noted(*arguments):
            seen[name].append(current_thread().name)
            return do(*arguments)

        monkeypatch.setattr(owner, name, noted)

    note(Drawing, "chosen")
    note(Drawing, "to_json")
    note(summing, "share_ids")
    note(nodes, "set_digest")
    return seen


def test_long_checks_do_not_run_in_the_writer_thread(network, threads):
    study = network.publish("ever")
    network.answer(15)
    close_study(study, [TOKEN])
    assert all(threads.values())
    assert WRITER not in {thread for each in threads.values() for thread in each}


def test_repeated_set_is_confirmed_without_a_second_check(network, threads):
    network.publish("ever")
    network.answer(15)
    drawing = network.draw().to_document()
    node = network.nodes[0]
    first = node.post("/set", json=drawing)
    assert first.status_code == 200
    checks = len(threads["chosen"])
    assert node.post("/set", json=drawing).data == first.data
    assert len(threads["chosen"]) == checks == 1
