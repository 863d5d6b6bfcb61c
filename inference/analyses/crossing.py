"""Crossed questions: the joint table of private columns, and how far they hang together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from zlib import crc32

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference.analyses.arms import ARM, IN_TABLE, Found, arms_of_all, has_arms
from inference.analyses.cells import Cells, cells_of, joint_vectors
from inference.analyses.checking import judged
from inference.analyses.formula import known_column
from inference.analyses.joint_sets import joint_sets
from inference.analyses.naming import Axis, axis_of, named
from inference.analyses.noise_bounds import impossible
from inference.analyses.result import AnalysisPosterior, Draws, Quantity
from inference.analyses.table import Codes, Private, Table, Values
from inference.analyses.varying import levels_of
from inference.compiling import use_compile_cache
from inference.limits import check_draws, check_seed
from inference.models.base import Draws as Sites
from inference.models.base import Model
from inference.priors.laws import state
from inference.results.identified import check_share
from inference.samplers import SAMPLERS
from inference.sampling import KEPT, PRIOR_DRAWS
from ldp_client.documents.errors import InputError
from summaries.influence import FALSE_SHARE

MOST_SHARES = 2000


def cross_table(
    table: Table,
    names: Sequence[str],
    by: str | None = None,
    *,
    seed: int = 0,
    method: str = "nuts",
    draws: int = KEPT,
    progress: Callable[[str], None] | None = None,
    false_reports: float = FALSE_SHARE,
) -> AnalysisPosterior:
    """The shares of all combinations of private answers, of all people or by a public column.

    Each table's shares are uniform before the reports. false_reports: the share of reports that may have come
    from anything at all. Raises InputError for columns that cannot be crossed.
    """
    check_seed(seed)
    check_draws(draws, method)
    share = check_share(false_reports)
    columns = _columns(table, names, by)
    use_compile_cache()
    cells, codes, levels, answers = _laid_out(table, columns, by)
    asked = " × ".join(names) + (f" by {by}" if by else "")
    if progress:
        progress(f"crossing {asked}: {cells.form}")
    model = joint_model(columns, cells, codes, levels, answers)
    own_seed = crc32(f"{seed} {asked}".encode())
    drawn = SAMPLERS[method].draw(model, own_seed, draws)
    prior = model.parameters(_uniform((len(levels), len(answers)), own_seed))
    found = model.parameters(drawn.sites)
    alone, *arms = _of_arms(table, columns, by)
    seen = judged(found, prior, drawn, table.n, _notes(table, cells, columns), method)
    return AnalysisPosterior(
        question="-".join(names),
        model="joint table",
        n=table.n,
        draws=found,
        prior_sd={name: float(values.std()) for name, values in prior.items()},
        diagnostics=seen.with_model(*arms).with_model(impossible(columns, cells)),
        study=table.digest,
        seed=seed,
        method=method,
        prior={"p": state("dirichlet", concentration=1.0)},
        prior_draws=prior,
        formula=asked,
        form=cells.form,
        axes=_axes(names, by, levels, answers),
        quantities=(*_dependence(columns, by, levels, drawn.sites["shares"]), *alone),
        stated=table.noise,
        identified=joint_sets(columns, cells, codes, found, share),
    ).doubted(table.doubts)


def _laid_out(
    table: Table, columns: Sequence[Private], by: str | None
) -> tuple[Cells, Codes, Sequence[str], list[tuple[str, ...]]]:
    """Cells, the level of each, the levels, and all combinations of answers, if these are not too many."""
    cells = cells_of(table, [by] if by else [], [one.name for one in columns])
    codes, levels = levels_of(cells.frame[by]) if by else (np.zeros(1, np.int64), ("",))
    answers = list(product(*(one.answers for one in columns)))
    _refuse_large(len(levels) * len(answers))
    return cells, codes, levels, answers


def _uniform(shape: tuple[int, int], seed: int) -> dict[str, Values]:
    """Draws of the shares before the reports."""
    random = np.random.default_rng(seed)
    return {"shares": random.dirichlet(np.ones(shape[1]), (PRIOR_DRAWS, shape[0]))}


def _of_arms(table: Table, columns: Sequence[Private], by: str | None) -> Found:
    """What devices and paper say of each question, where there are both: no public column is in it."""
    if not has_arms(table) or by == ARM:
        return [], (), ()
    return arms_of_all(table, columns, remedy=IN_TABLE)


def _refuse_large(size: int) -> None:
    if size > MOST_SHARES:
        raise InputError(f"the table has {size:,} shares: at most {MOST_SHARES:,} can be told")


def _notes(table: Table, cells: Cells, columns: Sequence[Private]) -> list[str]:
    missing = [f"{one.missing:,} rows have no report of {one.name}" for one in columns if one.missing]
    return [
        *table.notes,
        cells.form,
        "a joint table has no law to be checked: only whether the noise can give such reports",
        *missing,
    ]


def _axes(
    names: Sequence[str], by: str | None, levels: Sequence[str], answers: Sequence[tuple[str, ...]]
) -> dict[str, Axis]:
    """Where each share stands: its level, and its answer to each question."""
    return {
        named("p", level, *case): axis_of(
            "p", {f"{by}_dim": level, **{f"{n}_dim": one for n, one in zip(names, case, strict=True)}}
        )
        for level in levels
        for case in answers
    }


def joint_model(
    columns: Sequence[Private],
    cells: Cells,
    codes: Codes,
    levels: Sequence[str],
    answers: Sequence[tuple[str, ...]],
) -> Model:
    """Shares (levels, combinations of answers), each level's uniform before the reports.

    codes: (cells,) the level of each.
    """
    vectors = joint_vectors(columns, [cells.reports[one.name] for one in columns])
    shape = (len(levels), len(answers))

    def program(vectors: Array, level: Array, counts: Array) -> None:
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(shape)).to_event(1))
        chance = jnp.sum(vectors * shares[level], axis=1)
        numpyro.factor("reports", jnp.sum(counts * jnp.log(chance)))

    def parameters(sites: Sites) -> dict[str, Draws]:
        return {
            named("p", level, *case): sites["shares"][..., g, k]
            for g, level in enumerate(levels)
            for k, case in enumerate(answers)
        }

    data = {"vectors": vectors, "level": codes[cells.cell], "counts": cells.counts.astype(np.float64)}
    return Model(program, data, {"shares": np.full(shape, 1 / shape[1])}, parameters)


def _columns(table: Table, names: Sequence[str], by: str | None) -> list[Private]:
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("a crossed table needs two or more different private columns, such as ever,job")
    for name in names:
        known_column(name, table.names)
        if name not in table.private:
            raise InputError(f"{name} is public: cross private columns, and give a public one with --by")
        if table.private[name].channel is not None:
            raise InputError(f"{name} is a number: cross choices, and take a number as a formula's outcome")
        if table.private[name].unknown:
            raise InputError(f"{name}: its design leaves a share open, which a crossed table cannot tell")
    if by is not None and known_column(by, table.names) in table.private:
        raise InputError(f"{by} is private: cross it with the others instead of --by")
    return [table.private[name] for name in names]


def _dependence(
    columns: Sequence[Private], by: str | None, levels: Sequence[str], shares: Values
) -> list[Quantity]:
    """Of each two columns Cramér's V and odds ratios; of the last, its shares among those of the first."""
    shape = tuple(len(one.answers) for one in columns)
    whole = shares.reshape(*shares.shape[:-1], *shape)
    found = []
    for group, level in enumerate(levels):
        among = f", {by} = {level}" if by else ""
        of_group = whole[:, :, group]
        for a in range(len(columns)):
            for b in range(a + 1, len(columns)):
                others = tuple(2 + place for place in range(len(columns)) if place not in (a, b))
                pair = of_group.sum(axis=others)
                found += _of_pair(columns[a], columns[b], pair, among)
    return found


