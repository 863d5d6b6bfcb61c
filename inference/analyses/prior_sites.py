"""Draw an analysis before any report, in the sampler's coordinates and by name."""

from __future__ import annotations

import numpy as np

from inference.analyses.linear import Linear
from inference.analyses.program import Assembled
from inference.analyses.stated_priors import draws_from, is_flat
from inference.analyses.table import Values
from inference.sampling import PRIOR_DRAWS

Sites = dict[str, Values]


def prior_sites(analysis: Assembled, seed: int, count: int = PRIOR_DRAWS) -> Sites:
    """Return {site: (count, …)}. Placeholders replace flat priors; `without_prior` names their parameters."""
    random = np.random.default_rng(seed)
    found: Sites = {}
    for part in analysis.linears:
        found |= _of_linear(part, count, random)
    for group in analysis.every_group:
        shape = (len(group.spreads), len(group.outputs))
        found[f"{group.site}_z"] = random.normal(size=(count, len(group.levels), *shape))
        for place, prior in enumerate(group.priors):
            each = [draws_from(prior, count, random) for _ in group.outputs]
            found[f"{group.site}_sd_{place}"] = np.stack(each, axis=-1)
    for name, prior in analysis.own.priors.items():
        if analysis.outcome.cutpoints:
            cuts = [
                random.normal(size=count) if is_flat(prior) else draws_from(prior, count, random)
                for _ in range(analysis.outcome.cutpoints)
            ]
            found[name] = np.sort(np.stack(cuts, axis=-1), axis=-1)
        else:
            found[name] = draws_from(prior, count, random)
    return found | {name: draws_from(prior, count, random) for name, prior in analysis.unknown.items()}


def _of_linear(part: Linear, count: int, random: np.random.Generator) -> Sites:
    found: Sites = {}
    standard = _standard(part, count, random)
    if len(part.columns):
        found[f"{part.site}_rotated"] = np.einsum("jk,sko->sjo", np.linalg.inv(part.unrotation), standard)
    if part.intercept:
        middle = np.zeros((count, len(part.outputs)))
        moved = np.einsum("j,sjo->so", part.middles / part.spreads, standard)
        for output, (prior, own) in enumerate(part.intercept_priors):
            if not is_flat(prior):
                middle[:, output] = draws_from(prior, count, random) + (moved[:, output] if own else 0)
        found[f"{part.site}_middle"] = middle
    return found


def _standard(part: Linear, count: int, random: np.random.Generator) -> Values:
    """Return coefficients of standardised columns, (count, columns, outputs)."""
    found = np.zeros((count, len(part.columns), len(part.outputs)))
    for place, row in enumerate(part.priors):
        for output, prior in enumerate(row):
            if not is_flat(prior):
                found[:, place, output] = draws_from(prior, count, random) * part.spreads[place]
    turns = part.from_priors
    if turns is None:
        return found
    own = np.einsum("ojk,sko->sjo", turns, found / part.spreads[:, None])
    return np.asarray(own * part.spreads[:, None])


def without_prior(analysis: Assembled) -> set[str]:
    """Return the names of parameters without a proper prior."""
    found = {name for name, (prior, _) in analysis.priors().items() if is_flat(prior)}
    for part in analysis.linears:
        found |= part.open_priors()
        for names in part.intercept_names():
            if found & set(names[1:]) and not part.prior_by_name()[names[0]][1]:
                found.add(names[0])
    if analysis.outcome.cutpoints and (found or is_flat(analysis.own.priors["threshold"])):
        found |= {one.name for one in analysis.own.places("")}
    return found
