"""Which mechanisms and models a study may name, their parameters, and what each one fits.

A name never changes meaning. To add a mechanism: one entry here, one file in
ldp_client/mechanisms, one likelihood in inference.
"""

from schemas.fields import Constant, Decimal, Integer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

ASKS = ("number", "choice", "yes_no", "record")
EPSILON = Decimal(above="0", at_most="64")
DELTA = Decimal(above="0", below="1")


class Entry:
    """One name: the parameters it takes and the kinds of question (`asks`) it fits."""

    def __init__(
        self,
        name: str,
        asks: "tuple[str, ...]",
        optional: "Optional[dict[str, Any]]" = None,
        **parameters: "Any",
    ) -> None:
        self.name = name
        self.asks = asks
        self.shape = Record(_named(name, parameters), optional)


def _named(name: str, parameters: "dict[str, Any]") -> "dict[str, Any]":
    fields: dict[str, Any] = {"name": Constant(name)}
    fields.update(parameters)
    return fields


def _by_name(*entries: Entry) -> "dict[str, Entry]":
    return {entry.name: entry for entry in entries}


MECHANISMS = _by_name(
    Entry("laplace", ("number",), epsilon=EPSILON),
    Entry("randomized_response", ("yes_no", "choice"), epsilon=EPSILON),
    Entry("oue", ("choice",), epsilon=EPSILON),
    Entry("gaussian_statistics", ("record",), epsilon=EPSILON, delta=DELTA),
    Entry("summed_gaussian", ASKS, {"cells": Integer(2, 4096)}, epsilon=EPSILON, delta=DELTA),
)

MODELS = _by_name(
    Entry("normal", ("number",)),
    Entry("exponential", ("number",)),
    Entry("bernoulli", ("yes_no",)),
    Entry("multinomial", ("choice",)),
    Entry("linear_regression", ("record",)),
    Entry("logistic_regression", ("record",)),
)
