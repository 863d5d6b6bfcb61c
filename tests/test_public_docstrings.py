"""Exported names have Google-style docstrings that explain each parameter and own error."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from functools import cached_property
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
PROPERTY = property | cached_property


def exported() -> dict[str, Any]:
    """Each exported class and function by where it is defined, however many packages export it."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in [name for name in package.__all__ if name != "__version__"]:
            thing = getattr(package, name)
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


EXPORTED = exported()


def explained_above(thing: Any, name: str) -> bool:
    """Whether a base class explains this method or property: who overrides it need not say it again."""
    above = [vars(base).get(name) for base in thing.__mro__[1:]]
    return any(isinstance(one, FunctionType | PROPERTY) and one.__doc__ for one in above)


def undocumented(thing: Any) -> list[str]:
    """List its public parts without a docstring of their own or of a base class, and itself."""
    found = [] if thing.__doc__ else [thing.__name__]
    for name, value in vars(thing).items() if inspect.isclass(thing) else ():
        part = getattr(value, "__func__", value)
        described = part.__doc__ or explained_above(thing, name)
        if name[0] != "_" and (callable(part) or isinstance(part, PROPERTY)) and not described:
            found.append(name)
    return found


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
    gaps = [f"{name} has no docstring" for name in undocumented(thing)]
    for name, (function, docstring) in parts_of(thing).items():
        parameters = set(inspect.signature(function).parameters) - {"self", "cls"}
        explained = {*section(docstring, "Args"), *section(docstring, "Attributes")}
        gaps += [f"{name} does not explain {one}" for one in sorted(parameters - explained)]
        missing = raised_by(function) - set(section(docstring, "Raises"))
        gaps += [f"{name} does not say that it raises {one}" for one in sorted(missing)]
    return gaps


@pytest.mark.parametrize("name", EXPORTED)
def test_every_exported_name_is_documented(name):
    assert gaps_of(EXPORTED[name]) == []


class Planted:
    """Its constructor and a method raise an error, which their docstrings omit.

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
    """Overrides a documented method, and adds what has no docstring."""

    def scale(self, factor: int) -> int:
        return factor

    def shift(self, way: int) -> int:
        return way

    @property
    def size(self) -> int:
        return 1


def test_overriding_method_needs_no_docstring():
    assert gaps_of(Overriding) == [
        "shift has no docstring",
        "size has no docstring",
        "shift does not explain way",
    ]


def test_missing_explanations_are_detected():
    assert gaps_of(Planted) == [
        "scale does not say that it raises KeyError",
        "__init__ does not explain second",
    ]
