"""What every figure prints and draws alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

COLOURS = ("#1b5e9e", "#d9822b", "#3f8f5b", "#8a8f98", "#a33a6b", "#6b5bb5", "#222222")


def headline(title: str, claim: str) -> None:
    """The figure and what the paper says about it."""
    print(f"\n{title}\n  paper: {claim}", flush=True)


def show_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns wide enough for their entries, floats with four significant digits."""
    text = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in (head, *rows)
    ]
    widths = [max(len(row[column]) for row in text) for column in range(len(head))]
    for row in text:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def verdict(ours: str) -> None:
    """What this run found, in one line."""
    print(f"  ours: {ours}", flush=True)


def save(figure: Figure, out: Path, name: str) -> None:
    """Write NAME.png into the folder, made when missing."""
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.png", dpi=110)
    print(f"  picture: {out / name}.png", flush=True)
