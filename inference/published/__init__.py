"""Regression from data holders' noisy statistics: each method under its published name.

To add one: a file here that defines METHOD, and a line in _HOMES.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from inference.published.base import Method

# The module and the name of each.
_HOMES = {
    "bayes_fixeds_fast": ("fixed_grams", "FAST"),
    "gibbs_ss_noisy": ("gibbs_ss", "NOISY"),
    "gibbs_ss_prior": ("gibbs_ss", "PRIOR"),
    "gibbs_ss_update": ("gibbs_ss", "UPDATE"),
    "marginal": ("marginal", "METHOD"),
    "mcmc_fixeds": ("fixed_grams", "METHOD"),
    "mcmc_ind": ("mcmc_ind", "METHOD"),
    "mcmc_normalx": ("mcmc_normalx", "METHOD"),
}
NAMES = tuple(_HOMES)


def method_named(name: str) -> Method:
    """The method of that name. Raises InputError for an unknown one."""
    if name not in NAMES:
        raise InputError(
            f"{name!r} is no method for tables; {', '.join(NAMES)} are", code="fit.unknown_table_method"
        )
    module, attribute = _HOMES[name]
    method: Method = getattr(import_module(f"{__name__}.{module}"), attribute)
    return method
