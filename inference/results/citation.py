"""The evidence behind a result: methods, papers, citation, and provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inference.results.methods import bibtex, citation, cited, drawing_of, methods_of
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance, made_now
from ldp_client.words.text import visible
from schemas import Study
from schemas.priors import prior_lines

REPEATED = (
    "“{call} --out again --check posterior.json” fits these files again and says whether it is the same."
)
NOT_REPEATED = "This result does not come from a call of “ldpkit fit” on files, so no call can repeat it."


def citation_of(
    study: Study,
    posteriors: Mapping[str, Posterior],
    made: Provenance | None = None,
) -> dict[str, Any]:
    """Return the methods, papers, citation and provenance of a study's fit, for the templates."""
    made = made or made_now()
    about = {"Study": f"{study.id}, version {study.version}", "Digest of the study": study.digest}
    return _shown(
        methods_of(study, posteriors, made),
        cited(study, posteriors),
        about,
        next(iter(posteriors.values())).seed,
        made,
    )


def defence_of_analysis(
    posterior: Posterior, formula: str, noise: tuple[str, ...], made: Provenance | None
) -> dict[str, Any]:
    """Return the same for a formula. noise: sentences on the noise, from the study or the design."""
    made = made or made_now()
    priors = "; ".join(prior_lines(dict(posterior.prior))).replace("flat()", "flat")
    fitted = (
        f"“{visible(formula)}” was fitted to {posterior.size_in_words()} as {posterior.model}, with a "
        f"likelihood that includes the noise{f', under the priors {priors}' if priors else ''}."
    )
    lines = [fitted, *noise, *drawing_of([posterior], made)]
    about = {"Digest of the input": posterior.study_digest}
    return _shown(lines, cited(None, {posterior.question: posterior}), about, posterior.seed, made)


def _shown(
    methods: list[str], papers: list[str], about: Mapping[str, str], seed: int, made: Provenance
) -> dict[str, Any]:
    return {
        "methods": methods,
        "papers": papers,
        "citation": citation(),
        "bibtex": bibtex(),
        "provenance": list(_provenance(about, seed, made)),
        "repeat": REPEATED.format(call=visible(made.call)) if made.call else NOT_REPEATED,
    }


def _provenance(about: Mapping[str, str], seed: int, made: Provenance) -> Iterator[tuple[str, str]]:
    """Yield (label, value) pairs; two files may have the same name."""
    known = {"ldpkit": "ldpkit", "numpyro": "NumPyro", "jax": "JAX", "numpy": "NumPy", "python": "Python"}
    versions = [f"{name} {made.versions[key]}" for key, name in known.items() if key in made.versions]
    if "platform" in made.versions:
        versions.append(made.versions["platform"])
    yield from (("Fitted on", made.day), ("With", ", ".join(versions)), *about.items())
    for file in made.inputs:
        yield (
            f"Read: {visible(file.name)}",
            f"SHA-256 {file.sha256}" if file.sha256 else "a stream: it has no digest",
        )
    yield "Seed", str(seed)
