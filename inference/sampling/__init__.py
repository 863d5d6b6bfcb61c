"""Draw from a model: its posterior with NUTS, or nearly with a Gaussian approximation; its prior."""

from inference.samplers import CHAINS, KEPT, LENGTH
from inference.sampling.nuts import Sampled, sample
from inference.sampling.space import PRIOR_DRAWS, PriorDraws, prior_sites, sample_prior

__all__ = [
    "CHAINS",
    "KEPT",
    "LENGTH",
    "PRIOR_DRAWS",
    "PriorDraws",
    "Sampled",
    "prior_sites",
    "sample",
    "sample_prior",
]
