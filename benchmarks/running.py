"""What all benchmarks share: how much they do, what a call costs, and how figures are printed and drawn."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Setting = TypeVar("Setting")
COLOURS = ("#1b5e9e", "#d9822b", "#3f8f5b", "#8a8f98", "#a33a6b", "#6b5bb5", "#222222")


class Size(Enum):
    """How much a benchmark does. The figures of a tiny run mean nothing."""

    WHOLE = "whole"
    QUICK = "quick"
    TINY = "tiny"

    def of(self, whole: Setting, quick: Setting, tiny: Setting) -> Setting:
        """Return the setting of this size."""
        return {Size.WHOLE: whole, Size.QUICK: quick, Size.TINY: tiny}[self]


def add_sizes(parser: argparse.ArgumentParser, quick: str | None = None) -> None:
    """Register --tiny, and --quick where there is such a size. quick: what it leaves out."""
    parser.set_defaults(size=Size.WHOLE)
    sizes = {"--tiny": (Size.TINY, "the least that runs all; its figures say nothing")}
    if quick is not None:
        sizes["--quick"] = (Size.QUICK, quick)
    for name, (size, text) in sizes.items():
        parser.add_argument(name, dest="size", action="store_const", const=size, help=text)


class Cost(NamedTuple):
    """Seconds of one call: of this process's CPU time, and on the wall."""

    cpu: float
    wall: float


def cost_of(call: Callable[[], object], rounds: int = 5, enough: float = 0.0) -> Cost:
    """Return the least that a call costs in several rounds, because other work only adds.

    enough: CPU seconds that a round takes at least; short calls are repeated within it.
    """
    calls = 1
    while enough and _round(call, calls).cpu * calls < enough:
        calls *= 2
    return min(_round(call, calls) for _ in range(rounds))


def _round(call: Callable[[], object], calls: int) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(calls):
        call()
    return Cost((time.process_time() - cpu) / calls, (time.perf_counter() - wall) / calls)


class Row(NamedTuple):
    """A figure beside its target. met: whether it meets the target; None if it cannot be measured here."""

    what: str
    measured: str
    target: str
    met: bool | None

    def __str__(self) -> str:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[self.met]
        return f"{self.what:<58} {self.measured:<52} {self.target:<18} {verdict}"


def headline(title: str, claim: str) -> None:
    """Print a figure's title and what the paper says about it."""
    print(f"\n{title}\n  paper: {claim}", flush=True)


def show_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns wide enough for their entries, floats with four significant digits."""
    text = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in (head, *rows)
    ]
    widths = [max(len(row[column]) for row in text) for column in range(len(head))]
    for row in text:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def verdict(ours: str) -> None:
    """Print what this run found, in one line."""
    print(f"  ours: {ours}", flush=True)


def save(figure: Figure, out: Path, name: str) -> None:
    """Write NAME.png into the folder, which is made if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.png", dpi=110)
    print(f"  picture: {out / name}.png", flush=True)
