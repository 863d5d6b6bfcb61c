"""The single entry point: `import ldpkit`, then `ldpkit.Study`, `ldpkit.Device`, `ldpkit.fit`, ….

A name's package is loaded when the name is first used, so a device never loads the server or JAX. The
packages behind this module can also be imported under their own names.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector import create_app
    from inference import Posterior, analyse, analyse_waves, fit
    from inference.analyses.rappor import fit_rappor
    from inference.design.calibration import calibrate
    from inference.design.plan import plan, plan_difference
    from ldp_client import Device, Direct, Mechanism, Oblivious, Transport, mechanism_for, mechanisms_of
    from ldp_client.bulk import perturb_many
    from ldp_client.documents import errors as errors
    from ldp_client.documents.errors import LdpkitError
    from ldpkit import ask as ask
    from ldpkit.ask import study
    from ldpkit.auditing.auditing import audit
    from ldpkit.perturbing import perturb
    from schemas import Question, Report, Study
    from schemas.shuffling.reports import ShuffledPrivacy, shuffled_epsilon, shuffled_privacy
    from summaries import Summary, dask_summary, spark_summary, summarize, summarize_dataset

    __version__: str

__all__ = [
    "Device", "Direct", "LdpkitError", "Mechanism", "Oblivious", "Posterior", "Question", "Report",
    "ShuffledPrivacy", "Study", "Summary", "Transport", "__version__", "analyse", "analyse_waves", "audit",
    "calibrate", "create_app", "dask_summary", "fit", "fit_rappor", "mechanism_for", "mechanisms_of",
    "perturb", "perturb_many", "plan", "plan_difference", "shuffled_epsilon",
    "shuffled_privacy", "spark_summary", "study", "summarize", "summarize_dataset",
]  # fmt: skip

_MODULES = {"ask": "ldpkit.ask", "errors": "ldp_client.documents.errors"}
# The names that each module defines.
_DEFINED = {
    "collector": "create_app",
    "inference": "Posterior analyse analyse_waves fit",
    "inference.analyses.rappor": "fit_rappor",
    "inference.design.calibration": "calibrate",
    "inference.design.plan": "plan plan_difference",
    "ldp_client": "Device Direct Mechanism Oblivious Transport mechanism_for mechanisms_of",
    "ldp_client.bulk": "perturb_many",
    "ldp_client.documents.errors": "LdpkitError",
    "schemas.shuffling.reports": "ShuffledPrivacy shuffled_epsilon shuffled_privacy",
    "ldpkit.ask": "study",
    "ldpkit.auditing.auditing": "audit",
    "ldpkit.perturbing": "perturb",
    "schemas": "Question Report Study",
    "summaries": "Summary summarize summarize_dataset",
    "summaries.engines.frames": "dask_summary spark_summary",
}
_HOMES = {name: module for module, names in _DEFINED.items() for name in names.split()}


def _refuse_hidden_packages() -> None:
    """Raise ImportError if a file of the user has the name of a package of ldpkit, and hides it."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in ("ldp_client", "schemas", "summaries", "collector", "inference"):
        spec = find_spec(name)
        ours = os.path.join(home, name, "__init__.py")
        if spec is None or not os.path.exists(ours):
            continue
        if spec.origin is None or not os.path.samefile(spec.origin, ours):
            line = f"{spec.origin} hides the package {name} of ldpkit: rename it, or start elsewhere"
            if sys.argv[:1] == ["-m"]:
                # The command is run: a traceback would say no more.
                sys.exit(f"ldpkit: {line}")
            raise ImportError(line)


_refuse_hidden_packages()


def __getattr__(name: str) -> Any:
    """Load a name at its first use, and keep it.

    Raises:
        AttributeError: there is no such name.
        MissingExtraError: the package that it needs is not installed; the error names the extra to install.
    """
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("ldpkit")
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    elif name not in _HOMES:
        raise AttributeError(f"module 'ldpkit' has no attribute {name!r}")
    else:
        try:
            value = getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as missing:
            from ldpkit.lacking import lacking

            raise lacking(missing) or missing from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, including names that are loaded on first use."""
    return sorted([*__all__, *_MODULES])
