"""How a table's people were drawn: their weights, strata and primary units, by public columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from inference.analyses.table import Codes, Table, Values
from inference.analyses.varying import levels_of
from inference.analyses.weights import Replicates
from ldp_client.documents.errors import InputError


@dataclass(frozen=True)
class Sampled:
    """How rows were drawn. weights: (rows,) people that a row stands for. strata, clusters: (rows,) or None.

    scaled: whether weights add up to people, so that totals mean something. levels: names of the strata.
    unit: what was drawn within them. chances: (rows,) with which people were drawn; None for clusters.
    replicates: replicate weights that say it in place of strata and clusters.
    """

    weights: Values
    strata: Codes | None = None
    clusters: Codes | None = None
    scaled: bool = False
    levels: tuple[str, ...] = ()
    unit: str = "report"
    chances: Values | None = None
    replicates: Replicates | None = None


def sampled_of(
    table: Table,
    weights: Values,
    strata: str | None,
    cluster: str | None,
    scaled: bool,
    chances: Values | None = None,
) -> Sampled:
    """How a table was drawn, of its public columns. Raises InputError for a cluster in two strata."""
    within = [name for name in (table.waves, strata) if name]
    own, levels = _crossed(table, within) if within else (None, ())
    units = _crossed(table, [name for name in (table.waves, cluster) if name])[0] if cluster else None
    if strata is not None and units is not None:
        pairs = pd.DataFrame({"stratum": own, "unit": units}).drop_duplicates()
        often = pairs["unit"].value_counts()
        if often.iloc[0] > 1:
            name = table.public[cluster].iloc[int(np.flatnonzero(units == often.index[0])[0])]
            raise InputError(
                f"{cluster} {name} stands in {often.iloc[0]} strata: clusters lie within strata; where these "
                "are others of the same name, give each a name of its own",
                code="design.cluster_in_two_strata",
            )
    chances = chances if units is None else None
    return Sampled(weights, own, units, scaled, levels, cluster or "report", chances)


def _crossed(table: Table, names: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
    """Which combination of values each row has, and those in words."""
    parts = [codes_of_levels(table, name) for name in names]
    whole, places = np.unique(np.column_stack([codes for codes, _ in parts]), axis=0, return_inverse=True)
    words = [
        ", ".join(
            f"{name} = {levels[place]}" for name, (_, levels), place in zip(names, parts, row, strict=True)
        )
        for row in whole
    ]
    return places.ravel().astype(np.int64), tuple(words)


def codes_of_levels(table: Table, name: str) -> tuple[Codes, tuple[str, ...]]:
    """The levels of a column that some row has, numbered."""
    codes, levels = levels_of(table.public[name])
    kept, places = np.unique(codes, return_inverse=True)
    return places.astype(np.int64), tuple(levels[place] for place in kept)
