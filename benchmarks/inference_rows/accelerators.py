"""Exact unary-encoded reports, each for itself: an accelerator against the CPU beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.chunked_likelihood import accelerator as platform_beside
from benchmarks.chunked_likelihood import apart, gradient_cost
from benchmarks.running import Row, Size

PEOPLE, CHOICES = 1_000_000, 256
FEW, FEWER_CHOICES = 20_000, 64


def accelerator(size: Size) -> Iterator[Row]:
    """One gradient on both."""
    people, choices = size.of((PEOPLE, CHOICES), (PEOPLE, CHOICES), (FEW, FEWER_CHOICES))
    what = f"exact unary encoding, n = {people:,}, k = {choices}"
    other = platform_beside()
    if other is None:
        yield Row(f"{what}, accelerator", "no accelerator", "≥ 20 times", None)
        return
    ours, cpu = (apart(gradient_cost, "oue", people, choices, one) for one in (other, "cpu"))
    agree = abs(ours.value - cpu.value) <= 1e-9 * abs(cpu.value)
    print(f"  log densities {ours.value:.12g}, {cpu.value:.12g}; gradients {ours.slope:.9g}, {cpu.slope:.9g}")
    shown = f"{1000 * cpu.wall:.0f} / {1000 * ours.wall:.1f} ms = {cpu.wall / ours.wall:.0f} times one core"
    yield Row(f"{what}: a gradient", shown, "≥ 20 times", agree and cpu.wall >= 20 * ours.wall)
    gain = cpu.side_by_side / ours.wall
    yield Row(f"{what}: against {os.cpu_count()} cores at once", f"{gain:.1f} times", "", agree)
