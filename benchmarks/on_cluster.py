"""Rows of a benchmark one after the other, or on a Dask cluster: `--cluster ADDRESS`, `--journal FILE`.

A row is a function of its arguments alone, seeds among them, so that it is the same wherever it was found.
Workers need this repository's root on their path, as well as ldpkit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from inference.design.cluster_cli import add_cluster, many_of
from inference.design.many import Many, Tell, Work

OWN = ("cluster", "journal")


class Rows:
    """Row after row, by its number."""

    def __init__(self, row: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        self._row, self._arguments = row, arguments

    def __call__(self, number: int, _tell: Tell) -> Any:
        return self._row(*self._arguments[number])


def add_place(parser: argparse.ArgumentParser) -> None:
    """Register --cluster and --journal."""
    add_cluster(parser)
    parser.add_argument("--journal", type=Path, metavar="FILE", help="an interrupted run goes on from it")


def place_of(given: argparse.Namespace) -> AbstractContextManager[Many]:
    """Where rows are found, as the arguments say."""
    return many_of(given.cluster, given.journal, print)


def settings_of(given: argparse.Namespace) -> argparse.Namespace:
    """The arguments that decide rows."""
    return argparse.Namespace(**{name: value for name, value in vars(given).items() if name not in OWN})


def rows_of(
    given: argparse.Namespace, row: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """What `row` gives for each of the arguments, in order, each as soon as those before it are there."""
    work = Work(partial(Rows, _importable(row), tuple(arguments)), len(arguments), "{} rows")
    found: dict[int, Any] = {}
    told = 0
    with place_of(given) as many:
        for task, value in many.results([work]):
            found[task.number] = value
            while told in found:
                yield found[told]
                told += 1


def _importable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of the module's own name, by which another process finds it."""
    spec = sys.modules["__main__"].__spec__
    if function.__module__ != "__main__" or spec is None:
        return function
    found: Callable[..., Any] = getattr(import_module(spec.name), function.__name__)
    return found
