"""Closed-form posteriors as kernels whose steps are independent draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.base import Kernel, Method, Run
from inference.published.conjugate import ConjugatePrior
from inference.published.driver import run_kernel
from inference.published.prior_forms import PriorForm
from inference.sampling import Sampled

Draw = Callable[[Array, Any], dict[str, Array]]


def independent(draw: Draw) -> Kernel:
    """The kernel that only draws; it needs no warm-up."""
    return Kernel(draw, lambda key, _state, data: draw(key, data), lambda state: state)


def method(
    name: str,
    source: str,
    refuses: Callable[[HolderStatistics], str],
    kernel: Kernel,
    data_of: Callable[[HolderStatistics, ConjugatePrior], Any],
    prior: PriorForm,
    reasons: tuple[str, ...] = (),
) -> Method:
    """The method of such a kernel; data_of gives the kernel's data. reasons: not to trust its draws."""

    def draw(statistics: HolderStatistics, under: ConjugatePrior, run: Run) -> Sampled:
        drawn = run_kernel(kernel, data_of(statistics, under), run._replace(warmup=0, thin=1))
        return replace(drawn, reasons=reasons)

    return Method(name, source, refuses, draw, prior)
