"""What a secure sum costs its nodes: `python -m benchmarks.secure_sum [--d 1000] [--clients 100000] [--all]`.

The grid of Table 1 of Heikkilä et al. 2017: vectors of d numbers, N clients, M = 10 nodes; without
arguments its smaller half, in a few minutes, with `--all` every cell. Shares are sealed and stored before
the clock runs, one node's words and one node's seeds; the other seed nodes do the same work on shares of
their own, so their time is taken from further runs over the stored ones. A node's time is everything from
the request for the sum to the words: reading rows, opening, expanding, adding. The time of all nodes also
has the start of their processes, which is most of it up to 1,000 clients. Rates move with the machine.
"""

from __future__ import annotations

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
from collector.nodes.node import Node, at_once
from collector.nodes.store import share_ids
from collector.nodes.summing import Opener, add_shares
from collector.store import PackedReport
from ldp_client.documents.channel import MODULUS_BYTES, SPKI_HEAD, SPKI_TAIL
from ldp_client.secure_sum import context, seal
from schemas import Study

NODES = 10
_TODAY = date(2026, 1, 1)
MOST_CELLS = 4096
BYTES_AT_ONCE = 1 << 24
# The paper's seconds (its Table 1), on a Spark cluster: {d: {N: seconds}}.
PAPER = {
    10: {100: 1.72, 1000: 1.89, 10_000: 2.99, 100_000: 8.58},
    100: {100: 2.03, 1000: 2.86, 10_000: 12.36, 100_000: 65.64},
    1000: {100: 3.43, 1000: 10.56, 10_000: 101.2, 100_000: 610.55},
    10_000: {100: 15.30, 1000: 84.95, 10_000: 994.96, 100_000: 1592.29},
}
# What is measured without arguments: every d and N of these.
SMALLER = [10, 100, 1000], [100, 1000, 10_000]
# More words than this are not stored: the first node's time is then scaled from fewer clients.
MOST_STORED_BYTES = 1 << 30


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
    """One cell of the grid, printed."""
    words_keys, seed_keys = NodeKeys.generate(), NodeKeys.generate()
    study = build_study((words_keys, seed_keys), d, clients)
    stored_words = min(clients, max(100, MOST_STORED_BYTES // (8 * d)))
    words = store_shares(folder, words_keys, study, stored_words)
    seeds = store_shares(folder, seed_keys, study, clients)
    start = time.perf_counter()
    processors = len(os.sched_getaffinity(0))
    # Processes of their own from the start, whose memory is a node's alone.
    with ProcessPoolExecutor(processors, get_context("spawn")) as pool:
        first = pool.submit(words.sum_once)
        others = [pool.submit(seeds.sum_once) for _ in range(NODES - 1)]
        spent = [part.result() for part in others]
        words_spent = first.result() * clients / stored_words
    wall = time.perf_counter() - start + words_spent * (1 - stored_words / clients)
    note = "" if stored_words == clients else f" (words scaled from {stored_words} clients)"
    print(
        f"d {d:>6}  N {clients:>7}  all {NODES} nodes {wall:8.2f} s (paper {PAPER[d][clients]:.2f}), "
        f"{sum(spent) + words_spent:.2f} CPU s on {processors} processors; one seed node "
        f"{min(spent):.2f}{note}",
        flush=True,
    )
    for stored in (words, seeds):
        for file in stored.file.parent.glob(f"{stored.file.name}*"):
            file.unlink()
        stored.key_file.unlink()


def main(argv: Sequence[str] | None = None) -> None:
    """Run the grid, a part of it, or one cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d", type=int, choices=sorted(PAPER), help="numbers a device sends")
    parser.add_argument("--clients", type=int, choices=sorted(PAPER[10]), help="how many devices")
    parser.add_argument(
        "--all", action="store_true", help="the whole grid, with d = 10,000 and 100,000 clients"
    )
    arguments = parser.parse_args(argv)
    dimensions, sizes = (sorted(PAPER), sorted(PAPER[10])) if arguments.all else SMALLER
    dimensions = [arguments.d] if arguments.d else dimensions
    sizes = [arguments.clients] if arguments.clients else sizes
    with tempfile.TemporaryDirectory() as name:
        for d in dimensions:
            for clients in sizes:
                measure(d, clients, Path(name))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest node process {most:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
