"""Regression from data holders' noisy statistics: each method under its published name, one file each.

To add one: a file here that defines METHOD, and its name in NAMES.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from inference.published.base import Method

NAMES = (
    "ada_ssp",
    "bayes_fixeds_fast",
    "gibbs_ss_noisy",
    "gibbs_ss_prior",
    "gibbs_ss_update",
    "marginal",
    "mcmc_bs",
    "mcmc_fixeds",
    "mcmc_ind",
    "mcmc_normalx",
    "naive",
    "non_private",
    "projected_blr",
)


def method_named(name: str) -> Method:
    """The method of that name. Raises InputError for an unknown one."""
    if name not in NAMES:
        raise InputError(f"{name!r} is no method for tables; {', '.join(NAMES)} are")
    method: Method = import_module(f"inference.published.{name}").METHOD
    return method
