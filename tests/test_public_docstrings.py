"""Exported names have Google-style docstrings that explain each parameter and own error."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

PACKAGES = (
    "schemas",
    "ldp_client",
    "summaries",
    "collector",
    "inference",
    "inference.likelihoods",
    "ldpkit",
    "ldpkit.ask",
)
# A class states what it is made of; its magic methods do what Python says of them.
RUFF = ["--isolated", "--select=D", "--ignore=D105,D107", "--config", 'lint.pydocstyle.convention="google"']


def exported() -> dict[str, Any]:
    """Each exported class and function by where it is defined, however many packages export it."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in [name for name in package.__all__ if name != "__version__"]:
            thing = getattr(package, name)
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


EXPORTED = exported()


@cache
def complaints() -> list[dict[str, Any]]:
    """Return the complaints of ruff's docstring rules about all files with exported names, and this one."""
    files = sorted({*map(file_of, EXPORTED.values()), file_of(Planted)})
    command = [sys.executable, "-m", "ruff", "check", *RUFF, "--output-format=json", *files]
    found: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return found


def file_of(thing: Any) -> str:
    """Where it is defined."""
    return str(Path(inspect.getsourcefile(thing) or "").resolve())


def explained_above(thing: Any, name: str) -> bool:
    """Whether a base class explains this method or property: who overrides it need not say it again."""
    above = [vars(base).get(name) for base in thing.__mro__[1:]]
    return any(isinstance(one, FunctionType | property) and one.__doc__ for one in above)


def is_silence(complaint: dict[str, Any], thing: Any, lines: list[str]) -> bool:
    """Whether ruff misses a docstring that a base class has."""
    if complaint["code"] != "D102":
        return False
    (name,) = re.findall(r"def (\w+)", lines[complaint["location"]["row"] - 1])
    return explained_above(thing, name)


def style_of(thing: Any) -> list[str]:
    """Return ruff's complaints about the lines that define it."""
    lines, first = inspect.getsourcelines(thing)
    rows = range(first, first + len(lines))
    file = file_of(thing)
    whole = Path(file).read_text(encoding="utf-8").splitlines()
    found = [one for one in complaints() if one["filename"] == file and one["location"]["row"] in rows]
    found = [one for one in found if not is_silence(one, thing, whole)]
    return [f"line {one['location']['row']}: {one['code']} {one['message']}" for one in found]


def section(docstring: str, title: str) -> list[str]:
    """The names that a section of a docstring explains."""
    text = re.search(rf"^{title}:\n((?:[ \t]+.*\n?|\n)*)", inspect.cleandoc(docstring) + "\n", flags=re.M)
    return re.findall(r"^ {4}\**(\w+)[^:\n]*:", text[1], flags=re.M) if text else []


def parts_of(thing: Any) -> dict[str, tuple[Any, str]]:
    """Yield each public callable with the docstring that explains its parameters."""
    if not inspect.isclass(thing):
        return {"": (thing, thing.__doc__ or "")}
    own = {name: getattr(value, "__func__", value) for name, value in vars(thing).items() if name[0] != "_"}
    own = {name: value for name, value in own.items() if inspect.isfunction(value)}
    told = [name for name, value in own.items() if value.__doc__ or not explained_above(thing, name)]
    found = {name: (own[name], own[name].__doc__ or "") for name in told}
    start = vars(thing).get("__init__")
    if start is not None:
        found["__init__"] = (start, f"{inspect.cleandoc(thing.__doc__ or '')}\n\n{start.__doc__ or ''}")
    return found


def raised_by(function: Any) -> set[str]:
    """The errors that its own lines raise."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except OSError:  # what a dataclass writes itself
        return set()
    raises = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    called = [error.func for error in raises if isinstance(error, ast.Call)]
    return {error.id for error in called if isinstance(error, ast.Name)} - {"NotImplementedError"}


def gaps_of(thing: Any) -> list[str]:
    """List its own parameters and errors that its docstrings omit."""
    gaps = []
    for name, (function, docstring) in parts_of(thing).items():
        parameters = set(inspect.signature(function).parameters) - {"self", "cls"}
        explained = {*section(docstring, "Args"), *section(docstring, "Attributes")}
        gaps += [f"{name} does not explain {one}" for one in sorted(parameters - explained)]
        missing = raised_by(function) - set(section(docstring, "Raises"))
        gaps += [f"{name} does not say that it raises {one}" for one in sorted(missing)]
    return gaps


@pytest.mark.parametrize("name", EXPORTED)
def test_every_exported_name_is_documented(name):
    assert style_of(EXPORTED[name]) + gaps_of(EXPORTED[name]) == []


class Planted:
    """a line without an end

    Args:
        first: explained.
    """

    def __init__(self, first: int, second: int) -> None:
        if first > second:
            raise ValueError

    def scale(self, factor: int) -> int:
        """Multiply.

        Args:
            factor: by what.
        """
        if not factor:
            raise KeyError("factor")
        return factor


class Overriding(Planted):
    """Overrides a documented method, and adds an undocumented one."""

    def scale(self, factor: int) -> int:
        return factor

    def shift(self, way: int) -> int:
        return way


def test_overriding_method_needs_no_docstring():
    assert gaps_of(Overriding) == ["shift does not explain way"]
    (complaint,) = style_of(Overriding)
    assert "D102" in complaint


def test_missing_explanations_are_detected():
    assert gaps_of(Planted) == [
        "scale does not say that it raises KeyError",
        "__init__ does not explain second",
    ]
    (complaint,) = style_of(Planted)
    assert "D415" in complaint
