"""Real node processes, killed at any time: what was acknowledged is in the sum, once."""

import random
import time
from threading import Thread

import pytest

from collector.nodes.keys import NodeKeys
from ldp_client import Direct
from ldp_client.core.tokens import token_in
from ldp_client.device.requests import put_share
from ldp_client.documents.errors import TransferError
from ldp_client.secure_sum import SHARES
from tests.kit.collectors import TOKEN, Server, ensure_database, wait_for
from tests.kit.secure_sum import close_study, shares_of, tokened_study
from tests.kit.serving import held_port

DEVICES = 12


class Process:
    """A node in a separate process."""

    def __init__(self, folder, host, port):
        self.folder, self.host, self.port = folder, host, str(port)
        folder.mkdir()
        self.keys = NodeKeys.generate()
        self.keys.save(folder / "node.key")
        self.start()

    def start(self):
        """Take shares, where devices look for it."""
        ensure_database(f"sqlite:///{self.folder / 'collector.sqlite3'}")
        self.server = Server(self.folder, "--port", self.port, command=("serve", "--as", "node"))

    def kill(self):
        """kill -9, and start again."""
        self.server.kill()
        self.start()

    @property
    def address(self):
        return f"{self.server.url.replace('127.0.0.1', self.host)}#{self.keys.fragment}"


def put_until_taken(message):
    """Send the same bytes again and again, as a device does."""
    token, digests = token_in(message.headers["Authorization"]), bytes.fromhex(message.headers[SHARES])
    url = message.node + message.path
    wait_for(lambda: put_share(Direct(), url, message.body, token, digests).state == "sent")


@pytest.fixture
def processes(tmp_path):
    """Two nodes, each a separate server; restarted on the same port and database."""
    with held_port() as first, held_port() as second:
        started = [Process(tmp_path / "first", "127.0.0.1", first)]
        started.append(Process(tmp_path / "second", "localhost", second))
        yield started
        for process in started:
            process.server.kill()


@pytest.mark.slow
def test_killed_nodes_neither_lose_nor_duplicate_shares(processes):
    study = tokened_study("ever", nodes=[one.address for one in processes], devices=DEVICES, max_faulty=1)
    for one in processes:
        assert one.server.request("POST", "/v1/studies", study.document) == 201
    draw = random.Random(20261121)

    def answer_all():
        for _ in range(DEVICES):
            for message in shares_of(study, {"ever": True})[1]:
                put_until_taken(message)

    def close_until_done():
        """The aggregator, started again whenever a node is away for longer than it waits."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return close_study(study, [TOKEN] * 2).total
            except TransferError:
                assert time.monotonic() < deadline

    devices = Thread(target=answer_all)
    devices.start()
    for _ in range(2):
        time.sleep(draw.uniform(0.05, 0.4))
        draw.choice(processes).kill()
    devices.join()

    closing = Thread(target=close_until_done)
    closing.start()
    time.sleep(draw.uniform(0.0, 0.1))
    processes[0].kill()
    closing.join()
    first, second = close_until_done(), close_until_done()
    assert first.questions["ever"].n == DEVICES
    assert first.to_json() == second.to_json()
