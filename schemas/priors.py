"""The priors that a study may state: the known distributions, and which of them fit each parameter.

A prior is in the question's own units, as the posterior is. Distributions and their parameters have
the names and meanings of the standard texts: `gamma` has shape and rate, `inverse_gamma` shape and
scale, `log_normal` the loc and scale of the logarithm, `beta` a and b, `dirichlet` a concentration,
`lkj` the concentration of a correlation matrix (1: uniform over all matrices). The concentration of
`dirichlet` is a number for all choices, a list with a number for each, or a prior for an unknown number.
"""

from typing import Any

from ldp_client.documents.fields import Constant, Decimal, Error, printable
from ldp_client.documents.question import MOST_FIELDS as MOST_FEATURES
from ldp_client.documents.rational import Rational
from ldp_client.documents.rules import refuse_study
from ldp_client.documents.shapes import ListOf, MapOf, Record, Tagged
from ldp_client.words.text import ENGLISH, Words

MOST_CHOICES = 10000

ANY = Decimal()
POSITIVE_DECIMAL = Decimal(above="0")


class Uniform(Record):
    """Two decimals, low below high, both within the parameter's range."""

    def __init__(self, low: Rational | None = None, high: Rational | None = None) -> None:
        super().__init__({"distribution": Constant("uniform"), "low": ANY, "high": ANY})
        self.low = low
        self.high = high

    def read(self, value: Any, path: str, error: Error) -> dict[str, Any]:
        found = super().read(value, path, error)
        if not float(found["low"]) < float(found["high"]):
            raise error(path + ".high", "must be above low")
        if self.low is not None and found["low"] < self.low:
            raise error(path + ".low", f"must be at least {self.low}")
        if self.high is not None and self.high < found["high"]:
            raise error(path + ".high", f"must be at most {self.high}")
        return found


class _Concentration:
    """One positive decimal for all choices, a list with one for each, or a prior for an unknown one."""

    each = ListOf(POSITIVE_DECIMAL, 2, MOST_CHOICES, repeats=True)

    def read(self, value: Any, path: str, error: Error) -> Any:
        if isinstance(value, dict):
            return POSITIVE.read(value, path, error)
        return (self.each if isinstance(value, list) else POSITIVE_DECIMAL).read(value, path, error)

    def json_schema(self) -> dict[str, Any]:
        number, listed = POSITIVE_DECIMAL.json_schema(), self.each.json_schema()
        return {"oneOf": [number, listed, *POSITIVE.json_schema()["oneOf"]]}


CONCENTRATION = _Concentration()


def _family(name: str, **parameters: Any) -> Record:
    return Record({"distribution": Constant(name), **parameters})


FAMILIES: dict[str, Any] = {
    "normal": _family("normal", loc=ANY, scale=POSITIVE_DECIMAL),
    "student_t": _family("student_t", degrees_of_freedom=POSITIVE_DECIMAL, loc=ANY, scale=POSITIVE_DECIMAL),
    "half_normal": _family("half_normal", scale=POSITIVE_DECIMAL),
    "log_normal": _family("log_normal", loc=ANY, scale=POSITIVE_DECIMAL),
    "gamma": _family("gamma", shape=POSITIVE_DECIMAL, rate=POSITIVE_DECIMAL),
    "inverse_gamma": _family("inverse_gamma", shape=POSITIVE_DECIMAL, scale=POSITIVE_DECIMAL),
    "beta": _family("beta", a=POSITIVE_DECIMAL, b=POSITIVE_DECIMAL),
    "dirichlet": _family("dirichlet", concentration=CONCENTRATION),
    "lkj": _family("lkj", concentration=POSITIVE_DECIMAL),
    "uniform": Uniform(),
}


def taking(kind: str, *names: str, **special: Any) -> Tagged:
    """Return the shape of a prior that has one of these families, or one of the special ones."""
    return Tagged("distribution", {**FAMILIES, **special}, [*names, *special], f"a parameter that is {kind}")


_ZERO, _ONE = Rational(0), Rational(1)
_HALF_LINE = ("half_normal", "log_normal", "gamma", "inverse_gamma")

# The range of a parameter decides which distributions fit it.
REAL = taking("any number", "normal", "student_t", uniform=Uniform())
POSITIVE = taking("positive", *_HALF_LINE, uniform=Uniform(_ZERO))
SHARE = taking("a share between 0 and 1", "beta", uniform=Uniform(_ZERO, _ONE))
SIMPLEX = taking("a list of shares", "dirichlet")
CORRELATION = taking("a correlation matrix", "lkj")


# Priors for some features: {feature id: distribution}. All other features keep their default prior.
EACH_REAL = MapOf(taking("any number", "normal", "student_t"), MOST_FEATURES)
EACH_POSITIVE = MapOf(taking("positive", *_HALF_LINE), MOST_FEATURES)


def given_priors(model: dict[str, Any]) -> dict[str, Any]:
    """Return the priors that a parsed model states: {parameter: parsed distribution}."""
    stated = model.get("prior") or {}
    return {name: stated[name] for name in stated if stated[name] is not None}


def check_prior(question: dict[str, Any], path: str) -> None:
    """Raise StudyError unless a parsed question's priors fit its own features and choices."""
    code = "study.prior_invalid"
    for name, prior in given_priors(question["model"]).items():
        at = f"{path}.model.prior.{name}"
        is_wrong = name == "refused" and not question.get("refusal")
        refuse_study(is_wrong, at, "is for questions that offer refusal", code)
        if isinstance(prior.get("concentration"), tuple):
            problem = f"must have one entry for each of the {len(question['choices'])} choices"
            is_wrong = len(prior["concentration"]) != len(question["choices"])
            refuse_study(is_wrong, f"{at}.concentration", problem, code)
        if isinstance(prior.get("distribution"), str):
            continue
        features = {feature["id"]: feature for feature in question["features"]}
        if question["model"]["name"] == "marginals":
            features[question["response"]["id"]] = question["response"]
        for feature in prior:
            where = f"{at}.{printable(feature)}"
            refuse_study(feature not in features, where, "is no feature of this question", code)
            is_wrong = name in ("feature_mean", "feature_sd") and features[feature].get("bounds") is None
            refuse_study(is_wrong, where, "is for a yes/no, whose share has an even prior", code)


def prior_lines(prior: dict[str, Any], words: Words = ENGLISH) -> list[str]:
    """Write each prior as parameter ~ distribution(parameter value, …). Values are numbers or priors."""
    lines = []
    for name, stated in prior.items():
        if isinstance(stated.get("distribution"), str):
            lines.append(f"{name} ~ {_law(stated, words)}")
        else:
            lines += prior_lines({f"{name}[{feature}]": one for feature, one in stated.items()}, words)
    return lines


def _law(stated: dict[str, Any], words: Words) -> str:
    values = ", ".join([f"{key}{_value(stated[key], words)}" for key in stated if key != "distribution"])
    return f"{stated['distribution']}({values})"


def _value(value: Any, words: Words) -> str:
    if isinstance(value, dict):
        return f" ~ {_law(value, words)}"
    if isinstance(value, (list, tuple)):
        return f" [{words.say('study.prior_numbers', count=len(value))}]"
    return f" {float(value):.4g}"
