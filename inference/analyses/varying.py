"""Intercepts and slopes that vary by group, non-centred: effect = sd × a standard normal number."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from jax import Array

from inference.analyses.formula import INTERCEPT, Labels, Parameter, Varying, named
from inference.analyses.matrices import Matrix, matrix_of, weights_of
from inference.analyses.stated_priors import VARYING_SCALE, Given
from inference.analyses.table import Codes, Private, Table, Values, level_text
from inference.models.base import Draws
from inference.priors.laws import Stated, law, state
from ldp_client.documents.errors import InputError


@dataclass(frozen=True)
class Group:
    """Effects that vary by one column.

    site: the name in the program. column: the group's column. levels: its levels. codes: (cells,) each cell's
    level. matrix: the varying columns. spreads: (columns,), the divisors of the sampler's columns. priors: of
    each column's sd.
    """

    site: str
    column: str
    levels: tuple[str, ...]
    codes: Codes
    matrix: Matrix
    spreads: Values
    priors: tuple[Stated, ...]
    labels: Labels

    def data(self) -> dict[str, Values | Codes]:
        """Return the program's data."""
        return {f"{self.site}_columns": self.matrix.values / self.spreads, f"{self.site}_codes": self.codes}

    def initial(self) -> dict[str, object]:
        """Return the start: small differences."""
        columns, outputs = len(self.spreads), len(self.labels.outputs)
        found: dict[str, object] = {f"{self.site}_z": np.zeros((len(self.levels), columns, outputs))}
        for place, prior in enumerate(self.priors):
            unit = float(prior.get("scale", VARYING_SCALE / self.spreads[place]))
            found[f"{self.site}_sd_{place}"] = np.full(outputs, unit / 3)
        return found

    def draw(self, data: dict[str, Array]) -> Array:
        """Sample, inside a NumPyro program, what the groups add to η (cells, combinations, outputs)."""
        columns, outputs = len(self.spreads), len(self.labels.outputs)
        standard = dist.Normal(jnp.zeros((len(self.levels), columns, outputs)), 1.0).to_event(3)
        z = numpyro.sample(f"{self.site}_z", standard)
        sds = []
        for place, prior in enumerate(self.priors):
            own = law(prior).expand([outputs]).to_event(1)
            sds.append(numpyro.sample(f"{self.site}_sd_{place}", own) * self.spreads[place])
        effects = (z * jnp.stack(sds))[data[f"{self.site}_codes"]]
        return jnp.einsum("ckj,cjo->cko", data[f"{self.site}_columns"], effects)

    def effects(self, draws: Draws) -> Values:
        """Return effects in own units, (…, levels, columns, outputs)."""
        sds = np.stack([draws[f"{self.site}_sd_{place}"] for place in range(len(self.spreads))], axis=-2)
        return np.asarray(draws[f"{self.site}_z"] * sds[..., None, :, :])

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return sds with their priors, then effects, named as in bambi."""
        sds, effects = [], []
        for place, (term, level) in enumerate(zip(self.matrix.terms, self.matrix.levels, strict=True)):
            name = name_of(term, self.column, self.labels)
            varying = {f"{name.rpartition('|')[0]}__expr_dim": level}
            for choice in self.labels.outputs:
                by = {**varying, self.labels.dimension: choice}
                sds.append(Parameter(f"{name}_sigma", by, self.priors[place]))
            for group, choice in product(self.levels, self.labels.outputs):
                by = {f"{self.column}__factor_dim": group, self.labels.dimension: choice}
                effects.append(Parameter(name, {**varying, **by}))
        return [*sds, *effects]

    def values(self, draws: Draws) -> Values:
        """Return draws of the entries, (…, entries)."""
        sds = np.stack([draws[f"{self.site}_sd_{place}"] for place in range(len(self.spreads))], axis=-2)
        effects = self.effects(draws).swapaxes(-3, -2)
        lead = sds.shape[:-2]
        return np.concatenate([sds.reshape(*lead, -1), effects.reshape(*lead, -1)], axis=-1)


def name_of(term: str, group: str, labels: Labels) -> str:
    """Return the name of a varying term's effects; their sd has the same, with _sigma."""
    return f"{labels.lead}{'1' if term == INTERCEPT else term}|{group}"


def groups_of(
    varying: Sequence[Varying],
    table: Table,
    predictors: Sequence[Private],
    given: Given,
    labels: Labels,
    unit: float = 1.0,
    site: str = "",
) -> tuple[Group, ...]:
    """Return the varying terms. unit: of the linear predictor. site: the prefix of their sites.

    Raises InputError for fewer than two groups.
    """
    found = []
    for place, one in enumerate(varying):
        codes, levels = levels_of(table.frame[one.group])
        if len(levels) < 2:
            raise InputError(
                f"(… | {one.group}): there is only one {one.group}, so no effect can vary by it",
                code="formula.one_group",
            )
        matrix = matrix_of(one.expression, table.frame, predictors, table.sizes)
        squares = np.einsum("ck,ckj->j", weights_of(matrix, table.sizes), matrix.values**2)
        if (squares == 0).any():
            raise InputError(
                f"({one.expression} | {one.group}) has a column of zeros only",
                code="formula.group_column_of_zeros",
            )
        spreads = np.where(np.asarray(matrix.terms) == INTERCEPT, 1.0, np.sqrt(squares))
        defaults = [state("half_normal", scale=VARYING_SCALE * unit / spread) for spread in spreads]
        priors = []
        for column, (term, level) in enumerate(zip(matrix.terms, matrix.levels, strict=True)):
            name = f"{name_of(term, one.group, labels)}_sigma"
            keys = list(dict.fromkeys([named(name, level), name]))
            priors.append(given.of(keys, defaults[column], "positive")[0])
        where = (f"{site}by{place}", one.group, levels, codes)
        found.append(Group(*where, matrix, spreads, tuple(priors), labels))
    return tuple(found)


def levels_of(column: pd.Series) -> tuple[Codes, tuple[str, ...]]:
    """Return the index of each row's level, and the levels as text, including a category's unused levels."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(np.int64), tuple(map(str, column.cat.categories))
    codes, levels = pd.factorize(column, sort=True)
    return np.asarray(codes, np.int64), tuple(map(level_text, levels))
