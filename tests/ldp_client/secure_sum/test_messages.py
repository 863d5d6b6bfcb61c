"""Splitting, expanding and sealing: shares sum to the vector, and only their node opens them."""

import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from collector.nodes.keys import NodeKeys
from collector.nodes.summing import CACHE_BYTES, MOST_AT_ONCE, Opener, add_seeds
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.secure_sum import context, expand, seal, split
from schemas import Study
from tests.kit.errors import raises
from tests.kit.secure_sum import STATED, shares_of, tokened_study
from tests.statistics import follows, seeded

VECTOR = np.array([0, 1, -1, 2**63 - 1, -(2**63), 12345678901234], dtype="<i8").tobytes()


@pytest.mark.parametrize("expansion", ["chacha20", "shake_256"])
@pytest.mark.parametrize("nodes", [2, 10])
def test_shares_sum_to_the_vector_modulo_2_to_the_64(expansion, nodes):
    shares = split(VECTOR, nodes, expansion)
    assert [len(share) for share in shares] == [len(VECTOR)] + [32] * (nodes - 1)
    words = [shares[0]] + [expand(expansion, seed, len(VECTOR)) for seed in shares[1:]]
    assert sum(np.frombuffer(share, dtype="<u8") for share in words).tobytes() == VECTOR


def test_sum_without_one_seed_is_noise():
    """The words alone are uniform whatever the vector: bytes of 500 splits of one vector."""
    source = seeded("split")
    found = b"".join(split(VECTOR, 2, "chacha20", source)[0] for _ in range(500))
    counts = np.bincount(np.frombuffer(found, dtype=np.uint8), minlength=256)
    assert follows(counts, np.full(256, 1 / 256))
    plain = np.bincount(np.frombuffer(VECTOR * 500, dtype=np.uint8), minlength=256)
    assert not follows(plain, np.full(256, 1 / 256))


def test_the_expansions_are_the_standard_ones():
    """ChaCha20: RFC 8439, appendix A.1, first vector; SHAKE-256: FIPS 202, the empty message."""
    assert expand("chacha20", bytes(32), 16).hex() == "76b8e0ada0f13d90405d6ae55386bd28"
    assert expand("shake_256", b"", 16).hex() == "46b9dd2b0ba88d13233b3feb743eeb24"


@pytest.mark.parametrize(("nodes", "sent"), [(2, 928), (11, 1648)])
def test_a_device_sends_as_many_bytes_as_the_guide_says(nodes, sent):
    """d = 100. The target, 8d + 64(M − 1) + 200, is kept up to 10 nodes."""
    addresses = [f"https://{node}.example#{NodeKeys.generate().fragment}" for node in range(nodes)]
    document = tokened_study("wait", nodes=addresses).document
    question = {**document["questions"][0], "mechanism": {**STATED, "cells": 100}}
    study = Study({**document, "questions": [question]})
    bodies = [message.body for message in shares_of(study, {"wait": 9})[1]]
    assert sum(len(body) for body in bodies) == sent == 8 * 100 + 48 + 80 * (nodes - 1)
    assert (sent <= 8 * 100 + 64 * (nodes - 1) + 200) == (nodes <= 10)


@pytest.mark.parametrize(
    ("expansion", "count", "size"),
    [
        ("chacha20", 0, 80),
        ("chacha20", MOST_AT_ONCE, 80),
        ("chacha20", MOST_AT_ONCE + 1, 80),
        ("chacha20", 3, CACHE_BYTES // 2 + 8),
        ("chacha20", 3, 2 * CACHE_BYTES),
        ("shake_256", 3, 80),
    ],
)
def test_nodes_expand_as_devices_do(expansion, count, size):
    """This includes a full batch, one row, and a seed larger than the batch's buffer."""
    seeds = [os.urandom(32) for _ in range(count)]
    expected = np.zeros(size // 8, dtype="<u8")
    for seed in seeds:
        expected += np.frombuffer(expand(expansion, seed, size), dtype="<u8")
    assert (add_seeds(expansion, seeds, size) == expected).all()


def test_share_is_opened_whole_by_its_node_for_its_report():
    key, report_id, study = X25519PrivateKey.generate(), "ab" * 16, tokened_study("ever")
    opener = Opener.of(study, 1, key)

    def sealed(node, report_id):
        info = context(study.digest, report_id, node)
        return seal(key.public_key().public_bytes_raw(), info, b"s" * 32)

    whole = sealed(1, report_id)
    assert opener.open(report_id, whole) == b"s" * 32
    changed = [whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :] for place, byte in enumerate(whole)]
    for other in (sealed(2, report_id), sealed(1, "cd" * 16), *changed):
        with raises(ReportError, "report.share_not_opened"):
            opener.open(report_id, other)
    # Before it is opened.
    for size in (0, 81):
        with raises(ReportError, "report.share_size", "80"):
            opener.open(report_id, bytes(size))


def test_key_file_is_its_owners_alone_and_not_overwritten(tmp_path):
    keys, path = NodeKeys.generate(), tmp_path / "key"
    keys.save(path)
    assert NodeKeys.load(path).fragment == keys.fragment
    assert path.stat().st_mode & 0o077 == 0
    with raises(InputError, "files.exists"):
        NodeKeys.generate().save(path)
    for text in ("", '{"format": "ldpkit.node-key/1", "x25519": "secret"}'):
        path.write_text(text)
        with raises(InputError, "node.not_key_file") as caught:
            NodeKeys.load(path)
        assert "secret" not in str(caught.value)
