"""The JavaScript port's copy of the catalogue: `python -m schemas.javascript` writes its files."""

import os

import ldp_client
from ldp_client.documents import priors
from ldp_client.documents.catalogue import MECHANISMS, MODELS, PERSON_ASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(ldp_client.__file__))), "js")
HEAD = "/** {} `make schemas` writes this file from ldp_client/documents. */\n\n"
# Models that need a secure sum, in which browsers take no part.
LEFT_OUT = ("marginals",)
# The shapes of a distribution's parameters, by their names in prior_kinds.js.
_PARAMETERS = {
    id(priors.ANY): "any",
    id(priors.POSITIVE_DECIMAL): "positive",
    id(priors.CONCENTRATION): "concentration(() => POSITIVE)",
}
# The kinds of a model's parameter.
_KINDS = {
    name: getattr(priors, name)
    for name in ("REAL", "POSITIVE", "SHARE", "SIMPLEX", "CORRELATION", "EACH_REAL", "EACH_POSITIVE")
}
# Lists of distributions that several kinds share.
_LISTS = {
    "EACH_REAL": priors.EACH_REAL.item.fits,
    "EACH_POSITIVE": priors.EACH_POSITIVE.item.fits,
}


def models() -> str:
    """Return the text of models.js: the models' names by the kind of question that they fit."""
    lines = [HEAD.format("The models that a study may name.")]
    for ask in PERSON_ASKS:
        names = ", ".join(
            f'"{name}"' for name, entry in MODELS.items() if ask in entry.asks and name not in LEFT_OUT
        )
        lines.append(f"export const {ask} = [{names}];\n")
    return "".join(lines)


def loaders() -> str:
    """Return the text of mechanisms/loaders.js: how to load each mechanism that has a sampler there."""
    having = [n for n in MECHANISMS if os.path.exists(os.path.join(FOLDER, "mechanisms", f"{n}.js"))]
    lines = [HEAD.format("The mechanisms, each a file of its name.")]
    lines += ["export const LOADERS = {\n"]
    lines += [f'  {name}: () => import("./{name}.js"),\n' for name in having]
    return "".join([*lines, "};\n"])


def prior_shapes() -> str:
    """Return the text of prior_shapes.js: the distributions, and the priors of each model's parameters."""
    shared, sharing = _shared()
    lines = [
        HEAD.format("The priors that a study may state."),
        'import { any, concentration, ofFeatures, positive, taking } from "./prior_kinds.js";\n\n',
        "const FAMILIES = {\n",
        *[f"  {name}: {_family(shape)},\n" for name, shape in priors.FAMILIES.items()],
        "};\n",
        *[f'const OF_{name} = "{" ".join(fits)}";\n' for name, fits in _LISTS.items()],
        *[f"const {name} = {_kind(kind)};\n" for name, kind in _KINDS.items()],
        f"const SHARED = {_parameters(shared)};\n\n",
        "export const PRIORS = {\n",
        *[f"  {name}: {_of_model(name, shared, sharing)},\n" for name in MODELS if name not in LEFT_OUT],
        "};\n",
    ]
    return "".join(lines)


def _family(shape: "Any") -> str:
    record = shape.shape if isinstance(shape, priors.Uniform) else shape
    fields = {name: field for name, field in record.required.items() if name != "distribution"}
    return "{ " + ", ".join(f"{name}: {_PARAMETERS[id(field)]}" for name, field in fields.items()) + " }"


def _kind(kind: "Any") -> str:
    if isinstance(kind, priors.OfFeatures):
        return f"ofFeatures({_kind(kind.item)})"
    uniform = kind.variants["uniform"] if "uniform" in kind.fits else priors.Uniform()
    limits = [limit for limit in (uniform.low, uniform.high) if limit is not None]
    shown = [_names(kind.fits), *[f"[{limit.numerator}n, {limit.denominator}n]" for limit in limits]]
    return f"taking(FAMILIES, {', '.join(shown)})"


def _names(names: "list[str]") -> str:
    """Return names as JavaScript text, with a constant for the names of a list in _LISTS."""
    for listed, known in _LISTS.items():
        if set(known) <= set(names):
            others = " ".join([name for name in names if name not in known])
            return f'OF_{listed} + " {others}"' if others else f"OF_{listed}"
    return f'"{" ".join(names)}"'


def _priors(model: str) -> "dict[str, Any]":
    found: dict[str, Any] = MODELS[model].shape.optional["prior"].optional
    return found


def _shared() -> "tuple[dict[str, Any], list[str]]":
    """Return the largest set of one model's parameters that another model has too, and all models with it."""

    def having(name: str) -> "list[str]":
        return [one for one in MODELS if _priors(name).items() <= _priors(one).items()]

    most = max([name for name in MODELS if len(having(name)) > 1], key=lambda name: len(_priors(name)))
    return _priors(most), having(most)


def _of_model(name: str, shared: "dict[str, Any]", sharing: "list[str]") -> str:
    own = _priors(name)
    if name not in sharing:
        return _parameters(own)
    rest = {key: kind for key, kind in own.items() if key not in shared}
    return _parameters(rest)[:-2] + ", ...SHARED }" if rest else "SHARED"


def _parameters(own: "dict[str, Any]") -> str:
    kinds = {id(kind): name for name, kind in _KINDS.items()}
    return "{ " + ", ".join([f"{name}: {kinds[id(kind)]}" for name, kind in own.items()]) + " }"


FILES = {"models.js": models, "prior_shapes.js": prior_shapes, "mechanisms/loaders.js": loaders}


def write_all() -> None:
    """Write the files into the port."""
    for name, render in FILES.items():
        with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
            file.write(render())


if __name__ == "__main__":
    write_all()
