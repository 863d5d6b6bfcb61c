"""The priors that a study states, in words."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def prior_lines(prior: "dict[str, Any]") -> "list[str]":
    """Each prior in words: parameter ~ distribution(parameter value, …). Values are numbers, or laws too."""
    lines = []
    for name, stated in prior.items():
        if isinstance(stated.get("distribution"), str):
            lines.append(f"{name} ~ {_law(stated)}")
        else:
            lines += prior_lines({f"{name}[{feature}]": one for feature, one in stated.items()})
    return lines


def _law(stated: "dict[str, Any]") -> str:
    values = ", ".join([f"{key}{_value(stated[key])}" for key in stated if key != "distribution"])
    return f"{stated['distribution']}({values})"


def _value(value: "Any") -> str:
    if isinstance(value, dict):
        return f" ~ {_law(value)}"
    return f" [{len(value)} numbers]" if isinstance(value, (list, tuple)) else f" {float(value):.4g}"
