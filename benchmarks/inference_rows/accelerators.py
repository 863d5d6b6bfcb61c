"""Exact unary-encoded reports, each for itself: an accelerator against the CPU beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.chunked_likelihood import accelerator as platform_beside
from benchmarks.chunked_likelihood import apart, begin_on, cost_of
from benchmarks.compiling import timed
from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.surveys import choice_study
from benchmarks.sizes import Size
from inference.models import model_for
from inference.samplers import CHAINS
from inference.sampling.chains import Chains, Moved, State
from inference.sampling.nuts import draw
from ldp_client import mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from summaries import QuestionSummary

PEOPLE, CHOICES = 1_000_000, 256
# Of which a CPU draws a posterior within minutes.
FEW, FEWER_CHOICES = 20_000, 64
KEPT = 500


class Drawn(NamedTuple):
    """Of a posterior: seconds without compilation, gradients of the longest chains, what is wrong with them.

    mean, sd: of the shares (k,). far: the largest distance of a mean from the truth, in sds.
    """

    seconds: float
    gradients: int
    reasons: tuple[str, ...]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    far: float


def accelerator(size: Size) -> Iterator[Row]:
    """One gradient, a posterior on both, and one that takes a CPU long."""
    people, choices = size.of((PEOPLE, CHOICES), (PEOPLE, CHOICES), (FEW, FEWER_CHOICES))
    what = f"exact unary encoding, n = {people:,}, k = {choices}"
    other = platform_beside()
    if other is None:
        yield Row(f"{what}, accelerator", "no accelerator", "≥ 20 times", None)
        return
    cores = os.cpu_count() or 1
    ours, cpu = (apart(cost_of, "oue", people, choices, False, one) for one in (other, "cpu"))
    agree = abs(ours.value - cpu.value) <= 1e-9 * abs(cpu.value)
    print(f"  log densities {ours.value:.12g}, {cpu.value:.12g}; gradients {ours.slope:.9g}, {cpu.slope:.9g}")
    shown = f"{1000 * cpu.wall:.0f} / {1000 * ours.wall:.1f} ms = {cpu.wall / ours.wall:.0f} times one core"
    yield Row(f"{what}: a gradient", shown, "≥ 20 times", agree and cpu.wall >= 20 * ours.wall)
    gain = cpu.side_by_side / ours.wall
    yield Row(f"{what}: against {cores} cores at once", f"{gain:.1f} times", "", agree)
    yield from _posteriors(other, cpu.wall * max(1.0, CHAINS / cores), people, choices)


def _posteriors(other: str, gradient: float, people: int, choices: int) -> Iterator[Row]:
    """gradient: seconds of the CPU for one of each chain, of so many people and choices."""
    few = [apart(posterior_of, FEW, FEWER_CHOICES, one) for one in (other, "cpu")]
    differ = float(np.max(np.abs(few[0].mean - few[1].mean) / few[1].sd))
    shown = f"{few[1].seconds:.0f} / {few[0].seconds:.0f} s; means differ by {differ:.2f} sd at most"
    sound = not (few[0].reasons or few[1].reasons)
    yield Row(
        f"posterior of {FEW:,} reports, k = {FEWER_CHOICES}", shown, "≤ 0.2 sd", sound and differ <= 0.2
    )
    many = apart(posterior_of, people, choices, other)
    would = many.gradients * gradient
    seen = f"{many.seconds:.0f} s, shares {many.far:.1f} sd off at most"
    shown = f"{seen}; the CPU's {many.gradients:,} gradients {would:,.0f} s"
    met = not many.reasons and many.far < 5 and would >= 20 * many.seconds
    yield Row(f"exact posterior of {people:,} reports, k = {choices}", shown, "≥ 20 times", met)
    for reason in many.reasons:
        print(f"  {reason}")


def posterior_of(n: int, size: int, platform: str) -> Drawn:
    """Simulated reports' exact posterior, in a process in which JAX has not begun."""
    begin_on(platform)
    study = choice_study(size, 1.0)
    question = study.questions[0]
    mechanism: Any = mechanisms_of(study)[question.id]
    truth = 1 / (np.arange(size) + 3.0)
    truth /= truth.sum()
    rows = reports_of(mechanism, truth, n)
    model = model_for(question, QuestionSummary.of(mechanism, rows), rows, mechanism)
    with _counted() as gradients:
        drawn, cost = timed(lambda: draw(model, 1, KEPT))
    shares = np.stack([each.ravel() for each in model.parameters(drawn.sites).values()])
    mean, sd = shares.mean(axis=1), shares.std(axis=1)
    far = float(np.max(np.abs(mean - truth) / sd))
    assert drawn.mixing is not None
    return Drawn(
        cost.working,
        int(np.sum(gradients)),
        tuple(one.text for one in drawn.mixing.findings(drawn.mixing.r_hat)),
        mean,
        sd,
        far,
    )


@contextmanager
def _counted() -> Iterator[list[int]]:
    """The gradients of the longest of chains that run, each time they do."""
    counts, run = [], Chains.run

    def counting(self: Chains, *given: Any, **named: Any) -> tuple[State, Moved]:
        state, moved = run(self, *given, **named)
        counts.append(int(moved.gradients.sum(axis=1).max()))
        return state, moved

    Chains.run = counting  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        Chains.run = run  # type: ignore[method-assign]


def reports_of(mechanism: ChoiceMechanism, truth: NDArray[np.float64], n: int) -> NDArray[np.uint8]:
    """Packed unary encodings (n, ceil(k / 8)) of answers of this law."""
    random = np.random.default_rng(2)
    parts = []
    for at in range(0, n, 10_000):
        size = min(10_000, n - at)
        bits = random.random((size, len(truth))) < float(mechanism.q)
        answers = random.choice(len(truth), size, p=truth)
        bits[np.arange(size), answers] = random.random(size) < float(mechanism.p)
        parts.append(np.packbits(bits, axis=1, bitorder="little"))
    return np.concatenate(parts)
