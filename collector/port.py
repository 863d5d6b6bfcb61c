"""The files of the browser port (ldp_client/js), and which of them a study's page needs."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

import ldp_client
from schemas import Study

PORT = Path(ldp_client.__file__).parent / "js"
MODULES = sorted(file.relative_to(PORT).as_posix() for file in PORT.rglob("*.js"))
_IMPORTED = re.compile(r'^(?:import|export) .*?from "([^"]+)";', re.M | re.S)


def modules_for(study: Study) -> list[str]:
    """The modules that a page loads for a study: the port itself, its mechanisms, priors where stated."""
    wanted = {"index.js"} | {f"mechanisms/{asked.mechanism.name}.js" for asked in study.questions}
    if any(asked.model.prior for asked in study.questions):
        wanted.add("priors.js")
    return sorted(set().union(*map(_with_imports, wanted.intersection(MODULES))))


@cache
def _with_imports(module: str) -> frozenset[str]:
    """A module with all that it imports at once."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            text = (PORT / name).read_text(encoding="utf-8")
            folder = posixpath.dirname(name)
            waiting += [posixpath.normpath(posixpath.join(folder, path)) for path in _IMPORTED.findall(text)]
    return frozenset(found)
