"""The models that a study may name, their parameters, and the kinds of question that they fit.

A name never changes meaning. docs/adding-a-model.md adds one.
"""

from typing import Any

from ldp_client.documents.catalogue import Entry
from ldp_client.documents.shapes import Record
from schemas.priors import CORRELATION, EACH_POSITIVE, EACH_REAL, POSITIVE, REAL, SHARE, SIMPLEX

_FEATURES: dict[str, Any] = {
    # The expected response (for a yes/no, its log-odds) at the middle of the features' bounds.
    "centre": REAL,
    "coefficients": EACH_REAL,
    "feature_mean": EACH_REAL,
    "feature_sd": EACH_POSITIVE,
    "feature_correlation": CORRELATION,
}

MODELS: dict[str, Entry] = {}


def add_model(name: str, *asks: str, **priors: Any) -> None:
    """Register a model, so that studies can name it.

    Args:
        name: Its name, which never changes meaning.
        *asks: The kinds of question that it fits.
        **priors: The parameters whose prior a study may state, each with a shape of `schemas/priors.py`.

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
