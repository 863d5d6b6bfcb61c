"""Noise-aware posteriors from reports: likelihoods, models, fits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.analyses.study_formula import analyse, analyse_waves
    from inference.fitting import fit
    from inference.results.posterior import Posterior
    from summaries import Summary, summarize

__all__ = ["Posterior", "Summary", "analyse", "analyse_waves", "fit", "summarize"]

_HOMES = {
    "analyse": "inference.analyses.study_formula",
    "analyse_waves": "inference.analyses.study_formula",
    "fit": "inference.fitting",
    "Posterior": "inference.results.posterior",
    "Summary": "summaries",
    "summarize": "summaries",
}


def __getattr__(name: str) -> Any:
    """Load JAX and NumPyro on first use, so that the command line's help does not wait for them."""
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(_HOMES[name]), name)
