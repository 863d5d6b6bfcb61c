"""adaSSP for several holders (DDPLR appendix C.2, after Wang 2018): ridge regression on the noisy sums.

It gives a point.
"""

import numpy as np
from numpy.typing import NDArray

from inference.likelihoods.holders import HolderStatistics
from inference.published.base import Method, Run, gaussian, noisy_moments
from inference.published.conjugate import ConjugatePrior
from inference.sampling.nuts import Sampled

# How rarely the noise's spectral norm may exceed its bound.
RISK = 0.05
NOTE = "ada_ssp gives a point estimate: all its draws are equal, and no interval of theirs means anything"


def estimate(
    gram: NDArray[np.float64], cross: NDArray[np.float64], ridges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(ΣS_j + Σλ_j I)⁻¹ Σz_j (equation 15); gram (J, q, q), cross (J, q), ridges λ (J,)."""
    return np.linalg.solve(gram.sum(0) + ridges.sum() * np.eye(gram.shape[-1]), cross.sum(0))


def ridges(statistics: HolderStatistics) -> NDArray[np.float64]:
    """λ_j: the noise's likely spectral norm, less what S_j's smallest eigenvalue surely has.

    The published λ_j spends a third of the budget on that eigenvalue. Here it is read off the noisy S_j,
    which costs nothing: less the noise's norm, it is below the true one with probability 1 − RISK.
    """
    q = statistics.columns
    widest = float(statistics.noise[:-1, :-1].max()) * np.sqrt(q * np.log(2 * q**2 / RISK))
    smallest = np.linalg.eigvalsh(statistics.gram)[:, 0]
    return np.maximum(widest - np.maximum(smallest - widest, 0.0), 0.0)


def residual_variance(
    statistics: HolderStatistics, theta: NDArray[np.float64], prior: ConjugatePrior
) -> float:
    """Residual sum of squares a record where yᵀy was released and it is positive, else the prior's mode."""
    mode = float(prior.rate) / (float(prior.shape) + 1)
    if not statistics.has_squares:
        return mode
    direction = np.append(-theta, 1.0)
    found = float(direction @ statistics.sums.sum(0) @ direction / statistics.counts.sum())
    return found if found > 0 else mode


def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """The estimate, as often as draws were asked for. The prior of θ has no part in it."""
    theta = estimate(statistics.gram, statistics.cross, ridges(statistics))
    shape = run.chains, run.kept
    drawn = {
        "theta": np.broadcast_to(theta, (*shape, len(theta))).copy(),
        "variance": np.full(shape, residual_variance(statistics, theta, prior)),
    }
    return Sampled(drawn, np.zeros(shape, bool), (NOTE,))


METHOD = Method("ada_ssp", (gaussian, noisy_moments), draw)
