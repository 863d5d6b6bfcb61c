"""Drawing from a model's posterior and prior: NUTS (nuts.py), or a Gaussian approximation (laplace.py)."""

from __future__ import annotations

from inference.sampling.nuts import CHAINS, KEPT, PRIOR_DRAWS, Sampled, prior_sites, sample, sample_prior

__all__ = ["CHAINS", "KEPT", "PRIOR_DRAWS", "Sampled", "prior_sites", "sample", "sample_prior"]
