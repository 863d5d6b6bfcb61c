"""Work that is many fits: numbered tasks, wherever they run, with the same results for each number.

A task's randomness is derived from the seed and from numbers of studies, never from where or when it runs,
and a batch of studies that one JAX program fits side by side is one task, whose size is fixed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import numpy as np

from inference.design.journal import Journal
from ldp_client.commands.output import Step

Progress = Callable[[str], None]
# Told which share of a task is done.
Tell = Callable[[float], None]
# What decides a task's numbers beside its parameters.
DECIDING = ("ldpkit", "jax", "jaxlib", "numpyro", "numpy")


class Prepared(Protocol):
    """What a process makes once of a work, to do its tasks."""

    def __call__(self, number: int, tell: Tell, /) -> Any:
        """What JSON can hold of one task; the same wherever it runs."""


@dataclass(frozen=True)
class Work:
    """Tasks 0 … count − 1 with the same parameters.

    prepare: makes what is `Prepared`: a function of a module or a class with its arguments, which another
    process can be sent. said: in words, with {} for how many of the `items` are done; each task does `size`
    of them, the last what is left.
    """

    prepare: partial[Any]
    items: int
    said: str
    size: int = 1

    @property
    def count(self) -> int:
        """How many tasks."""
        return -(-self.items // self.size)

    @cached_property
    def digest(self) -> str:
        """Of all that decides the results: the parameters, and the versions of what computes."""
        made = self.prepare
        whole = {
            "of": f"{made.func.__module__}.{made.func.__qualname__}",
            "given": plain([made.args, made.keywords]),
            "items": [self.items, self.size],
            "versions": versions(),
        }
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def in_words(self, done: float) -> str:
        """How far it is, after so many tasks."""
        return self.said.format(min(int(done * self.size), self.items))


class Task(NamedTuple):
    """One task of a work."""

    work: Work
    number: int


class Place(Protocol):
    """Where tasks run."""

    def results(self, tasks: Sequence[Task], tell: Tell) -> Iterable[tuple[Task, Any]]:
        """Each task with what it gave, in any order; tell: how far the one is that runs here."""


class Here:
    """This process: one task after the other."""

    def results(self, tasks: Sequence[Task], tell: Tell) -> Iterator[tuple[Task, Any]]:
        work: Work | None = None
        for task in tasks:
            if task.work is not work:
                work = task.work
                prepared: Prepared = work.prepare()
            yield task, prepared(task.number, tell)


@dataclass
class Many:
    """Runs works: here, or on a cluster; with a journal, from which an interrupted run goes on.

    place: where tasks run. journal: keeps each result as soon as it is known.
    """

    place: Place = field(default_factory=Here)
    journal: Journal = field(default_factory=Journal)

    def run(
        self, works: Sequence[Work], progress: Progress = lambda _line: None
    ) -> list[list[dict[str, Any]]]:
        """Of each work what its tasks gave, in their order.

        Raises InputError for a journal of other parameters, or one that cannot be written, and what the place
        raises.
        """
        found = {(task.work.digest, task.number): one for task, one in self.results(works, progress)}
        return [[found[work.digest, number] for number in range(work.count)] for work in works]

    def results(
        self, works: Sequence[Work], progress: Progress = lambda _line: None
    ) -> Iterator[tuple[Task, Any]]:
        """Each task with what it gave, once that is known; those of the journal first. Raises as `run`."""
        known = self.journal.read([work.digest for work in works])
        tasks = [Task(work, number) for work in works for number in range(work.count)]
        left = [task for task in tasks if (task.work.digest, task.number) not in known]
        if known:
            there = len(tasks) - len(left)
            progress(f"{self.journal.path}: {there} of {len(tasks)} parts are known from an interrupted run")
        for task in tasks:
            if (task.work.digest, task.number) in known:
                yield task, known[task.work.digest, task.number]
        for task, found in self._results(left, len(tasks), progress):
            self.journal.keep(task.work.digest, task.number, found)
            yield task, found

    def _results(self, left: Sequence[Task], of: int, progress: Progress) -> Iterator[tuple[Task, Any]]:
        """Results of what is left, as JSON reads them again; how far all is, is told."""
        done = of - len(left)
        each = {task.work.digest: task.work.count for task in left}
        for task in left:
            each[task.work.digest] -= 1
        told = left[0].work if left else None

        def tell(share: float) -> None:
            if told is not None:
                said = told.in_words(each[told.digest] + share)
                progress(Step(said, min(done + share, of), of))

        tell(0.0)
        for task, found in self.place.results(left, tell):
            done += 1
            told = task.work
            each[told.digest] += 1
            tell(0.0)
            yield task, json.loads(json.dumps(found))


def versions() -> list[str]:
    """Of what decides numbers, in this process."""
    return [version(name) for name in DECIDING]


def plain(value: Any) -> Any:
    """What JSON can hold of any parameter, by which it is told from others."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "__dict__") and not callable(value):
        return {"class": type(value).__name__, **plain(vars(value))}
    # Of functions their name; ranges and fractions say all of themselves.
    return getattr(value, "__qualname__", repr(value))
