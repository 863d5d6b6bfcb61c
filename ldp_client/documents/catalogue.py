"""Which mechanisms and models a study may name, their parameters, and what each one fits.

A name never changes meaning. To add a mechanism: docs/adding-a-mechanism.md; a model: docs/adding-a-model.md.
"""

from ldp_client.documents.fields import Boolean, Constant, Decimal, Integer, OneOf, Record
from ldp_client.documents.priors import CORRELATION, EACH_POSITIVE, EACH_REAL, POSITIVE, REAL, SHARE, SIMPLEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

# The last is for a data holder, about its many records; the others are for one person.
ASKS = ("number", "choice", "yes_no", "record", "table")
PERSON_ASKS = ASKS[:-1]
EPSILON = Decimal(above="0", at_most="64")
DELTA = Decimal(above="0", below="1")
# As `share`: which part of a whole budget epsilon and delta are; a second study spends the rest.
SHARE_OF_BUDGET = Decimal(above="0", below="1")
# How often each kind of product of a record's entries is drawn, beside the others: 1 where it is not stated.
KINDS_OF_PRODUCTS = ("means", "squares", "features", "response")
WEIGHTS = Record({}, {kind: Integer(1, 1000) for kind in KINDS_OF_PRODUCTS})
# So many products has a report of a record at most; 1 where it is not stated.
MOST_PRODUCTS = 4


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


def _table(name: str, options: "Optional[dict[str, Any]]" = None, **parameters: "Any") -> Entry:
    """A mechanism for a data holder's table, and the options that all of them have beside its own."""
    optional = {"count_share": SHARE_OF_BUDGET, "average": Integer(2, 10**6), "intercept": Boolean()}
    optional.update(options or {})
    return Entry(name, ("table",), optional, epsilon=EPSILON, **parameters)


def _by_name(*entries: Entry) -> "dict[str, Entry]":
    return {entry.name: entry for entry in entries}


MECHANISMS = _by_name(
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
    _table("table_statistics_ddplr", delta=DELTA),
    _table("table_statistics_laplace", {"fourth_moments": Boolean()}),
)


def add_mechanism(name: str, *asks: str, **parameters: "Any") -> None:
    """Let studies name a mechanism.

    Args:
        name: Its name, which never changes meaning.
        *asks: The kinds of question that it fits.
        **parameters: What a study states of it, with the shape of each.

    Raises:
        ValueError: There is a mechanism of that name.
    """
    if name in MECHANISMS:
        raise ValueError(f"there is a mechanism {name!r} already")
    MECHANISMS[name] = Entry(name, asks, None, **parameters)


_FEATURES: "dict[str, Any]" = {
    # The expected response (of a yes/no: its log-odds) at the middle of the features' bounds.
    "centre": REAL,
    "coefficients": EACH_REAL,
    "feature_mean": EACH_REAL,
    "feature_sd": EACH_POSITIVE,
    "feature_correlation": CORRELATION,
}

MODELS: "dict[str, Entry]" = {}


def add_model(name: str, *asks: str, **priors: "Any") -> None:
    """Let studies name a model.

    Args:
        name: Its name, which never changes meaning.
        *asks: The kinds of question that it fits.
        **priors: The parameters whose prior a study may state: what each can be, a shape of `priors.py`.

    Raises:
        ValueError: There is a model of that name.
    """
    if name in MODELS:
        raise ValueError(f"there is a model {name!r} already")
    if [ask for ask in asks if ask in ("number", "choice", "yes_no")]:
        # Of all people, where the question offers refusal; all else is then of those who answer.
        priors["refused"] = SHARE
    entry = Entry(name, asks)
    entry.shape = Record(entry.shape.required, {"prior": Record({}, priors)})
    MODELS[name] = entry


# What a question for a number gets that names no model: no law at all.
NO_LAW = "free"
add_model(NO_LAW, "number")
add_model("normal", "number", mean=REAL, sd=POSITIVE)
add_model("exponential", "number", rate=POSITIVE)
# Mean and sd of the logarithm.
add_model("lognormal", "number", log_mean=REAL, log_sd=POSITIVE)
add_model("gamma", "number", shape=POSITIVE, mean=POSITIVE)
add_model("weibull", "number", shape=POSITIVE, scale=POSITIVE)
# Of the position between the bounds: 0 at the lower, 1 at the upper.
add_model("beta", "number", a=POSITIVE, b=POSITIVE)
add_model("poisson", "number", rate=POSITIVE)
# The number of failures before the first success, which has probability p.
add_model("geometric", "number", p=SHARE)
add_model("bernoulli", "yes_no", p=SHARE)
add_model("multinomial", "choice", p=SIMPLEX)
add_model("linear_regression", "record", "table", sd=POSITIVE, **_FEATURES)
add_model("logistic_regression", "record", **_FEATURES)
# Of every feature and of the response.
add_model("marginals", "record", mean=EACH_REAL, sd=EACH_POSITIVE)
