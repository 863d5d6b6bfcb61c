"""Noise-aware posteriors from reports: likelihoods, models, fits."""

from inference.fitting import fit
from inference.posterior import Posterior
from inference.summaries import Summary, summarize

__all__ = ["Posterior", "Summary", "fit", "summarize"]
