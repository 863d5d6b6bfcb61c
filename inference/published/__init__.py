"""Regression from data holders' noisy statistics: each method under its published name.

To add one: define a `Method` in a module here, and add a line to _HOMES.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference.published.base import Method

# The module of each method, and its name there.
_HOMES = {
    "bayes_fixeds_fast": ("mcmc_fixeds", "FAST"),
    "gibbs_ss_noisy": ("gibbs_ss", "NOISY"),
    "gibbs_ss_update": ("gibbs_ss", "UPDATE"),
    "mcmc_fixeds": ("mcmc_fixeds", "METHOD"),
    "mcmc_ind": ("mcmc_ind", "METHOD"),
    "mcmc_normalx": ("mcmc_normalx", "METHOD"),
}
NAMES = tuple(_HOMES)


def method_named(name: str) -> Method:
    """Return the method of one of NAMES."""
    module, attribute = _HOMES[name]
    method: Method = getattr(import_module(f"{__name__}.{module}"), attribute)
    return method