def _of_pair(first: Private, second: Private, pair: Values, among: str) -> list[Quantity]:
    what = f"{first.name} and {second.name}{among}"
    v = cramers_v(pair)
    found = [
        Quantity(f"Cramér's V {what}", f"Cramér's V of {what} (0: independent, 1: one says the other)", v)
    ]
    if pair.shape[-2:] == (2, 2):
        odds = pair[..., 0, 0] * pair[..., 1, 1] / (pair[..., 0, 1] * pair[..., 1, 0])
        found.append(Quantity(f"odds ratio {what}", f"odds ratio of {what}", odds))
    given = pair / pair.sum(axis=-1, keepdims=True)
    for i, one in enumerate(first.answers):
        for j, other in enumerate(second.answers):
            if len(second.answers) == 2 and j == 0:
                continue
            name = f"{second.name} = {other} among {first.name} = {one}{among}"
            found.append(Quantity(f"share {name}", f"share of {name}", given[..., i, j]))
    return found


def cramers_v(pair: Values) -> Values:
    """Cramér's V of joint shares (…, a, b): √(φ² / (min(a, b) − 1))."""
    rows, columns = pair.sum(axis=-1, keepdims=True), pair.sum(axis=-2, keepdims=True)
    expected = rows * columns
    phi = np.sum((pair - expected) ** 2 / np.maximum(expected, 1e-300), axis=(-2, -1))
    return np.asarray(np.sqrt(phi / (min(pair.shape[-2:]) - 1)))
