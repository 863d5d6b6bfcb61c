"""Noise-aware posteriors from reports: likelihoods, models, fits."""

import warnings

# ArviZ 0 announces ArviZ 1 at each import.
warnings.filterwarnings("ignore", message="\\nArviZ is undergoing", category=FutureWarning)

from inference.fitting import fit
from inference.posterior import Posterior
from inference.summaries import Summary, summarize

__all__ = ["Posterior", "Summary", "fit", "summarize"]
