"""The mechanisms that a study may name, their parameters, and the kinds of question that they fit.

A name never changes meaning. docs/adding-a-mechanism.md adds one.
"""

from typing import Any

from ldp_client.documents.fields import Boolean, Constant, Decimal, Error, Integer, OneOf
from ldp_client.documents.shapes import Record, Tagged

# What one person is asked; a data holder with many records is asked a "table".
PERSON_ASKS = ("number", "choice", "yes_no", "record")
EPSILON = Decimal(above="0", at_most="64")
DELTA = Decimal(above="0", below="1")
# As `share`: the fraction of a whole budget that epsilon and delta are. A second study spends the remainder.
SHARE_OF_BUDGET = Decimal(above="0", below="1")
# How often each kind of product of a record's entries is drawn, relative to the other kinds; 1 if not stated.
KINDS_OF_PRODUCTS = ("means", "squares", "features", "response")
WEIGHTS = Record({}, {kind: Integer(1, 1000) for kind in KINDS_OF_PRODUCTS})
# The most products in one report of a record; 1 if not stated.
MOST_PRODUCTS = 4


class Entry:
    """A mechanism or model: its parameters, and the kinds of question (`asks`) that it fits."""

    def __init__(
        self,
        name: str,
        asks: tuple[str, ...],
        optional: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        self.name = name
        self.asks = asks
        self.shape = Record({**parameters, "name": Constant(name)}, optional)


class Fitting:
    """A catalogue entry that fits a kind of question. It is looked up on each read: entries may be added."""

    def __init__(self, catalogue: dict[str, Entry], ask: str) -> None:
        self.catalogue = catalogue
        self.ask = ask

    def _shape(self) -> Tagged:
        shapes = {name: entry.shape for name, entry in self.catalogue.items()}
        fits = [name for name, entry in self.catalogue.items() if self.ask in entry.asks]
        return Tagged("name", shapes, fits, f"a question that asks {self.ask!r}")

    def read(self, value: Any, path: str, error: Error) -> Any:
        return self._shape().read(value, path, error)

    def json_schema(self) -> dict[str, Any]:
        return self._shape().json_schema()


def _table(name: str, options: dict[str, Any] | None = None, **parameters: Any) -> Entry:
    """Return the entry of a table mechanism: the options of all table mechanisms, and its own options."""
    optional = {"count_share": SHARE_OF_BUDGET, "average": Integer(2, 10**6), "intercept": Boolean()}
    return Entry(name, ("table",), {**optional, **(options or {})}, epsilon=EPSILON, **parameters)


_ENTRIES = (
    Entry("laplace", ("number",), epsilon=EPSILON),
    Entry("gaussian", ("number",), epsilon=EPSILON, delta=DELTA),
    Entry("randomized_response", ("yes_no", "choice"), epsilon=EPSILON),
    Entry("oue", ("choice",), epsilon=EPSILON),
    Entry("sue", ("choice",), epsilon=EPSILON),
    Entry("subset_selection", ("choice",), epsilon=EPSILON),
    Entry("olh", ("choice",), epsilon=EPSILON),
    Entry("hadamard", ("choice",), epsilon=EPSILON),
    Entry(
        "memoized",
        ("choice", "yes_no"),
        of=OneOf(("randomized_response", "sue")),
        epsilon=EPSILON,
        instantaneous_epsilon=EPSILON,
    ),
    Entry("gaussian_statistics", ("record",), epsilon=EPSILON, delta=DELTA),
    Entry(
        "summed_gaussian",
        PERSON_ASKS,
        {
            "cells": Integer(2, 4096),
            "statistic": OneOf(("marginals",)),
            "share": SHARE_OF_BUDGET,
        },
        epsilon=EPSILON,
        delta=DELTA,
    ),
    Entry("gaussian_record", ("record",), epsilon=EPSILON, delta=DELTA, response_share=SHARE_OF_BUDGET),
    Entry(
        "sampled_products",
        ("record",),
        {"weights": WEIGHTS, "products": Integer(1, MOST_PRODUCTS)},
        epsilon=EPSILON,
    ),
    _table("table_statistics", {"share": SHARE_OF_BUDGET}, delta=DELTA),
    _table("table_normal_equations", delta=DELTA),
    _table("table_statistics_laplace", {"fourth_moments": Boolean()}),
)
MECHANISMS = {entry.name: entry for entry in _ENTRIES}
