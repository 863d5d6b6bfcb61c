"""Tasks that cost nothing, for tests of where tasks run: it loads no JAX."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


class Sums:
    """Sums of a study's own random numbers; where told to, the process dies once in a task.

    seed: of all studies. dies_at: the number of the task in which it dies. marker: a file that says it did.
    """

    def __init__(self, seed: float, dies_at: int | None = None, marker: str = "") -> None:
        self.seed, self.dies_at, self.marker = seed, dies_at, marker

    def __call__(self, number: int, tell: Any) -> dict[str, Any]:
        tell(0.5)
        if number == self.dies_at and not os.path.exists(self.marker):
            with open(self.marker, "w", encoding="utf-8") as file:
                file.write("died once")
            os._exit(1)
        return {"sum": float(self.numbers(number).sum()), "number": number}

    def numbers(self, number: int) -> Any:
        """A hundred of one study."""
        return np.random.default_rng([int(100 * self.seed), number]).normal(size=100)


def died(marker: str) -> bool:
    """Whether a process died."""
    return os.path.exists(marker)
