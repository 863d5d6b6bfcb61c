"""Bulk counting of choice reports matches the mechanisms' reading of each report."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client import mechanism_for
from ldp_client.documents.catalogue import MECHANISMS as CATALOGUE
from ldp_client.mechanisms.base import pack_signed
from schemas import Study
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import BITS_AT_ONCE, MOST_IN_BYTE, column_sums, keeps_patterns
from summaries.reductions.histogram import REACH, histogram_edges
from tests import studies

SETS = ["oue", "sue", "subset_selection", "olh"]
OTHERS = {"memoized", "summed_gaussian"}
CHOICES = sorted(name for name, entry in CATALOGUE.items() if "choice" in entry.asks and name not in OTHERS)
N = 300


def mechanism(name, count):
    question = {**studies.CHOICE, "choices": {"count": count}, "mechanism": {"name": name, "epsilon": "1"}}
    return mechanism_for(Study(studies.document(question)).questions[0])


def payloads_of(m):
    return [m.perturb(index % m.choices) for index in range(N)]


def stacked(payloads):
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)


def supports(m, payloads):
    return np.asarray([[m.supported(payload, index) for index in range(m.choices)] for payload in payloads])


@pytest.mark.parametrize("count", [12, 75])
@pytest.mark.parametrize("name", SETS)
def test_sets_are_counted_as_patterns_or_column_sums(name, count):
    m = mechanism(name, count)
    payloads = payloads_of(m)
    sets = supports(m, payloads)
    if keeps_patterns(count):
        expected = np.bincount(sets @ (1 << np.arange(count)), minlength=1 << count)
    else:
        expected = sets.sum(axis=0)
    reduction = REDUCTIONS[name]
    values = reduction.reduce(m, stacked(payloads))
    assert values.tolist() == expected.tolist()
    assert len(values) == reduction.size(m)
    assert reduction.possible(m, N, values)


@pytest.mark.parametrize("name", ["randomized_response", "hadamard"])
@pytest.mark.parametrize("count", [4, 70_000])
def test_payload_words_are_counted(name, count):
    m = mechanism(name, count)
    payloads = payloads_of(m)
    values = REDUCTIONS[name].reduce(m, stacked(payloads))
    assert len(values) == REDUCTIONS[name].size(m) == (m.columns if name == "hadamard" else count)
    expected = np.bincount([int.from_bytes(payload, "big") for payload in payloads], minlength=len(values))
    assert values.tolist() == expected.tolist()
    assert REDUCTIONS[name].possible(m, N, values)


def payloads_of_labels(m):
    return [m.perturb(m.labels[index % m.choices]) for index in range(N)]


@pytest.mark.parametrize("name", [*CHOICES, "habit", "brand"])
def test_reports_are_decoded_to_the_sets_they_support(name):
    """Memoized reports are decoded like those of the memoized mechanism."""
    kept = {"habit": studies.MEMOIZED, "brand": studies.MEMOIZED_BITS}
    m = (
        mechanism_for(Study(studies.document(kept[name])).questions[0])
        if name in kept
        else mechanism(name, 12)
    )
    payloads = payloads_of_labels(m)
    sets = sets_of(m, stacked(payloads))
    bits = np.unpackbits(sets, axis=1, bitorder="little")[:, : m.choices]
    assert bits.tolist() == supports(m, payloads).astype(int).tolist()


@pytest.mark.parametrize("count", [6, 75])
@pytest.mark.parametrize("name", CHOICES)
def test_impossible_counts_are_detected(name, count):
    m = mechanism(name, count)
    reduction = REDUCTIONS[name]
    values = reduction.reduce(m, stacked(payloads_of(m)))
    assert not reduction.possible(m, 1, values)
    negative = values.copy()
    negative[-1] = -1
    assert not reduction.possible(m, N, negative)


def test_normal_noise_is_counted_beyond_the_bounds():
    m = mechanism_for(Study(studies.document(studies.NORMAL)).questions[0])
    edges = histogram_edges(m.levels, REACH["gaussian"])
    values = [int(edges[0]) - 5, -REACH["gaussian"], -1, 0, m.levels, m.levels + 1, int(edges[-1]) + 5]
    for value in values:
        counts = REDUCTIONS["gaussian"].reduce(m, stacked([pack_signed([value])]))
        assert np.flatnonzero(counts).tolist() == [np.searchsorted(edges, value)]
        assert len(counts) == len(edges) + 1 == REDUCTIONS["gaussian"].size(m)
    assert edges[-1] - m.levels > 5.9 * m.scale
    assert np.diff(edges).max() <= m.scale / 32 + 1


@pytest.mark.parametrize("columns", [1, 65, 130, BITS_AT_ONCE // 100])
@pytest.mark.parametrize("rows", [0, 3, MOST_IN_BYTE, MOST_IN_BYTE + 1, 3 * MOST_IN_BYTE + 5])
def test_column_sums_match_unpacked_bits(rows: int, columns: int) -> None:
    bits = (np.random.default_rng(rows).random((rows, columns)) < 0.99).astype(np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert column_sums(packed, columns).tolist() == bits.sum(axis=0).tolist()
