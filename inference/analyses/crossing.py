"""Crossed questions: the joint table of private columns, and their dependence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array

from inference.analyses.cells import Cells, cells_of
from inference.analyses.checking import impossible
from inference.analyses.formula import known_column
from inference.analyses.joint_law import STATED, JointEffects, JointLaw, log_odds, one_sided, pair_of
from inference.analyses.likelihood import joint
from inference.analyses.open_shares import OpenShares
from inference.analyses.parameter_names import Parameter, named, united
from inference.analyses.result import AnalysisPosterior, Draws
from inference.analyses.stated_priors import Given
from inference.analyses.table import Codes, Private, Table, Values
from inference.analyses.varying import levels_of
from inference.compiling import use_compile_cache
from inference.fit_model import fit_model
from inference.limits import check_sampling
from inference.models.base import Draws as Sites
from inference.models.base import Fit, Model
from inference.results.diagnostics import listed
from inference.results.quantity import Quantity
from inference.results.verdict import CARE, INFORMATIVENESS, Finding
from inference.samplers import CHAINS
from inference.sampling import KEPT
from ldp_client.documents.errors import InputError, UsageError

MOST_SHARES = 2000
NO_OTHER_PRIOR = "take more people or a larger epsilon"
NO_LAW = "a joint table has no law to check: only whether the noise can give such reports was checked"


def cross_table(
    table: Table,
    names: Sequence[str],
    by: str | None = None,
    *,
    priors: Mapping[str, Any] | None = None,
    seed: int = 0,
    method: str = "nuts",
    draws: int = KEPT,
    chains: int = CHAINS,
    progress: Callable[[str], None] | None = None,
) -> AnalysisPosterior:
    """Estimate the shares of all combinations of private answers, overall or by a public column.

    A priori each question's shares are uniform, and log odds ratios are normal around 0. priors: of shares
    that the channels leave open, by name. Raises InputError for columns that cannot be crossed.
    """
    # 1. Count the reports by cell.
    check_sampling(seed, draws, chains, method)
    columns = _columns(table, names, by)
    use_compile_cache()
    cells = cells_of(table, [by] if by else [], names)
    codes, levels = levels_of(cells.frame[by]) if by else (np.zeros(1, np.int64), ("",))
    answers = list(product(*(one.answers for one in columns)))
    if len(levels) * len(answers) > MOST_SHARES:
        raise InputError(
            f"the table has {len(levels) * len(answers):,} shares: at most {MOST_SHARES:,} can be estimated",
            code="table.cross_too_many_shares",
        )
    asked = " × ".join(names) + (f" by {by}" if by else "")
    if progress:
        progress(f"crossing {asked}: {cells.form}")
    # 2. Fit. Each share has a place: its level, and its answer to each question.
    among = [f", {by} = {level}" if by else "" for level in levels]
    labels = [
        {f"{by}_dim": level, **{f"{name}_dim": answer for name, answer in zip(names, case, strict=True)}}
        for level, case in product(levels, answers)
    ]
    opened = OpenShares(columns, Given(priors))
    places = [*(Parameter("p", each) for each in labels), *opened.entries]
    return fit_model(
        joint_model(table, columns, cells, codes, levels, among, opened),
        asked,
        table.n,
        kind=AnalysisPosterior,
        seed=seed,
        method=method,
        draws=draws,
        chains=chains,
        predictive=lambda _model, _fit: None,
        more=table.doubts,
        remedy=NO_OTHER_PRIOR,
        question="-".join(names),
        model="joint table",
        study_digest=table.digest,
        prior={**STATED, **opened.priors},
        formula=asked,
        form=cells.form,
        axes=united(*({one.name: one.axis} for one in places if one.axis.coordinates)),
        stated=table.noise,
    )


def _one_sided(compared: Callable[[Sites], Mapping[str, Values]], fit: Fit) -> tuple[Finding, ...]:
    """Return a reason if reports bound log odds ratios on one side at most."""
    names = one_sided(compared(fit.sites), compared(fit.prior_sites))
    if not names:
        return ()
    reason = (
        f"reports bound {listed(names)} on one side at most: the prior decides the other side, and V, odds "
        "ratios and conditional shares with it. Use more devices or a larger epsilon"
    )
    return (Finding(INFORMATIVENESS, reason, CARE),)


def joint_model(
    table: Table,
    columns: Sequence[Private],
    cells: Cells,
    codes: Codes,
    levels: Sequence[str],
    among: Sequence[str],
    opened: OpenShares,
) -> Model:
    """Return the model of shares (levels, combinations of answers), with a separate law for each level.

    The law's site is `effects`. codes: (cells,) each cell's level. among: each level's suffix of names.
    """
    leaves = {one.name: one.choices.vectors[:, cells.reports[one.name]] for one in columns}
    law, answers = JointLaw(tuple(len(one.answers) for one in columns)), [one.answers for one in columns]
    missing = [f"{one.missing:,} rows have no report of {one.name}" for one in columns if one.missing]

    def program(level: Array, counts: Array, **leaves: Array) -> None:
        effects = numpyro.sample("effects", JointEffects(law, len(levels)))
        weights = opened.draw()
        vectors = joint([one.choices.mixed(leaves[one.name], weights) for one in columns])
        chance = jnp.sum(vectors * jax.nn.softmax(effects @ law.basis.T, axis=-1)[level], axis=1)
        numpyro.factor("reports", jnp.sum(counts * jnp.log(chance)))

    def parameters(sites: Sites) -> dict[str, Draws]:
        shares = law.shares(sites)
        shares = shares.reshape(*shares.shape[:-2], -1)
        found = {named("p", *case): shares[..., at] for at, case in enumerate(product(levels, *answers))}
        for one in opened.weights:
            found |= dict(zip(one.names, one.at(sites), strict=False))
        return found

    def compared(sites: Sites) -> dict[str, Values]:
        # All quoted measures of dependence follow from the log odds ratios.
        return log_odds(columns, among, law.shares(sites))

    def impossible_of(fit: Fit) -> Iterator[Finding]:
        whole = law.shares(fit.sites).mean(axis=(0, 1))[codes].reshape(len(codes), *law.sizes)
        weights = {site: fit.sites[site].mean() for site in opened.laws}
        for place, one in enumerate(columns):
            others = tuple(1 + other for other in range(len(columns)) if other != place)
            yield from impossible(one, cells, whole.sum(axis=others), weights)

    def derived(sites: Sites) -> dict[str, Any]:
        quantities = _dependence(columns, among, law.shares(sites))
        return {"quantities": tuple(united(*({one.name: one} for one in quantities)).values())}

    return Model(
        program,
        {"level": codes[cells.cell], "counts": cells.counts.astype(np.float64), **leaves},
        {"effects": np.zeros((len(levels), law.basis.shape[1])), **opened.initial()},
        parameters,
        (*table.notes, cells.form, NO_LAW, *missing),
        (partial(_one_sided, compared), impossible_of),
        derived,
        compared=compared,
    )


def _columns(table: Table, names: Sequence[str], by: str | None) -> list[Private]:
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "a crossed table needs two or more different private columns, such as ever,job",
            code="table.cross_needs_two_columns",
        )
    for name in names:
        known_column(name, table.names)
        if name not in table.private:
            raise InputError(
                f"{name} is public: cross private columns, and give a public column with --by",
                code="table.cross_public_column",
            )
        if table.private[name].number is not None:
            raise InputError(
                f"{name} is a number: cross choices, or use the number as a formula's outcome",
                code="table.cross_number_column",
            )
    if by is not None and known_column(by, table.names) in table.private:
        raise InputError(
            f"{by} is private: cross it with the others instead of --by", code="table.cross_by_private"
        )
    return [table.private[name] for name in names]


def _dependence(columns: Sequence[Private], among: Sequence[str], shares: Values) -> list[Quantity]:
    """Return Cramér's V and odds ratios of each two columns, and the last column's shares given the first."""
    whole = shares.reshape(*shares.shape[:-1], *(len(one.answers) for one in columns))
    found = []
    for level, added in enumerate(among):
        for a, b in combinations(range(len(columns)), 2):
            pair = pair_of(whole[:, :, level], len(columns), a, b)
            found += _of_pair(columns[a], columns[b], pair, added)
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
