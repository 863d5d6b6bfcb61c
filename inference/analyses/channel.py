"""P(report | answer) of one private column, as a mixture whose weights may be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference.analyses.formula import named

if TYPE_CHECKING:
    from inference.analyses.table import Codes, Values

# From the root of a mixture to a matrix: (name of unknown weights, branch), sorted.
Path = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Weights:
    """Unknown weights of a mixture's branches.

    name: of a share, or of all weights. labels: of the branches. A share has none: it is the first branch's
    weight, and the second branch has the rest.
    """

    name: str
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters: the share, or each branch's weight."""
        return tuple(named(self.name, label) for label in self.labels) or (self.name,)

    @property
    def sites(self) -> tuple[str, ...]:
        """Return the names of the sampler's numbers from 0 to 1: each branch's part of what is left."""
        return tuple(f"{self.name}_rest_{place}" for place in range(len(self.labels) - 1)) or (self.name,)

    @property
    def branches(self) -> int:
        """Return the number of branches."""
        return len(self.sites) + 1

    def at(self, sites: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the weight of each branch, as numbers or arrays of draws."""
        found, left = [], 1.0
        for site in self.sites:
            found.append(left * sites[site])
            left = left * (1.0 - sites[site])
        return (*found, left)


@dataclass(frozen=True)
class Channel:
    """P(report | answer) of one private column: Σ over leaves of the weights on its path × its matrix.

    chances: (leaves, parts, answers, kinds), P(kind of report | answer) in each part of the design, which
    has its own people. shows: (distinct reports, kinds), whether a report is of that kind. part: (distinct,)
    of the design. paths: of the leaves. weights: {name: unknown weights}. odds: (parts,), NaN if each report
    is of exactly one kind. Otherwise it is a set of answers, one kind each, and is so many times as likely if
    it contains the true answer.
    """

    chances: Values
    shows: NDArray[np.bool_]
    part: Codes
    odds: Values = field(default_factory=lambda: np.full(1, np.nan))
    paths: tuple[Path, ...] = ((),)
    weights: Mapping[str, Weights] = field(default_factory=dict)

    @classmethod
    def of(cls, matrix: ArrayLike) -> Channel:
        """Return the channel of one matrix (answers, reports)."""
        chances = np.asarray(matrix, np.float64)
        reports = chances.shape[1]
        return cls(chances[None, None], np.eye(reports, dtype=bool), np.zeros(reports, np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of answers and kinds of reports."""
        return self.chances.shape[2], self.chances.shape[3]

    @property
    def exclusive(self) -> NDArray[np.bool_]:
        """Return for each part whether a report is of exactly one kind, (parts,)."""
        return np.isnan(self.odds)

    @property
    def exact(self) -> bool:
        """Return True if `vectors` are probabilities; else they lack a factor that no answer changes."""
        return bool(self.exclusive.all())

    @cached_property
    def vectors(self) -> Values:
        """Return P(report | answer) in each leaf, (leaves, distinct, answers)."""
        kind = self.shows.argmax(axis=1)
        found = self.chances.swapaxes(2, 3)[:, self.part, kind]
        sets = ~self.exclusive[self.part]
        shown = self.shows[sets, : found.shape[2]]
        found[:, sets] = 1 + (self.odds[self.part[sets], None] - 1) * shown
        return np.asarray(found)

    @property
    def silent(self) -> Values:
        """Return the sum of all reports' probabilities, (leaves, answers): with weights, 1 of each."""
        return self.chances[:, 0].sum(axis=2) if self.exclusive[0] else np.ones(self.chances.shape[::2])

    def mixed(self, leaves: Any, sites: Mapping[str, Any]) -> Any:
        """Return Σ weight × leaf of arrays (leaves, …), at these numbers of the sampler."""
        at = {name: weights.at(sites) for name, weights in self.weights.items()}
        terms = [
            prod((at[name][branch] for name, branch in path), start=1.0) * leaf if path else leaf
            for path, leaf in zip(self.paths, leaves, strict=True)
        ]
        return sum(terms[1:], start=terms[0])

    def reordered(self, order: Sequence[int]) -> Channel:
        """Return the channel with its answers in this order, and a set's kinds with them."""
        chances = self.chances[:, :, order]
        if self.exact:
            return replace(self, chances=chances)
        return replace(self, chances=chances[..., order], shows=self.shows[:, order])


def stacked(channels: Sequence[Channel]) -> Channel:
    """Return one channel for reports under several, with parts and distinct reports in their order.

    Unknown weights of the same name are the same.
    """
    if len(channels) == 1:
        return channels[0]
    paths = tuple(dict.fromkeys(path for one in channels for path in one.paths))
    kinds = max(one.shows.shape[1] for one in channels)
    parts = np.cumsum([0, *(one.chances.shape[1] for one in channels)])
    wide = []
    for one in channels:
        chances = np.zeros((len(paths), *one.chances.shape[1:3], kinds))
        for path, leaf in zip(one.paths, one.chances, strict=True):
            chances[paths.index(path), ..., : leaf.shape[2]] = leaf
        wide.append(chances)
    return Channel(
        np.concatenate(wide, axis=1),
        np.concatenate([np.pad(one.shows, ((0, 0), (0, kinds - one.shows.shape[1]))) for one in channels]),
        np.concatenate([one.part + start for one, start in zip(channels, parts, strict=False)]),
        np.concatenate([one.odds for one in channels]),
        paths,
        {name: weights for one in channels for name, weights in one.weights.items()},
    )


def mixture(channels: Sequence[Channel], weights: Sequence[Fraction] | Weights) -> Channel:
    """Return Σ weight × channel of channels with the same kinds of reports; weights may be unknown."""
    leaves: dict[Path, Values] = {}
    names = {weights.name: weights} if isinstance(weights, Weights) else {}
    for branch, one in enumerate(channels):
        names |= one.weights
        for path, leaf in zip(one.paths, one.chances, strict=True):
            if isinstance(weights, Weights):
                leaves[tuple(sorted(((weights.name, branch), *path)))] = leaf
            else:
                leaves[path] = leaves.get(path, 0.0) + float(weights[branch]) * leaf
    return replace(channels[0], chances=np.stack([*leaves.values()]), paths=tuple(leaves), weights=names)


def split(share: Fraction | Weights, first: Channel, rest: Channel) -> Channel:
    """Return the mixture of `first`, with a share that may be unknown, and the rest."""
    return mixture((first, rest), share if isinstance(share, Weights) else (share, 1 - share))
