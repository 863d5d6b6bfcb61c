"""Methods that the papers compare theirs with; `ldpkit fit` has none of these.

Their posteriors are too narrow (naive, projected_blr), a point (ada_ssp), from exact sums (non_private) or
superseded (mcmc_bs).
"""

from benchmarks.papers import ada_ssp, mcmc_bs, noisy_as_exact
from inference.published.base import Method

METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        ada_ssp.METHOD,
        mcmc_bs.METHOD,
        noisy_as_exact.NAIVE,
        noisy_as_exact.NON_PRIVATE,
        noisy_as_exact.PROJECTED_BLR,
    )
}
