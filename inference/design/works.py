"""Many fits of simulated studies: batch after batch, with progress in words.

A batch's randomness follows from the seed and the studies' numbers, and its size is fixed. So its numbers do
not depend on what ran before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ldp_client.commands.output import Step

Progress = Callable[[str], None]
# Called with the share of a batch that is done.
Tell = Callable[[float], None]


class Prepared(Protocol):
    """An object made once for a work, such as a compiled program, which then does its batches."""

    def __call__(self, number: int, tell: Tell, /) -> dict[str, Any]:
        """Return the findings of the batch with this number."""


@dataclass(frozen=True)
class Work:
    """Batches 0 … count − 1 with the same parameters.

    Attributes:
        prepare: makes the object that does the batches.
        items: how many studies there are in all.
        said: progress in words, with {} for how many studies are done.
        size: studies of a batch; the last batch has the remainder.
    """

    prepare: Callable[[], Prepared]
    items: int
    said: str
    size: int = 1

    @property
    def count(self) -> int:
        """Return how many batches there are."""
        return -(-self.items // self.size)


def run_works(works: Sequence[Work], progress: Progress = lambda _line: None) -> list[list[dict[str, Any]]]:
    """Return the findings of each work's batches, in their order; progress is called for all works."""
    total = sum(work.count for work in works)
    found: list[list[dict[str, Any]]] = []
    done = 0
    for work in works:
        prepared = work.prepare()
        parts: list[dict[str, Any]] = []
        for number in range(work.count):
            tell = partial(_tell, work, number, done, total, progress)
            tell(0.0)
            parts.append(prepared(number, tell))
            done += 1
        _tell(work, work.count, done, total, progress, 0.0)
        found.append(parts)
    return found


def _tell(work: Work, number: int, done: int, total: int, progress: Progress, share: float) -> None:
    studies = min(int((number + share) * work.size), work.items)
    progress(Step(work.said.format(studies), min(done + share, total), total))
