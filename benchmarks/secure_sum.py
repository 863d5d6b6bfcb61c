"""What a secure sum costs its nodes: `python -m benchmarks.secure_sum [--d 1000] [--clients 100000]`.

Vectors of d numbers, N clients, M = 10 nodes. Shares are sealed and stored before the clock runs, one node's
words and one node's seeds. The other seed nodes do the same work on shares of their own, so their time is
taken from further runs over the stored ones. A node's time is everything from the request for the sum to the
words: reading rows, opening, expanding, adding. The time of all nodes also has the start of their processes.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from collector import store
from collector.db import Database
from collector.migrations import make
from collector.nodes.keys import NodeKeys
from collector.nodes.node import Node, at_once, share_ids
from collector.nodes.summing import Opener, add_shares
from collector.store import PackedReport
from ldp_client.documents.channel import MODULUS_BYTES, SPKI_HEAD, SPKI_TAIL
from ldp_client.secure_sum import context, seal
from schemas import Study

NODES = 10
_TODAY = date(2026, 1, 1)
MOST_CELLS = 4096
BYTES_AT_ONCE = 1 << 24


def build_study(measured: Sequence[NodeKeys], d: int, clients: int) -> Study:
    """A study whose devices send d numbers, as histograms. measured: the keys of its first nodes."""
    sizes = [MOST_CELLS] * (d // MOST_CELLS) + [d % MOST_CELLS]
    stated = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
    questions = [
        {
            "id": f"q{index}",
            "ask": "number",
            "bounds": ["0", "1"],
            "mechanism": {**stated, "cells": size},
            "model": {"name": "normal"},
        }
        for index, size in enumerate(sizes)
        if size
    ]
    keys = [*measured, *(NodeKeys.generate() for _ in range(NODES - len(measured)))]
    nodes = [f"https://{index + 1}.example#{key.fragment}" for index, key in enumerate(keys)]
    protocol = {"name": "secure_sum", "nodes": nodes, "devices": clients, "max_faulty": clients // 10}
    head = {"format": "ldpkit.study/1", "id": "grid", "version": 1, "title": "Grid"}
    return Study({**head, "protocol": protocol, "channel": _channel(), "questions": questions})


def _channel() -> dict[str, Any]:
    """Tickets, as nodes demand them. No device of this program has one."""
    modulus = b"\x80" + bytes(MODULUS_BYTES - 2) + b"\x01"
    key = b64encode(SPKI_HEAD + modulus + SPKI_TAIL).decode()
    tickets = {"issuer": "https://issuer.example", "keys": [{"key": key}]}
    return {"batches": {"hours": 24}, "tickets": tickets}


@dataclass(frozen=True)
class Stored:
    """One node's sealed shares in a database file, and what opens them."""

    file: Path
    key_file: Path

    def sum_once(self) -> float:
        """CPU seconds to sum all shares."""
        with closing(_Opened(self)) as opened:
            start = time.process_time()
            opened.sum()
            return time.process_time() - start


class _Opened:
    """The node that they were stored for."""

    def __init__(self, stored: Stored) -> None:
        self.database = Database(f"sqlite:///{stored.file}", 5.0)
        self.node = Node(NodeKeys.load(stored.key_file), self.database)
        self.opener = self.node.opener("grid")

    def sum(self) -> bytes:
        with self.database.read() as session:
            number = store.study_state(session, "grid").number  # type: ignore[union-attr]
            ids = share_ids(session, number)
        return add_shares(self.opener, self.node._shares(number, ids, at_once(self.opener)))

    def close(self) -> None:
        self.database.engine.dispose()


def store_shares(folder: Path, keys: NodeKeys, study: Study, clients: int) -> Stored:
    """Seal and store the shares of so many clients, for the node that has these keys."""
    file = folder / f"{keys.fragment[:16]}.sqlite3"
    database = Database(f"sqlite:///{file}", 5.0)
    make(database)
    node = Node(keys, database)
    database.act(lambda session: node.publish(session, study))
    opener = node.opener("grid")
    rows = min(5000, BYTES_AT_ONCE // opener.share_size)
    for start in range(0, clients, rows):
        shares = list(_sealed(opener, min(rows, clients - start)))
        with database.write() as session:
            number = store.study_state(session, "grid").number  # type: ignore[union-attr]
            store.insert_reports(session, number, _TODAY, shares)
    database.engine.dispose()
    key_file = file.with_suffix(".key")
    keys.save(key_file)
    return Stored(file, key_file)


def _sealed(opener: Opener, count: int) -> Iterator[PackedReport]:
    public = opener.key.public_key().public_bytes_raw()
    for _ in range(count):
        report_id = os.urandom(16)
        info = context(opener.study.digest, report_id.hex(), opener.node)
        yield PackedReport(report_id, opener.study.version, seal(public, info, os.urandom(opener.share_size)))


def measure(d: int, clients: int, folder: Path) -> None:
    """Print what all nodes spend."""
    words_keys, seed_keys = NodeKeys.generate(), NodeKeys.generate()
    study = build_study((words_keys, seed_keys), d, clients)
    words = store_shares(folder, words_keys, study, clients)
    seeds = store_shares(folder, seed_keys, study, clients)
    start = time.perf_counter()
    processors = len(os.sched_getaffinity(0))
    # Processes of their own from the start, whose memory is a node's alone.
    with ProcessPoolExecutor(processors, get_context("spawn")) as pool:
        parts = [pool.submit(stored.sum_once) for stored in (words, *[seeds] * (NODES - 1))]
        spent = [part.result() for part in parts]
    print(
        f"d {d:>6}  N {clients:>7}  all {NODES} nodes {time.perf_counter() - start:8.2f} s, "
        f"{sum(spent):.2f} CPU s on {processors} processors; one seed node {min(spent[1:]):.2f}",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d", type=int, default=1000, help="numbers a device sends")
    parser.add_argument("--clients", type=int, default=100_000, help="how many devices")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        measure(given.d, given.clients, Path(name))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest node process {most:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
