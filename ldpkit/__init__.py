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
    from inference.design.calibration import calibrate
    from inference.design.device_epsilon import plan_shuffled
    from inference.design.difference import plan_difference
    from inference.design.plan import plan
    from ldp_client import Device, Direct, Mechanism, Oblivious, Transport, mechanism_for, mechanisms_of
    from ldp_client.bulk import perturb_many
    from ldp_client.documents import errors as errors
    from ldp_client.documents.errors import LdpkitError
    from ldp_client.shuffling.reports import (
        ShuffledPrivacy,
        shuffled_delta,
        shuffled_epsilon,
        shuffled_privacy,
    )
    from ldpkit import ask as ask
    from ldpkit.ask import study
    from ldpkit.auditing.auditing import audit_study as audit
    from schemas import Question, Report, Study
    from summaries import (
        Summary,
        count_dataset,
        dask_summary,
        spark_summary,
        summarize,
        summarize_dataset,
    )

    __version__: str

__all__ = [
    "Device",
    "Direct",
    "LdpkitError",
    "Mechanism",
    "Oblivious",
    "Posterior",
    "Question",
    "Report",
    "ShuffledPrivacy",
    "Study",
    "Summary",
    "Transport",
    "__version__",
    "analyse",
    "analyse_waves",
    "audit",
    "calibrate",
    "count_dataset",
    "create_app",
    "dask_summary",
    "fit",
    "mechanism_for",
    "mechanisms_of",
    "perturb_many",
    "plan",
    "plan_difference",
    "plan_shuffled",
    "shuffled_delta",
    "shuffled_epsilon",
    "shuffled_privacy",
    "spark_summary",
    "study",
    "summarize",
    "summarize_dataset",
]

_MODULES = {"ask": "ldpkit.ask", "errors": "ldp_client.documents.errors"}
# For each name: its module, its name there, and the extra that the module needs.
_HOMES = {
    "Device": ("ldp_client", "Device", ""),
    "Direct": ("ldp_client", "Direct", ""),
    "Oblivious": ("ldp_client", "Oblivious", ""),
    "Transport": ("ldp_client", "Transport", ""),
    "LdpkitError": ("ldp_client.documents.errors", "LdpkitError", ""),
    "Mechanism": ("ldp_client", "Mechanism", ""),
    "Posterior": ("inference", "Posterior", "inference"),
    "Question": ("schemas", "Question", ""),
    "Report": ("schemas", "Report", ""),
    "Study": ("schemas", "Study", ""),
    "Summary": ("summaries", "Summary", "tables"),
    "ShuffledPrivacy": ("ldp_client.shuffling.reports", "ShuffledPrivacy", ""),
    "analyse": ("inference", "analyse", "inference"),
    "analyse_waves": ("inference", "analyse_waves", "inference"),
    "audit": ("ldpkit.auditing.auditing", "audit_study", ""),
    "calibrate": ("inference.design.calibration", "calibrate", "inference"),
    "count_dataset": ("summaries", "count_dataset", "tables"),
    "create_app": ("collector", "create_app", "collector"),
    "dask_summary": ("summaries", "dask_summary", "dask"),
    "fit": ("inference", "fit", "inference"),
    "mechanism_for": ("ldp_client", "mechanism_for", ""),
    "mechanisms_of": ("ldp_client", "mechanisms_of", ""),
    "perturb_many": ("ldp_client.bulk", "perturb_many", "tables"),
    "plan": ("inference.design.plan", "plan", "inference"),
    "plan_difference": ("inference.design.difference", "plan_difference", "inference"),
    "plan_shuffled": ("inference.design.device_epsilon", "plan_shuffled", "inference"),
    "shuffled_delta": ("ldp_client.shuffling.reports", "shuffled_delta", ""),
    "shuffled_epsilon": ("ldp_client.shuffling.reports", "shuffled_epsilon", ""),
    "spark_summary": ("summaries", "spark_summary", "spark"),
    "study": ("ldpkit.ask", "study", ""),
    "summarize": ("summaries", "summarize", "tables"),
    "summarize_dataset": ("summaries", "summarize_dataset", "tables"),
    "shuffled_privacy": ("ldp_client.shuffling.reports", "shuffled_privacy", ""),
}


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

        found: Any = version("ldpkit")
    elif name in _MODULES:
        found = import_module(_MODULES[name])
    elif name in _HOMES:
        found = _load(*_HOMES[name])
    else:
        raise AttributeError(f"module 'ldpkit' has no attribute {name!r}")
    globals()[name] = found
    return found


def _load(module: str, name: str, extra: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        from ldp_client.files.lacking import lacking

        error = lacking(missing, extra) if extra else None
        if error is None:
            raise
        raise error from None


def __dir__() -> list[str]:
    """List the public names, including names that are loaded on first use."""
    return sorted([*__all__, *_MODULES])
