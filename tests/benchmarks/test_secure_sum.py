"""The secure sum's benchmark measures nodes that take, open and add up real shares."""

from __future__ import annotations

import re

import pytest

from benchmarks.secure_sum import NODES, build_study, bytes_sent, measure
from collector.nodes.keys import NodeKeys


def test_a_cell_is_measured_and_nothing_is_left_behind(tmp_path, capsys):
    measure(10, 100, tmp_path)
    said = capsys.readouterr().out
    found = re.search(
        r"all 10 nodes +([\d.]+) s \(paper 1\.72\), ([\d.]+) CPU s .*: (\d+) %; sent 848 of 856", said
    )
    assert found, said
    assert all(float(figure) > 0 for figure in found.groups())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("d", [10, 4096, 4100])
def test_grid_device_sends_about_eight_bytes_per_number(d):
    study = build_study((NodeKeys.generate(),), d, 100)
    assert 8 * d < bytes_sent(study) <= 8 * d + 64 * (NODES - 1) + 200
