"""The mechanisms and models that a study may name, their parameters, and the kinds of question they fit.

A name never changes meaning. To add a mechanism: docs/adding-a-mechanism.md; a model: docs/adding-a-model.md.
"""

from ldp_client.documents.fields import Boolean, Constant, Decimal, Integer, OneOf, Record
from ldp_client.documents.priors import CORRELATION, EACH_POSITIVE, EACH_REAL, POSITIVE, REAL, SHARE, SIMPLEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

# "table" is for a data holder with many records; the other kinds are for one person.
ASKS = ("number", "choice", "yes_no", "record", "table")
PERSON_ASKS = ASKS[:-1]
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
    """Return the entry of a table mechanism: the options of all table mechanisms, and its own options."""
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
    _table("table_normal_equations", delta=DELTA),
    _table("table_statistics_laplace", {"fourth_moments": Boolean()}),
)


def add_mechanism(name: str, *asks: str, **parameters: "Any") -> None:
    """Register a mechanism, so that studies can name it.

    Args:
        name: Its name, which never changes meaning.
        *asks: The kinds of question that it fits.
        **parameters: The parameters that a study states, with the shape of each.

    Raises:
        ValueError: A mechanism of that name exists.
    """
    if name in MECHANISMS:
        raise ValueError(f"a mechanism {name!r} is already registered")
    MECHANISMS[name] = Entry(name, asks, None, **parameters)


_FEATURES: "dict[str, Any]" = {
    # The expected response (for a yes/no, its log-odds) at the middle of the features' bounds.
    "centre": REAL,
    "coefficients": EACH_REAL,
    "feature_mean": EACH_REAL,
    "feature_sd": EACH_POSITIVE,
    "feature_correlation": CORRELATION,
}

MODELS: "dict[str, Entry]" = {}


def add_model(name: str, *asks: str, **priors: "Any") -> None:
    """Register a model, so that studies can name it.

    Args:
        name: Its name, which never changes meaning.
        *asks: The kinds of question that it fits.
        **priors: The parameters whose prior a study may state, each with a shape of `priors.py`.

    Raises:
        ValueError: A model of that name exists.
    """
    if name in MODELS:
        raise ValueError(f"a model {name!r} is already registered")
    if [ask for ask in asks if ask in ("number", "choice", "yes_no")]:
        # The share of all participants who refuse, if allowed. Other parameters describe those who answer.
        priors["refused"] = SHARE
    entry = Entry(name, asks)
    entry.shape = Record(entry.shape.required, {"prior": Record({}, priors)})
    MODELS[name] = entry


# The model of a number question that names none. It assumes no distribution.
NO_LAW = "nonparametric"
add_model(NO_LAW, "number")
add_model("normal", "number", mean=REAL, sd=POSITIVE)
add_model("exponential", "number", rate=POSITIVE)
# Mean and sd of the logarithm.
add_model("lognormal", "number", log_mean=REAL, log_sd=POSITIVE)
add_model("gamma", "number", shape=POSITIVE, mean=POSITIVE)
add_model("weibull", "number", shape=POSITIVE, scale=POSITIVE)
# A law for the position between the bounds: 0 at the lower, 1 at the upper.
add_model("beta", "number", a=POSITIVE, b=POSITIVE)
add_model("poisson", "number", rate=POSITIVE)
# The number of failures before the first success, which has probability p.
add_model("geometric", "number", p=SHARE)
add_model("bernoulli", "yes_no", p=SHARE)
add_model("multinomial", "choice", p=SIMPLEX)
add_model("linear_regression", "record", "table", sd=POSITIVE, **_FEATURES)
add_model("logistic_regression", "record", **_FEATURES)
# Each feature and the response have a mean and an sd.
add_model("marginals", "record", mean=EACH_REAL, sd=EACH_POSITIVE)
