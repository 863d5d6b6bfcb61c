"""An aggregator asks a node for its nonce with several sets of commitments at once, to choose a draw.

Defence: The node: one request at a time reads and notes what its nonce is shown for, in all processes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from collector.problems import SET_CONFLICT, ProblemError
from collector.secure_sum.node import Node
from collector.secure_sum.statements import Statement
from collector.storage.database import Database
from collector.storage.node_keys import NodeKeys
from collector.studies import publishing
from tests.collector.conftest import ensure_database
from tests.secure_sum.conftest import build_study


def test_concurrent_requests_reveal_nonce_for_one_commitment_set(postgresql):
    keys = [NodeKeys.generate() for _ in range(2)]
    hosts = ("https://a.example", "https://b.example")
    study = build_study("ever", nodes=[f"{host}#{one.fragment}" for host, one in zip(hosts, keys)])
    database = Database(ensure_database(postgresql.new_database()), 10)
    node = Node(keys[0], database, 1 << 24)
    with database.write() as session:
        node.publish(session, study)
    with database.write() as session:
        publishing.close(session, study.id)
    own = node.commit(study.id, database.act)

    def commitments(digit):
        said = Statement("draw", study.id, study.digest, 1, 0, own.set, digit * 64)
        return [own, said.signed(keys[1].signing)]

    def ask(digit):
        with Database(database.url.render_as_string(False), 10).write() as other:
            return node.show(other, study.id, commitments(digit))

    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            nonce = node.show(session, study.id, commitments("a"))
            second = pool.submit(ask, "b")
            # Long enough for it to read what stands there before the first request has ended.
            sleep(0.5)
        with pytest.raises(ProblemError) as refused:
            second.result()
    assert refused.value.kind is SET_CONFLICT
    assert ask("a") == nonce
    database.engine.dispose()
