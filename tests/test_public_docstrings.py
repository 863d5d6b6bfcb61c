"""Exported names have Google-style docstrings that explain each parameter and own error."""

import ast
import importlib
import inspect
import re
import textwrap
from functools import cached_property
from types import FunctionType

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


def exported():
    """Each exported class and function by where it is defined, however many packages export it."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in [name for name in package.__all__ if name != "__version__"]:
            thing = getattr(package, name)
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


EXPORTED = exported()


def parts_of(thing):
    """Each public part with the docstring that explains it, unless a base class does."""
    if not inspect.isclass(thing):
        return {thing.__name__: (thing, thing.__doc__ or "")}
    found = {thing.__name__: (None, thing.__doc__ or "")}
    for name, value in vars(thing).items():
        part = getattr(value, "__func__", value)
        if name == "__init__":
            found[name] = part, f"{inspect.cleandoc(thing.__doc__ or '')}\n\n{part.__doc__ or ''}"
        elif name[0] == "_" or not isinstance(part, FunctionType | PROPERTY):
            continue
        elif part.__doc__ or not inspect.getdoc(getattr(thing, name)):
            found[name] = part, part.__doc__ or ""
    return found


def raised_by(function):
    """The errors that its own lines raise."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except OSError:  # what a dataclass writes itself
        return set()
    raises = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    called = [error.func for error in raises if isinstance(error, ast.Call)]
    return {error.id for error in called if isinstance(error, ast.Name)} - {"NotImplementedError"}


@pytest.mark.parametrize("name", EXPORTED)
def test_every_exported_name_is_documented(name):
    for part_name, (part, docstring) in parts_of(EXPORTED[name]).items():
        assert docstring, part_name
        if part is not None and not isinstance(part, PROPERTY):
            explained = set(re.findall(r"^ +\**(\w+)[^:\n]*:", docstring, re.M))
            stated = set(inspect.signature(part).parameters) - {"self", "cls"} | raised_by(part)
            assert stated - explained == set(), part_name
